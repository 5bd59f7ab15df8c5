import nads_book as nb
import numpy as np
from nads_book.published import waves as maps

GRID = [(ky, kx) for ky in range(-16, 16, 2) for kx in range(-16, 16, 2)]


def test_copies_are_counted_and_each_task_has_a_published_value(monkeypatch):
    generator = np.random.default_rng(0)
    cells = {k: float(generator.random()) for k in GRID}
    assert maps.copied_cells(cells) == (0, 224)
    copied = {k: cells[k if k[1] >= 0 else maps.mirrored(k)] for k in GRID}
    assert maps.copied_cells(copied) == (224, 224)
    monkeypatch.setattr(maps, "fourier_accuracies", lambda name: cells)
    whole, right = (maps.published_accuracies("none", half) for half in (False, True))
    assert set(whole) == set(right) == set(nb.grid_frequencies())
    assert whole[4, 0] == (cells[4, 0] + cells[-4, 0]) / 2
    assert right[4, -4] == cells[-4, 4] and right[4, 4] == cells[4, 4]
