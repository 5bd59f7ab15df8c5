"""When does training forget its NADs? Networks on D(v) by optimiser, learning rate, label noise and weight decay.

``python benchmarks/forgetting.py run`` trains all networks, one per core, and resumes where it was stopped. With
``--device cuda`` it trains those of one architecture and optimiser together, with the same weights, data and batches.
``python benchmarks/forgetting.py score`` compares the result with ``book/preregistered/forgetting.toml``.
Results go to ``book/results/studies/forgetting.json``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nads_book.atlas.entries import ATLAS
from nads_book.atlas.stored import load_atlas
from nads_book.experiments.stored import study_path
from nads_book.studies.forgetting import (
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
from result_files import add_rows, write_compact
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn import functional as F

import nads_core as nc
from nads_core.kernels import faster_max_pooling
from nads_core.runtime.provenance import environment
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.recipes import batches

FILE = study_path("forgetting.json")
REGISTERED = Path(__file__).parents[1] / "book" / "preregistered" / "forgetting.toml"
Unit = tuple[Cell, tuple[int, int], int]  # of the design: treatment, wave and seed
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


def train_together(group: Sequence[Unit], device: torch.device) -> list[dict[str, Any]]:
    """Train B networks of one architecture and one kind of optimiser in shared steps; return their rows.

    Each is that of `train` up to rounding.
    """
    cells, recipe, count = [cell for cell, _, _ in group], nc.SEPARABLE_RECIPE, len(group)
    pairs = sorted({(tuple(wave), seed) for _, wave, seed in group})  # of weights, data and batches
    owns = [seed_sequence(seed, waves().index(wave)) for wave, seed in pairs]
    which = torch.tensor([pairs.index((tuple(wave), seed)) for _, wave, seed in group], device=device)  # (B,)
    directions = torch.stack([nc.fourier_direction(wave, size=32) for wave, _ in pairs]).to(device)  # (P, 1, 32, 32)

    def drawn(part: int) -> list[Tensor]:
        """Return images (P, N, 1, 32, 32), labels (B, N), and the overlap's coefficients (P, N), of 10 or 11."""
        images, labels, normal, wrong = [], [], [], []
        for own, (wave, _) in zip(owns, pairs, strict=True):
            seed = seed_sequence(own, part) % 2**31
            x, y = dataset(nc.fourier_direction(wave, size=32), Cell(), seed)
            images.append(x.to(device))
            labels.append(y)
            generator = torch.Generator().manual_seed(seed_sequence(seed, 17))
            normal.append(torch.randn(NUM_SAMPLES, 1, 1, 1, generator=generator).flatten())
            wrong.append(torch.rand(NUM_SAMPLES, generator=torch.Generator().manual_seed(seed_sequence(own, 12))))
        truth = torch.stack(labels).to(device)[which]
        noise = torch.tensor([cell.label_noise for cell in cells], device=device)[:, None] if part == 10 else 0
        truth = torch.where(torch.stack(wrong).to(device)[which] < noise, 1 - truth, truth)
        return [torch.stack(images), truth, torch.stack(normal).to(device)]

    train_set, test_set = drawn(10), drawn(11)
    overlap = torch.tensor([cell.overlap for cell in cells], device=device)

    def part_of(data: Sequence[Tensor], samples: Tensor) -> tuple[Tensor, Tensor]:
        """Return images (B, n, 1, 32, 32) and labels (B, n) at indices (B, n)."""
        images, labels, normal = data
        along = (overlap[:, None] * normal[which[:, None], samples])[..., None, None, None] * directions[which][:, None]
        return images[which[:, None], samples] + along, labels.gather(1, samples)

    name = cells[0].architecture
    architecture = nc.LENET if name == "lenet" else ATLAS[name].architecture
    networks = []
    for own in owns:
        with seeded(seed_sequence(own, 13)):
            networks.append(architecture.build(1, 32, 2).to(device).train())
    model, (weights, buffers) = networks[0], stack_module_state(networks)
    if buffers:
        raise ValueError(f"{name} has buffers, which are not shared in a step")
    weights = {key: tensor.detach()[which] for key, tensor in weights.items()}  # (B, ...)

    def logits(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(model, parameters, (x,))

    def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(logits(parameters, x), y)

    @torch.no_grad()
    def accuracy(data: Sequence[Tensor]) -> list[float]:
        right = torch.zeros(count, device=device)
        for samples in torch.arange(NUM_SAMPLES, device=device).split(500):
            x, y = part_of(data, samples.expand(count, -1))
            right += (vmap(logits)(weights, x).argmax(2) == y).sum(1)
        return [round(float(value), 5) for value in right / NUM_SAMPLES]

    def each(values: Sequence[float], like: Tensor) -> Tensor:
        return torch.tensor(values, device=device).view(-1, *[1] * (like.dim() - 1))

    adam, step = cells[0].optimiser == "adam", vmap(grad(loss))
    first, second = ({key: torch.zeros_like(w) for key, w in weights.items()} for _ in range(2))
    total, reached = recipe.num_steps(NUM_SAMPLES), dict[int, list[float]]()
    per_epoch = total // recipe.epochs
    orders = zip(*(batches(NUM_SAMPLES, recipe, own % 2**31) for own in owns), strict=True)
    for done, order in enumerate(orders, 1):
        gradients = step(weights, *part_of(train_set, torch.stack(order).to(device)[which]))
        rates = [cell.rate * (1 - (done - 1) / total) for cell in cells]
        if not adam:
            norms = sum(g.flatten(1).square().sum(1) for g in gradients.values()).sqrt()
            scale = (recipe.clip_norm / (norms + 1e-6)).clamp(max=1)
        for key, w in weights.items():
            g, rate = gradients[key], each(rates, w)
            decay = each([cell.weight_decay for cell in cells], w)
            if adam:
                w.mul_(1 - rate * decay)
                first[key].lerp_(g, 0.1)
                second[key].mul_(0.999).addcmul_(g, g, value=0.001)
                mean, square = first[key] / (1 - 0.9**done), second[key] / (1 - 0.999**done)
                w.sub_(rate * mean / (square.sqrt() + 1e-8))
            else:
                g = g * scale.view(rate.shape) + decay * w
                momentum = each([0.9 * (cell.optimiser == "momentum") for cell in cells], w)
                first[key].mul_(momentum).add_(g)
                w.sub_(rate * first[key])
        if done % per_epoch == 0 and done // per_epoch in LOGGED:
            reached[done // per_epoch] = accuracy(test_set)
    fitted = accuracy(train_set)
    return [
        {
            "cell": asdict(cell), "wave": list(wave), "seed": seed, "train_accuracy": fitted[b],
            "test_accuracies": [reached[epoch][b] if epoch in reached else None for epoch in LOGGED],
        }
        for b, (cell, wave, seed) in enumerate(group)
    ]  # fmt: skip


def groups(missing: Sequence[Unit], size: int) -> Iterator[list[Unit]]:
    """Yield units that can be trained together, at most ``size`` of them."""

    def kind(unit: Unit) -> tuple[str, bool]:
        return unit[0].architecture, unit[0].optimiser == "adam"

    for _, members in itertools.groupby(sorted(missing, key=kind, reverse=True), kind):
        found = list(members)
        yield from (found[i : i + size] for i in range(0, len(found), size))


def units() -> list[Unit]:
    """Return all trainings: the whole design with the first seed, then with the second."""
    return [(cell, wave, seed) for seed in SEEDS for cell in CELLS for wave in waves()]


def identity(row: dict[str, Any]) -> str:
    """Return the key of a row."""
    return json.dumps([row["cell"], row["wave"], row["seed"]], sort_keys=True)


def run(workers: int | None, device: torch.device, together: int) -> None:
    """Train the networks that the results file lacks."""
    stored = json.loads(FILE.read_text()) if FILE.exists() else {"epochs": list(LOGGED), "rows": [], "runs": []}
    done = {identity(row) for row in stored["rows"]}
    missing = [u for u in units() if json.dumps([asdict(u[0]), list(u[1]), u[2]], sort_keys=True) not in done]
    stored["runs"].append(environment(device))
    if device.type != "cpu":
        torch.backends.cudnn.allow_tf32 = False  # as on a CPU
        for group in groups(missing, together):
            start = time.perf_counter()
            stored["rows"] += train_together(group, device)
            write_compact(FILE, stored | {"num_units": len(units())})
            print(f"{len(group)} networks of {group[0][0]}: {time.perf_counter() - start:.0f} s", flush=True)
        return
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
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    parser.add_argument("--together", type=int, default=288, help="networks in a step on a GPU")
    options = parser.parse_args()
    run(options.workers, options.device, options.together) if options.what == "run" else score()
