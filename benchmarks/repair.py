"""Can NADs say how to repair an architecture? A small DenseNet, a narrow ResNet-18, three one-line changes of each.

``python benchmarks/repair.py predict`` computes energies of 16 waves in random networks of all eight, which are
committed; then ``train`` trains them along these waves, and on photos, and resumes. With
``--mixed-precision`` it is nearly twice as fast on a CPU. ``book/preregistered/repair.toml`` has what was expected.
Results go to ``book/results/studies/repair.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from nads_book.analysis.frequency_maps import of_tasks
from nads_book.analysis.published import fourier_accuracies
from nads_book.atlas.small_networks import densenet, resnet
from nads_book.experiments.presets import SIZES
from nads_book.experiments.stored import study_path
from result_files import write_compact
from torch import nn

import nads_core as nc
from nads_core.runtime.arguments import usable_device
from nads_core.runtime.provenance import environment
from nads_core.runtime.seeds import seed_sequence

FILE = study_path("repair.json")
NUM_NETWORKS, NUM_WAVES, SEEDS, NOISE_STD = 1_024, 16, (0, 1), 3.0
NUM_PHOTOS, EPOCHS = 10_000, 10
SMALL = {"growth": 8, "depths": (3, 3, 3, 3)}  # the DenseNet of the atlas


def dense(*sizes: int, pooling: str = "average", flat: bool = False) -> nn.Module:
    """Return the small DenseNet; ``flat`` replaces its global average, so that the last layer reads every place."""
    network = densenet(*sizes, pooling=pooling, **SMALL)
    if flat:
        channels, side = network.linear.in_features, sizes[1] // 8
        network.head, network.linear = nn.Flatten(), nn.Linear(channels * side**2, sizes[2])
    return network


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "densenet": dense, "densenet, flat": partial(dense, flat=True),
    "densenet, strided": partial(dense, pooling="strided"),
    "densenet, strided, flat": partial(dense, pooling="strided", flat=True),
    "resnet": partial(resnet, width=16), "resnet, flat": partial(resnet, width=16, head="flat"),
    "resnet, average": partial(resnet, width=16, pooling="average"),
    "resnet, average, flat": partial(resnet, width=16, pooling="average", head="flat"),
}  # fmt: skip


def waves() -> list[tuple[int, int]]:
    """Return 16 waves of the published grid, at equal steps of the rank of |frequency|, ties in a fixed order."""
    grid = sorted(of_tasks(fourier_accuracies("lenet")), key=lambda k: (k[0] ** 2 + k[1] ** 2, k))
    return [grid[round(i)] for i in np.linspace(0, len(grid) - 1, NUM_WAVES)]


def predict() -> None:
    """Write the energies of the waves in random networks, relative to the mean."""
    if FILE.exists():
        sys.exit(f"the prediction in {FILE} is committed and stays as it is")
    directions, rows = torch.stack([nc.fourier_direction(wave) for wave in waves()]), []
    for name, build in NETWORKS.items():
        nads = nc.compute_nads(
            partial(build, 1, 32, 2), NUM_NETWORKS, image_shape=(1, 32, 32), symmetries=(), debiasing="subtract", seed=0
        )
        energies = nads.energy(directions) / nads.eigenvalues.mean()
        rows.append({"network": name, "energies": [round(float(energy), 4) for energy in energies]})
    facts = {"waves": [list(wave) for wave in waves()], "num_networks": NUM_NETWORKS, "num_units": 4 * len(NETWORKS)}
    write_compact(FILE, facts | {"prediction": rows, "environment": environment(torch.device("cpu")), "rows": []})


def train(names: Sequence[str], mixed_precision: bool | None) -> None:
    """Train the networks that the file lacks: along all waves, and on photos, with both seeds.

    Args:
        names: of networks.
        mixed_precision: whether layers run in bfloat16; None as `nads_core.TrainConfig` chooses for the device.
    """
    stored, size = json.loads(FILE.read_text("utf8")), SIZES["narrow"].separable
    stored.setdefault("runs", []).append(environment(usable_device()) | {"mixed_precision": mixed_precision})
    done = {(row["network"], row["task"], row["seed"]) for row in stored["rows"]}
    directions = torch.stack([nc.fourier_direction(wave) for wave in waves()])
    for seed in SEEDS:
        for name, build in ((name, NETWORKS[name]) for name in names):
            if (name, "waves", seed) not in done:
                sets, tests = (
                    nc.SeparableDatasets(directions, count, 1.0, NOISE_STD, seed=seed_sequence(seed, part))
                    for part, count in ((7, size.num_train), (8, size.num_test))
                )
                result = nc.train_networks(
                    partial(build, 1, 32, 2), sets, tests, recipe=size.recipe, seed=seed, stop_at_full_accuracy=True,
                    mixed_precision=mixed_precision,
                )  # fmt: skip
                accuracies = [round(float(accuracy), 5) for accuracy in result.test_accuracy]
                stored["rows"].append({"network": name, "task": "waves", "seed": seed, "accuracies": accuracies})
                write_compact(FILE, stored)
            if (name, "photos", seed) not in done:
                train_part, test_part = (
                    nc.load_images("cifar10", train=part, num_images=NUM_PHOTOS) for part in (True, False)
                )
                data, held_out = ((nc.normalize(part.images), part.labels) for part in (train_part, test_part))
                torch.manual_seed(seed)
                recipe = replace(nc.CIFAR10_RECIPE, epochs=EPOCHS)
                trained = nc.train_network(
                    build(3, 32, 10), data, held_out, recipe=recipe, seed=seed, label=name,
                    mixed_precision=mixed_precision,
                )  # fmt: skip
                accuracies = [round(float(trained.test_accuracy), 5)]
                stored["rows"].append({"network": name, "task": "photos", "seed": seed, "accuracies": accuracies})
                write_compact(FILE, stored)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("predict", "train"))
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), help="to train")
    parser.add_argument("--mixed-precision", action="store_true", default=None, help="on a CPU, as GPUs do by default")
    options = parser.parse_args()
    predict() if options.what == "predict" else train(options.networks, options.mixed_precision)
