"""Can NADs say how to repair an architecture? A small DenseNet, a narrow ResNet-18, three one-line
changes of each.

``repair.json`` has the energies of 16 waves in random networks of all eight, which were committed;
the study trains them along these waves, and on photos. With
``--mixed-precision`` it is nearly twice as fast on a CPU. ``book/preregistered/repair.toml`` has
what was expected.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from nads_book.atlas.small_networks import densenet, resnet
from nads_book.experiments import (
    Context,
    Facts,
    Row,
    Study,
    Unit,
    train_along,
    train_on_photos,
)
from nads_book.published.waves import fourier_directions, grid_frequencies
from nads_book.studies.presets import SIZES
from nads_core.runtime.seeds import seed_sequence

NUM_WAVES, SEEDS, NOISE_STD = 16, (0, 1), 3.0
NUM_PHOTOS = 10_000
THRESHOLD = 0.9  # energy above which a wave is predicted to be learned, registered
GOAL = 12  # waves that a repaired network learns, registered
SMALL = {"growth": 8, "depths": (3, 3, 3, 3)}  # the DenseNet of the atlas


def dense(*sizes: int, pooling: str = "average", flat: bool = False) -> nn.Module:
    """Return the small DenseNet; ``flat`` replaces its global average, so that the last layer reads
    every place.
    """
    network = densenet(*sizes, pooling=pooling, **SMALL)
    if flat:
        channels: Any = network.linear.in_features  # type: ignore[union-attr]
        places = (sizes[1] // 8) ** 2
        network.head, network.linear = nn.Flatten(), nn.Linear(channels * places, sizes[2])
    return network


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "densenet": dense,
    "densenet, flat": partial(dense, flat=True),
    "densenet, strided": partial(dense, pooling="strided"),
    "densenet, strided, flat": partial(dense, pooling="strided", flat=True),
    "resnet": partial(resnet, width=16),
    "resnet, flat": partial(resnet, width=16, head="flat"),
    "resnet, average": partial(resnet, width=16, pooling="average"),
    "resnet, average, flat": partial(resnet, width=16, pooling="average", head="flat"),
}


def waves() -> list[tuple[int, int]]:
    """Return 16 waves of the published grid, at equal steps of the rank of |frequency|, ties in a
    fixed order.
    """
    grid = sorted(grid_frequencies(), key=lambda k: (k[0] ** 2 + k[1] ** 2, k))
    return [grid[round(i)] for i in np.linspace(0, len(grid) - 1, NUM_WAVES)]


class Repair(Study):
    """Can NADs say how to repair an architecture? Eight networks on waves and on photos
    (``repair.toml``).
    """

    name = "repair"
    size = "narrow"
    design = {"seed": SEEDS, "network": NETWORKS, "task": ("waves", "photos")}
    on_photos = True
    precisions = (False, True)

    def facts(self, photos: str | None = None) -> Facts:
        return {"waves": [list(wave) for wave in waves()]}

    def run(self, unit: Unit, context: Context) -> Row:
        build, seed = NETWORKS[unit["network"]], unit["seed"]
        if unit["task"] == "waves":
            reached = train_along(
                partial(build, 1, 32, 2),
                fourier_directions(waves()),
                NOISE_STD,
                SIZES["narrow"].separable,
                seed,
                context,
                data_seeds=(seed_sequence(seed, part) for part in (7, 8)),
            )
            return {"accuracies": reached["test_accuracy"]}
        _, row, _ = train_on_photos(build, NUM_PHOTOS, NUM_PHOTOS, seed, context)
        return {"accuracies": [row["test_accuracy"]]}
