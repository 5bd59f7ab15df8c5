"""When does training forget its NADs? Networks on D(v) by optimiser, learning rate, label noise and weight decay.

``python benchmarks/forgetting.py run`` trains all networks, one per core, and resumes where it was stopped.
``python benchmarks/forgetting.py score`` compares the result with ``book/preregistered/forgetting.toml``.
Results go to ``book/results/studies/forgetting.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nads_book.atlas.entries import ATLAS
from nads_book.atlas.stored import load_atlas
from nads_book.experiments.forgetting import (
    CELLS,
    MIDDLE,
    SEEDS,
    Cell,
    accuracies,
    effects,
    orders,
    wave_energies,
    waves,
)
from nads_book.experiments.stored import study_path
from result_files import add_rows
from torch import Tensor, nn
from torch.nn import functional as F

import nads_core as nc
from nads_core.kernels import faster_max_pooling
from nads_core.runtime.provenance import environment
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.recipes import batches

FILE = study_path("forgetting.json")
REGISTERED = Path(__file__).parents[1] / "book" / "preregistered" / "forgetting.toml"
NUM_SAMPLES, NOISE_STD = 10_000, 3.0
LOGGED = (1, 2, 5, 10, 20)  # epochs after which the test accuracy is measured


def optimiser_of(network: nn.Module, cell: Cell) -> torch.optim.Optimizer:
    """Return the optimiser of a cell."""
    parameters = network.parameters()
    if cell.optimiser == "adam":
        return torch.optim.AdamW(parameters, lr=cell.rate, weight_decay=cell.weight_decay)
    momentum = 0.9 if cell.optimiser == "momentum" else 0.0
    return torch.optim.SGD(parameters, lr=cell.rate, momentum=momentum, weight_decay=cell.weight_decay)


def dataset(direction: Tensor, cell: Cell, seed: int) -> tuple[Tensor, Tensor]:
    """Return samples of D(v) whose margins have the overlap of the cell: images (N, 1, 32, 32) and labels (N,)."""
    images, labels = nc.separable_dataset(direction, NUM_SAMPLES, noise_std=NOISE_STD, seed=seed)
    if cell.overlap:
        generator = torch.Generator().manual_seed(seed_sequence(seed, 17))
        images += cell.overlap * torch.randn(NUM_SAMPLES, 1, 1, 1, generator=generator) * direction
    return images, labels


def train(cell: Cell, wave: Sequence[int], seed: int) -> dict[str, Any]:
    """Train one network with the paper's batches, clipping and schedule, and return its row.

    Weights, data and batches are the same for all cells, and others for each wave and seed.
    """
    torch.set_num_threads(1)
    own = seed_sequence(seed, waves().index(tuple(wave)))
    direction = nc.fourier_direction(tuple(wave), size=32)
    (x, y), test = (dataset(direction, cell, seed_sequence(own, split) % 2**31) for split in (10, 11))
    generator = torch.Generator().manual_seed(seed_sequence(own, 12))
    wrong = torch.rand(NUM_SAMPLES, generator=generator) < cell.label_noise
    y = torch.where(wrong, 1 - y, y)
    architecture = nc.LENET if cell.architecture == "lenet" else ATLAS[cell.architecture].architecture
    with seeded(seed_sequence(own, 13)):
        network = faster_max_pooling(architecture.build(1, 32, 2)).train()
    optimiser, recipe = optimiser_of(network, cell), nc.SEPARABLE_RECIPE
    total, reached = recipe.num_steps(NUM_SAMPLES), {}
    per_epoch = total // recipe.epochs
    for done, batch in enumerate(batches(NUM_SAMPLES, recipe, own % 2**31), 1):
        for group in optimiser.param_groups:
            group["lr"] = cell.rate * (1 - (done - 1) / total)
        optimiser.zero_grad()
        F.cross_entropy(network(x[batch]), y[batch]).backward()
        if cell.optimiser != "adam":  # whose steps do not grow with the gradient
            nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
        optimiser.step()
        if done % per_epoch == 0 and done // per_epoch in LOGGED:
            reached[done // per_epoch] = round(nc.accuracy(network.eval(), test), 5)
            network.train()
    row = {"wave": list(wave), "seed": seed, "train_accuracy": round(nc.accuracy(network.eval(), (x, y)), 5)}
    return {"cell": asdict(cell), **row, "test_accuracies": [reached.get(epoch) for epoch in LOGGED]}


def units() -> list[tuple[Cell, tuple[int, int], int]]:
    """Return all trainings: the whole design with the first seed, then with the second."""
    return [(cell, wave, seed) for seed in SEEDS for cell in CELLS for wave in waves()]


def identity(row: dict[str, Any]) -> str:
    """Return the key of a row."""
    return json.dumps([row["cell"], row["wave"], row["seed"]], sort_keys=True)


def run(workers: int | None) -> None:
    """Train the networks that the results file lacks."""
    stored = json.loads(FILE.read_text()) if FILE.exists() else {"epochs": list(LOGGED), "rows": [], "runs": []}
    done = {identity(row) for row in stored["rows"]}
    missing = [u for u in units() if json.dumps([asdict(u[0]), list(u[1]), u[2]], sort_keys=True) not in done]
    stored["runs"].append(environment(torch.device("cpu")))
    add_rows(FILE, stored | {"num_units": len(units())}, train, missing, workers)


def score() -> None:
    """Print how energies order accuracies in each cell, and the effects beside those that were registered."""
    stored, registered = json.loads(FILE.read_text()), tomllib.loads(REGISTERED.read_text("utf8"))
    if len(stored["rows"]) < len(units()):
        raise SystemExit(f"{len(stored['rows'])} of {len(units())} networks: an incomplete design has no score")
    tables, atlas = accuracies(stored["rows"]), load_atlas()
    cnn = atlas.waves[list(atlas.entries).index("cnn")]
    energies = {"lenet": wave_energies(), "cnn": np.array([cnn[wave] for wave in waves()])}
    for cell, table in tables.items():
        print(cell, orders(energies[cell.architecture], table), f"middle {100 * table[:, MIDDLE].mean():.1f}")
    for name, response, (value, low, high) in effects(tables):
        expected = registered["effects"][name][response]
        met = "yes" if expected[0] <= value <= expected[1] else "no"
        print(f"{name:<16} {response:<12} {value:7.3f} ({low:.3f} to {high:.3f}), predicted {expected}: {met}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "score"))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    run(options.workers) if options.what == "run" else score()
