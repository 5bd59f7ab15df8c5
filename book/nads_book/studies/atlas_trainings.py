"""The atlas: whether what random weights prefer is what training learns, and one entry with other
seeds.

``nads-book atlas`` computes the entries. The study ``atlas-again`` computes one of them with two
other seeds. ``atlas-predictions`` has the first-step law's predictions for 8 waves; then
``atlas-trained`` trains the networks, and ``atlas-control`` those that learned nothing, otherwise
and longer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import nads_core as nc
from nads_book.analysis.prediction import Responses, predicted_accuracy
from nads_book.analysis.waves import fourier_directions
from nads_book.atlas import ATLAS, compute_entry
from nads_book.atlas.assembly import described
from nads_book.checkout import build_folder
from nads_book.experiments import (
    Context,
    Facts,
    FileStudy,
    Row,
    Unit,
    factorial,
    less,
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
# Epochs, ten times as many, along the wave of most energy, one between, and the wave of least.
LONGER = 40
LONGER_WAVES = (WAVES[0], WAVES[2], WAVES[3])


def folder() -> Path:
    """Return the folder of computed entries, which are made again where they are missing."""
    return build_folder("atlas")


class AtlasAgain(FileStudy):
    """Are the intervals of an entry kept? The same entry from other networks."""

    name = "atlas-again"
    on_gpu = False
    rows_at = (REPEATED,)
    design = {"seed": OTHER_SEEDS}
    depth = 2

    def run(self, unit: Unit, context: Context) -> Row:
        seed = unit["seed"]
        computed = compute_entry(ATLAS[REPEATED], folder() / f"seed{seed}", seed=seed)
        return described(computed.nads.provenance, computed.measures)


class AtlasPredictions(FileStudy):
    """What the first-step law predicts for eight waves and twelve entries, committed before the
    trainings.
    """

    name = "atlas-predictions"
    on_gpu = False
    file = "atlas-trained.json"
    rows_at = ("prediction", "rows")
    empty = {
        "prediction": {
            "noise_std": NOISE_STD,
            "num_train": SIZE.num_train,
            "num_test": SIZE.num_test,
        },
        "rows": [],
    }
    design = {"entry": SMALL, "wave": [list(wave) for wave in WAVES]}
    depth = 2

    def run(self, unit: Unit, context: Context) -> Row:
        covariance = compute_entry(ATLAS[unit["entry"]], folder()).parts.double().mean(0)
        ky, kx = unit["wave"]
        responses = Responses.of(covariance, nc.fourier_direction((ky, kx))[None])
        ratio = responses.signal_to_noise(SIZE.num_train, NOISE_STD)[0]
        energy = responses.energies[0] / (float(covariance.trace()) / len(covariance))
        return {"energy": float(f"{energy:.5g}"), "law": round(float(predicted_accuracy(ratio)), 5)}


class AtlasTrainings(FileStudy):
    """Do trained entries of the atlas learn what random weights prefer?"""

    name = "atlas-trained"
    design = {"entry": SMALL, "seed": [0]}
    needs = ("atlas-predictions",)
    many_rows = True
    depth = 2

    def run(self, unit: Unit, context: Context) -> list[Row]:
        return trained(unit["entry"], unit["seed"], WAVES, context)


class AtlasControl(AtlasTrainings):
    """Is it the recipe? Entries that learned nothing, at other rates, and for longer on three
    waves.
    """

    name = "atlas-control"
    file = AtlasTrainings.file

    def units(self) -> list[Unit]:
        rates = factorial(learning_rate=RATES, entry=FAILED, seed=[0])
        longer = factorial(first=map(list, LONGER_WAVES), entry=FAILED, seed=[0], epochs=[LONGER])
        return rates + longer

    def rows_of(self, content: Mapping[str, Any]) -> list[Row]:
        rows = content.get("control", [])
        return [{**row, "first": row["wave"]} if "epochs" in row else row for row in rows]

    def with_rows(self, content: Facts, rows: list[Row]) -> Facts:
        return content | {"control": [less(row, "first") for row in rows]}

    def run(self, unit: Unit, context: Context) -> list[Row]:
        changes = {name: unit[name] for name in ("learning_rate", "epochs") if name in unit}
        waves = [tuple(unit["first"])] if "first" in unit else WAVES
        return trained(unit["entry"], unit["seed"], waves, context, **changes)


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
