"""The first-step law at other numbers of samples and noise.

``law.json`` has the accuracies that it predicts, which were committed; ``law-trained`` trains the
networks, and those of few samples as often as those of many: is it the samples, or the steps?

The second moment C comes from networks that no NAD was computed from: a run of
another seed.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

import nads_core as nc
from nads_book.analysis.prediction import (
    Family,
    Responses,
    filter_gain,
)
from nads_book.experiments import (
    Context,
    FileStudy,
    Row,
    TrainingSize,
    Unit,
    load_study,
    train_along,
)
from nads_book.experiments.stored import load_nads
from nads_book.studies import stored
from nads_core.directions.symmetry import symmetrize
from nads_core.runtime.seeds import seed_sequence

LEVELS = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35)  # signal to noise of the pairs of NADs
# Numbers of samples, and sigma.
CELLS = (
    *((count, 1.0) for count in (1_000, 3_162, 10_000, 31_623, 100_000)),
    *((10_000, noise_std) for noise_std in (0.5, 2.0)),
)
NUM_TEST, SEED = 10_000, 7
NUM_INDEPENDENT = 204_800  # networks of the independent run
CONTROL_EPOCHS = 200
NUM_KERNEL, KERNELS = 3_000, (1, 4, 8)  # samples, and networks whose tangent kernels are averaged


@lru_cache(maxsize=1)
def independent_covariance() -> Tensor:
    """Return C (D, D) from runs that no shipped NAD saw."""
    moment = nc.second_moment(
        nc.LENET, (1, 32, 32), NUM_INDEPENDENT, seed=1_000, device="cpu", progress=False
    )
    return symmetrize(moment.shares().sum(0), (1, 32, 32), nc.LENET.symmetries)


class Seen(NamedTuple):
    """Directions that were trained along already, with the law's ratios and gains, (n,) each."""

    family: Family
    ratios: np.ndarray
    gains: np.ndarray


@lru_cache
def seen(name: str) -> Seen:
    """Return the directions of stored trainings."""
    family = Family.of(stored(name))
    responses = Responses.of(independent_covariance(), family.directions)
    ratios = responses.signal_to_noise(family.num_train, family.noise_std)
    return Seen(family, ratios, filter_gain(family.directions))


def right(scores: Tensor, truth: Tensor) -> float:
    """Return the share of samples whose score has the sign of their class."""
    return round(float(((scores > 0) == (truth == 1)).double().mean()), 4)


class LawTrainings(FileStudy):
    """How accurate are the networks that the predictions are about? And those of few samples, seen
    more often?
    """

    name = "law-trained"
    many_rows = True

    def units(self) -> list[Unit]:
        cells = [(*cell, nc.SEPARABLE_RECIPE.epochs) for cell in CELLS]
        return [
            {"num_train": num_train, "noise_std": noise_std, "seed": 0, "epochs": epochs}
            for num_train, noise_std, epochs in [*cells, (*CELLS[0], CONTROL_EPOCHS)]
        ]

    def key(self, row: Mapping[str, Any]) -> str:
        """Return the identity of a unit; early rows do not name the recipe's number of epochs."""
        return super().key({"epochs": nc.SEPARABLE_RECIPE.epochs, **row})

    def run(self, unit: Unit, context: Context) -> list[Row]:
        rows = load_study("law.json")["prediction"]["rows"]
        cell = {name: unit[name] for name in ("num_train", "noise_std")}
        indices = [row["index"] for row in rows if cell.items() <= row.items()]
        recipe = replace(nc.SEPARABLE_RECIPE, epochs=unit["epochs"])
        found = train_along(
            nc.LENET,
            load_nads("lenet").directions[indices],
            unit["noise_std"],
            TrainingSize(unit["num_train"], NUM_TEST, recipe),
            unit["seed"],
            context,
            data_seeds=(seed_sequence(unit["seed"], part) for part in (5, 6)),
        )
        pairs = zip(indices, found["test_accuracy"], strict=True)
        return [{"index": index, "accuracy": accuracy} for index, accuracy in pairs]
