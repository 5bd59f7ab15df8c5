"""The first-step law at other numbers of samples and noise.

``law.json`` has the accuracies that it predicts, which were committed; ``law-trained`` trains the
networks, and those of few samples as often as those of many: is it the samples, or the steps?
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import nads_core as nc
from nads_book.experiments import (
    Context,
    Row,
    Study,
    TrainingSize,
    Unit,
    load_nads,
    load_study,
    train_along,
)
from nads_core.runtime.seeds import seed_sequence

# Numbers of samples, and sigma.
CELLS = (
    *((count, 1.0) for count in (1_000, 3_162, 10_000, 31_623, 100_000)),
    *((10_000, noise_std) for noise_std in (0.5, 2.0)),
)
NUM_TEST, CONTROL_EPOCHS = 10_000, 200


class LawTrainings(Study):
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
