"""When does training forget its NADs? Networks on D(v) by optimiser, learning rate, label noise and weight decay.

``python benchmarks/forgetting.py run`` trains all networks, one per core, and resumes where it was stopped.
``python benchmarks/forgetting.py score`` compares the result with ``book/preregistered/forgetting.toml``.
Results go to ``book/results/studies/forgetting.json``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nads_book.atlas.entries import ATLAS
from nads_book.experiments.frequency_maps import LEARNED
from nads_book.experiments.statistics import area_under_curve, rank_correlation
from nads_book.experiments.stored import study_path
from nads_book.experiments.waves import predicted_energies
from result_files import write_compact
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

import nads_core as nc
from nads_core.kernels import faster_max_pooling
from nads_core.runtime.provenance import environment
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.recipes import batches

FILE = study_path("forgetting.json")
REGISTERED = Path(__file__).parents[1] / "book" / "preregistered" / "forgetting.toml"
NUM_SAMPLES, NOISE_STD, SEEDS = 10_000, 3.0, (0, 1)
LOGGED = (1, 2, 5, 10, 20)  # epochs after which the test accuracy is measured
WAVES = 16
RATES = {"sgd": (0.05, 0.5, 2.0), "momentum": (0.005, 0.05, 0.2), "adam": (1e-4, 1e-3, 1e-2)}
LABEL_NOISE, WEIGHT_DECAY = (0.0, 0.2), (0.0, 5e-4)
# Standard deviations of the margin, with mean 1: the classes overlap, and the best accuracy is 98, 84 and 69 %.
OVERLAPS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Cell:
    """One treatment of a network.

    Args:
        architecture: "lenet", or the name of an entry of the atlas.
        optimiser: "sgd", "momentum" (0.9) or "adam"; the rate falls linearly to zero, as in the paper.
        rate: learning rate of the first step.
        label_noise: share of the training labels that are replaced by the other class.
        weight_decay: coefficient of the L2 penalty (decoupled with Adam).
        overlap: standard deviation of the margin of each sample, in training and test.
    """

    architecture: str = "lenet"
    optimiser: str = "sgd"
    rate: float = 0.5
    label_noise: float = 0.0
    weight_decay: float = 0.0
    overlap: float = 0.0


BASE = Cell()
FACTORIAL = [
    Cell("lenet", optimiser, rate, noise, decay)
    for optimiser, rates in RATES.items()
    for rate, noise, decay in itertools.product(rates, LABEL_NOISE, WEIGHT_DECAY)
]
SECOND = [
    replace(BASE, architecture="cnn", optimiser=optimiser, rate=rate)
    for optimiser, rate in (("sgd", 0.5), ("sgd", 0.05), ("adam", 1e-3), ("adam", 1e-2))
]
CELLS = [*FACTORIAL, *SECOND, *(replace(BASE, overlap=overlap) for overlap in OVERLAPS)]


def waves() -> list[tuple[int, int]]:
    """Return 16 waves of the published grid at equal steps of log energy, from .42 to .0095 of LeNet's largest."""
    energies, chosen = predicted_energies("lenet"), list[tuple[int, int]]()
    for goal in np.geomspace(0.42, 0.0095, WAVES):
        left = [k for k in energies if k not in chosen]
        chosen.append(min(left, key=lambda k: (abs(math.log(energies[k] / goal)), k)))
    return chosen


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
    """Train one network with the paper's batches, clipping and schedule, and return its row."""
    torch.set_num_threads(1)
    direction = nc.fourier_direction(tuple(wave), size=32)
    (x, y), test = (dataset(direction, cell, seed_sequence(seed, split) % 2**31) for split in (10, 11))
    generator = torch.Generator().manual_seed(seed_sequence(seed, 12))
    wrong = torch.rand(NUM_SAMPLES, generator=generator) < cell.label_noise
    y = torch.where(wrong, 1 - y, y)
    architecture = nc.LENET if cell.architecture == "lenet" else ATLAS[cell.architecture].architecture
    with seeded(seed_sequence(seed, 13)):
        network = faster_max_pooling(architecture.build(1, 32, 2)).train()
    optimiser, recipe = optimiser_of(network, cell), nc.SEPARABLE_RECIPE
    total, accuracies = recipe.num_steps(NUM_SAMPLES), {}
    per_epoch = total // recipe.epochs
    for done, batch in enumerate(batches(NUM_SAMPLES, recipe, seed), 1):
        for group in optimiser.param_groups:
            group["lr"] = cell.rate * (1 - (done - 1) / total)
        optimiser.zero_grad()
        F.cross_entropy(network(x[batch]), y[batch]).backward()
        if cell.optimiser != "adam":  # whose steps do not grow with the gradient
            nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
        optimiser.step()
        if done % per_epoch == 0 and done // per_epoch in LOGGED:
            accuracies[done // per_epoch] = round(nc.accuracy(network.eval(), test), 5)
            network.train()
    row = {"wave": list(wave), "seed": seed, "train_accuracy": round(nc.accuracy(network.eval(), (x, y)), 5)}
    return {"cell": asdict(cell), **row, "test_accuracies": [accuracies.get(epoch) for epoch in LOGGED]}


def units() -> list[tuple[Cell, tuple[int, int], int]]:
    """Return all trainings: the whole design with the first seed, then with the second."""
    return [(cell, wave, seed) for seed in SEEDS for cell in CELLS for wave in waves()]


def identity(row: dict[str, Any]) -> str:
    """Return the key of a row."""
    return json.dumps([row["cell"], row["wave"], row["seed"]], sort_keys=True)


def run(workers: int | None) -> None:
    """Train the networks that the results file lacks."""
    from loky import as_completed, get_reusable_executor

    stored = json.loads(FILE.read_text()) if FILE.exists() else {"epochs": list(LOGGED), "rows": [], "runs": []}
    done = {identity(row) for row in stored["rows"]}
    missing = [u for u in units() if json.dumps([asdict(u[0]), list(u[1]), u[2]], sort_keys=True) not in done]
    stored["runs"].append(environment(torch.device("cpu")))
    pool = get_reusable_executor(workers, env={"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"})
    futures = [pool.submit(train, *unit) for unit in missing]
    bar = tqdm(as_completed(futures), total=len(units()), initial=len(done), unit="network")
    try:
        for count, future in enumerate(bar, 1):
            stored["rows"].append(future.result())
            if count % 16 == 0:
                write_compact(FILE, stored)
    finally:
        write_compact(FILE, stored | {"num_units": len(units())})
        pool.shutdown(kill_workers=True)


def responses(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return what the registration predicts, from the rows of one cell, and of one seed or of both.

    ``area``: share of pairs of a learned wave and another in which the learned one has more energy at initialisation.
    ``correlation``: rank correlation of accuracy with that energy. ``middle``: mean accuracy of the eight waves in the
    middle, in %. ``early``: area after the first two epochs.
    """
    energies, order = predicted_energies("lenet"), waves()
    last = {k: np.mean([r["test_accuracies"][-1] for r in rows if tuple(r["wave"]) == k]) for k in order}
    early = {k: np.mean([r["test_accuracies"][1] for r in rows if tuple(r["wave"]) == k]) for k in order}
    values = np.array([energies[k] for k in order])

    def area(accuracies: dict[tuple[int, int], float]) -> float:
        learned = np.array([accuracies[k] > LEARNED for k in order])
        return float("nan") if learned.all() or not learned.any() else float(area_under_curve(values, learned))

    accuracies = np.array([last[k] for k in order])
    middle = 100 * accuracies[WAVES // 4 : -WAVES // 4].mean()
    return {
        "area": area(last), "early": area(early), "middle": float(middle),
        "correlation": float(rank_correlation(values, accuracies)),
    }  # fmt: skip


def resampled_differences(
    first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]], name: str, draws: int = 1_000
) -> tuple[float, float, float]:
    """Return mean(first) - mean(second) of the accuracies at the waves in the middle in points, or of the correlation.

    Intervals draw waves again, with their trainings of all cells and seeds, and the seeds within each wave.
    """
    generator, order = np.random.default_rng(0), waves()
    chosen = order[WAVES // 4 : -WAVES // 4] if name == "middle" else order

    def table(rows: Sequence[dict[str, Any]]) -> np.ndarray:  # (seeds, waves), means over cells
        return np.array(
            [
                [
                    np.mean([r["test_accuracies"][-1] for r in rows if tuple(r["wave"]) == k and r["seed"] == s])
                    for k in chosen
                ]
                for s in SEEDS
            ]
        )

    tables, energies = (table(first), table(second)), np.array([predicted_energies("lenet")[k] for k in chosen])

    def difference(seeds: np.ndarray, places: np.ndarray) -> float:
        means = [t[seeds, places].mean(0) for t in tables]
        if name == "middle":
            return float(100 * (means[0].mean() - means[1].mean()))
        return float(np.subtract(*(rank_correlation(energies[places], m) for m in means)))

    everything = np.arange(len(chosen))
    value = difference(np.arange(len(SEEDS))[:, None], everything)
    drawn = [
        difference(
            generator.integers(len(SEEDS), size=(len(SEEDS), len(chosen))), generator.choice(everything, len(chosen))
        )
        for _ in range(draws)
    ]
    return value, *np.nanquantile(drawn, (0.025, 0.975)).tolist()


def effects(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, tuple[float, float, float]]]:
    """Yield (effect, response, value with interval) of the factorial."""
    base = [row for row in rows if Cell(**row["cell"]) in FACTORIAL]
    best = {"sgd": 0.5, "momentum": 0.05, "adam": 1e-3}

    def where(**fields: Any) -> list[dict[str, Any]]:
        return [row for row in base if all(row["cell"][name] == value for name, value in fields.items())]

    pairs = {
        "label noise": (where(label_noise=0.2), where(label_noise=0.0)),
        "weight decay": (where(weight_decay=5e-4), where(weight_decay=0.0)),
        "low rate, sgd": (where(optimiser="sgd", rate=0.05), where(optimiser="sgd", rate=0.5)),
        "high rate, sgd": (where(optimiser="sgd", rate=2.0), where(optimiser="sgd", rate=0.5)),
        "momentum": (where(optimiser="momentum", rate=best["momentum"]), where(optimiser="sgd", rate=best["sgd"])),
        "adam": (where(optimiser="adam", rate=best["adam"]), where(optimiser="sgd", rate=best["sgd"])),
        "high rate, adam": (where(optimiser="adam", rate=1e-2), where(optimiser="adam", rate=best["adam"])),
    }
    for name, (first, second) in pairs.items():
        for response in ("middle", "correlation"):
            yield name, response, resampled_differences(first, second, response)


def score() -> None:
    """Print responses by cell, and the effects beside those that were registered."""
    stored, registered = json.loads(FILE.read_text()), tomllib.loads(REGISTERED.read_text("utf8"))
    if len(stored["rows"]) < len(units()):
        raise SystemExit(f"{len(stored['rows'])} of {len(units())} networks: an incomplete design has no score")
    for cell in CELLS:
        rows = [row for row in stored["rows"] if Cell(**row["cell"]) == cell]
        print(cell, {name: round(value, 3) for name, value in responses(rows).items()})
    for name, response, (value, low, high) in effects(stored["rows"]):
        expected = registered["effects"][name][response]
        met = "yes" if expected[0] <= value <= expected[1] else "no"
        print(f"{name:<16} {response:<12} {value:7.3f} ({low:.3f} to {high:.3f}), predicted {expected}: {met}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "score"))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    run(options.workers) if options.what == "run" else score()
