import nads_book as nb
import numpy as np
import pytest
import torch
from nads_book.published import waves

import nads_core as nc


def test_any_beginning_covers_a_line_and_a_circle_of_waves_evenly():
    """Of k and 8 - k, which are one wave, one comes last."""
    line = np.arange(8.0)[:, None]
    assert waves.spread(line[:5]) == [0, 4, 2, 1, 3]
    assert waves.spread(line, period=8) == [0, 4, 2, 1, 3, 5, 6, 7]


@pytest.mark.stored
@pytest.mark.parametrize("name", ["logreg", "lenet", "vgg11", "resnet18", "densenet121"])
def test_strata_divide_the_grid_by_equal_steps_of_log_energy(name):
    energies = waves.predicted_energies(name)
    parts = waves.strata(name)
    assert sorted(k for part in parts for k in part) == sorted(nb.grid_frequencies())
    spans = [(min(energies[k] for k in part), max(energies[k] for k in part)) for part in parts]
    assert all(low > high for (low, _), (_, high) in zip(spans, spans[1:], strict=False))
    logs = np.log([*energies.values()])
    assert all(np.log(high / low) <= np.ptp(logs) / waves.NUM_STRATA + 1e-9 for low, high in spans)


def test_half_of_the_energy_is_counted_from_the_first_nads():
    basis = nc.fourier_basis(2)[0]
    for values, number in (([9, 1, 1, 1], 1), ([2, 2, 2, 2], 2), ([3, 2, 2, 2], 2)):
        assert waves.half_of_energy(nc.NADs(basis, torch.tensor(values).float())) == number
