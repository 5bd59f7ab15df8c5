"""How LeNet's accuracy grows while it trains on one wave that it learns, and on one that it only memorises.

The chapter on directional bias plays both curves side by side.
"""

from collections.abc import Mapping
from typing import Any

import torch

import nads_core as nc
from nads_book.experiments.study import Context, Row, Unit
from nads_book.experiments.study_files import FileStudy
from nads_book.experiments.trainer import training_steps
from nads_book.studies.directions import Fig1, WaveStudy

SEED, EVERY = 0, 20  # steps between two measurements
WAVES = {"coarse": (0, 2), "fine": (0, 8)}


def curves(frequency: tuple[int, int], job: WaveStudy) -> dict[str, list[float]]:
    """Train a LeNet on one wave by the job's recipe, and return its accuracies on all images of both sets."""
    direction = nc.fourier_direction(frequency, 32)[None]
    images, labels = nc.SeparableDatasets(
        direction, job.num_train, noise_std=job.noise_std, seed=SEED
    )[0]
    test = nc.SeparableDatasets(direction, job.num_test, noise_std=job.noise_std, seed=SEED + 1)[0]
    torch.manual_seed(SEED)
    network, recipe = nc.LENET.build(1, 32, 2), job.recipe
    total = recipe.num_steps(len(labels))
    order = torch.cat([torch.randperm(len(labels)) for _ in range(recipe.epochs)])
    batches = [
        part for epoch in order.split(len(labels)) for part in epoch.split(recipe.batch_size)
    ]
    found: dict[str, list[float]] = {"train": [], "test": []}

    def measure() -> None:
        for name, data in (("train", (images, labels)), ("test", test)):
            found[name].append(round(nc.training.accuracy(network, data, 1_000), 4))

    measure()
    for done, _ in training_steps(
        network, (images, labels), torch.optim.SGD(network.parameters(), recipe.learning_rate), batches,
        rate=lambda step: recipe.rate(step, total), clip_norm=recipe.clip_norm,
    ):  # fmt: skip
        if done % EVERY == 0 or done == total:
            measure()
    return found


class TwoTrainings(FileStudy):
    """How does accuracy grow on a wave that LeNet learns, and on one that it only memorises?"""

    name = "two-trainings"
    file = "two-trainings.json"
    summary = "accuracy every 20 steps of LeNet on a coarse and on a fine wave"
    unit_fields = ("wave",)

    def units(self) -> list[Unit]:
        return [{"wave": name} for name in WAVES]

    def facts(self) -> dict[str, Any]:
        job = Fig1.create("lenet", "paper")
        total = job.recipe.num_steps(job.num_train)
        return {
            "architecture": "lenet", "seed": SEED, "num_train": job.num_train, "num_test": job.num_test,
            "epochs": job.recipe.epochs, "steps": [*range(0, total, EVERY), total],
        }  # fmt: skip

    def rows_of(self, content: Mapping[str, Any]) -> list[Row]:
        return [{"wave": name, **curve} for name, curve in content.get("waves", {}).items()]

    def with_rows(self, content: dict[str, Any], rows: list[Row]) -> dict[str, Any]:
        return content | {
            "waves": {row["wave"]: {key: row[key] for key in row if key != "wave"} for row in rows}
        }

    def run(self, unit: Unit, context: Context) -> Row:
        frequency = WAVES[unit["wave"]]
        return {"frequency": list(frequency), **curves(frequency, Fig1.create("lenet", "paper"))}
