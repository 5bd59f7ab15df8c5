"""The atlas: whether what random weights prefer is what training learns.

`nads_book.atlas.compute_entry` computes the entries, and the study ``atlas-trained`` trains some of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nads_book.analysis.waves import fourier_directions
from nads_book.atlas import ATLAS
from nads_book.checkout import build_folder
from nads_book.experiments import (
    Context,
    FileStudy,
    Row,
    Unit,
    train_along,
)
from nads_book.studies.presets import SIZES
from nads_core.runtime.seeds import seed_sequence

SMALL = (
    "cnn",
    "cnn-average",
    "cnn-blurred",
    "cnn-strided",
    "cnn-nopool",
    "cnn-global",
    "cnn-poolfirst",
    "cnn-kernel1",
    "cnn-depth6",
    "cnn-valid",
    "mlp",
    "vit",
)
WAVES = ((0, 2), (4, 4), (0, 8), (6, 10), (8, 8), (12, 4), (16, 0), (14, 14))
NOISE_STD, SEED, SIZE = 3.0, 11, SIZES["laptop"].separable
FAILED, RATES = ("cnn-depth6", "cnn-global"), (0.025, 0.05, 0.1, 0.4)
REPEATED, OTHER_SEEDS = "resnet-tanh", (1, 2)  # a symmetry gives one of its measures exactly


def folder() -> Path:
    """Return the folder of computed entries, which are made again where they are missing."""
    return build_folder("atlas")


class AtlasTrainings(FileStudy):
    """Do trained entries of the atlas learn what random weights prefer?"""

    name = "atlas-trained"
    design = {"entry": SMALL, "seed": [0]}
    many_rows = True
    depth = 2

    def run(self, unit: Unit, context: Context) -> list[Row]:
        return trained(unit["entry"], unit["seed"], WAVES, context)


def trained(
    entry: str, seed: int, waves: Sequence[tuple[int, ...]], context: Context, **changes: Any
) -> list[Row]:
    """Train an entry along waves, with a changed recipe for a control."""
    found = train_along(
        ATLAS[entry].architecture,
        fourier_directions((ky, kx) for ky, kx in waves),
        NOISE_STD,
        replace(SIZE, recipe=replace(SIZE.recipe, **changes)),
        seed,
        context,
        data_seeds=(seed_sequence(SEED + seed, part) for part in (5, 6)),
    )
    pairs = zip(waves, found["test_accuracy"], strict=True)
    return [{"wave": list(wave), "accuracy": accuracy} for wave, accuracy in pairs]
