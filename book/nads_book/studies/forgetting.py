"""When does training forget its NADs? Networks on D(v) by optimiser, learning rate, label noise and weight decay.

On a GPU, networks of one architecture and optimiser are trained together, with the same weights, data and batches as
one by one. ``book/preregistered/forgetting.toml`` has what was expected.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn import functional as F

import nads_core as nc
from nads_book.analysis.frequency_maps import LEARNED
from nads_book.analysis.statistics import (
    area_under_curve,
    rank_correlation,
    resampled,
    with_interval,
)
from nads_book.analysis.waves import predicted_energies
from nads_book.atlas.entries import ATLAS
from nads_book.experiments.stored import load_registered
from nads_book.experiments.study import Context, Estimate, Evidence, Keep, Row, Unit
from nads_book.experiments.study_files import FileStudy
from nads_book.experiments.trainer import training_steps
from nads_core.data.fourier import Frequency
from nads_core.kernels import faster_max_pooling
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.recipes import batches

WAVES, SEEDS = 16, (0, 1)
NUM_SAMPLES, NOISE_STD = 10_000, 3.0
LOGGED = (1, 2, 5, 10, 20)  # epochs after which the test accuracy is measured
TOGETHER = 288  # networks in a step on a GPU
MIDDLE = slice(WAVES // 4, -WAVES // 4)  # of the waves, ordered by energy
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


Training = tuple[Cell, tuple[int, int], int]  # treatment, wave and seed
FACTORIAL = [
    Cell("lenet", name, *rest)
    for name in RATES
    for rest in itertools.product(RATES[name], LABEL_NOISE, WEIGHT_DECAY)
]
SECOND = [
    Cell("cnn", "sgd", 0.5),
    Cell("cnn", "sgd", 0.05),
    Cell("cnn", "adam", 1e-3),
    Cell("cnn", "adam", 1e-2),
]
CELLS = [*FACTORIAL, *SECOND, *(Cell(overlap=overlap) for overlap in OVERLAPS)]


@lru_cache
def waves() -> list[Frequency]:
    """Return 16 waves of the published grid at equal steps of log energy, from .42 to .0095 of LeNet's largest."""
    energies, chosen = predicted_energies("lenet"), list[Frequency]()
    for goal in np.geomspace(0.42, 0.0095, WAVES):
        left = [k for k in energies if k not in chosen]
        chosen.append(min(left, key=lambda k: (abs(math.log(energies[k] / goal)), k)))
    return chosen


def wave_energies() -> np.ndarray:
    """Return the energies of `waves` in LeNets at initialisation, (16,), the largest of the grid 1."""
    return np.array([predicted_energies("lenet")[k] for k in waves()])


def accuracies(
    rows: Sequence[Mapping[str, Any]], time: int = -1, seeds: Sequence[int] = SEEDS
) -> dict[Cell, np.ndarray]:
    """Return the test accuracies of the cells all of whose networks are stored, (seeds, waves), in [0, 1].

    Args:
        rows: rows of the results file.
        time: index into the logged epochs.
        seeds: seeds that a cell needs.
    """
    found: dict[Cell, np.ndarray] = {}
    for row in (row for row in rows if row["seed"] in seeds):
        table = found.setdefault(Cell(**row["cell"]), np.full((len(seeds), WAVES), np.nan))
        table[seeds.index(row["seed"]), waves().index(tuple(row["wave"]))] = row["test_accuracies"][
            time
        ]
    return {cell: table for cell, table in found.items() if not np.isnan(table).any()}


def orders(energies: np.ndarray, table: np.ndarray) -> dict[str, float]:
    """Return how energies (n,) order accuracies (seeds, n).

    ``area``: share of pairs of a learned and another wave in which the learned one has more energy (NaN if all or none
    are learned); ``correlation``: rank correlation; ``learned``: number of waves above 55 %, by their mean.
    """
    means = table.mean(0)
    learned = means > LEARNED
    area, correlation = area_under_curve(energies, learned), rank_correlation(energies, means)
    return {"area": area, "correlation": correlation, "learned": int(learned.sum())}


def contrasts() -> dict[str, tuple[list[Cell], ...]]:
    """Return the two sets of cells of the factorial that each registered effect compares."""

    def where(**fields: Any) -> list[Cell]:
        return [cell for cell in FACTORIAL if cell == replace(cell, **fields)]

    def rates(optimiser: str, *places: int) -> tuple[list[Cell], ...]:
        return tuple(where(optimiser=optimiser, rate=RATES[optimiser][place]) for place in places)

    sgd = where(optimiser="sgd", rate=0.5)
    return {
        "label noise": (where(label_noise=0.2), where(label_noise=0.0)),
        "weight decay": (where(weight_decay=5e-4), where(weight_decay=0.0)),
        "low rate, sgd": rates("sgd", 0, 1), "high rate, sgd": rates("sgd", 2, 1),
        "momentum": (where(optimiser="momentum", rate=0.05), sgd), "adam": (where(optimiser="adam", rate=1e-3), sgd),
        "high rate, adam": rates("adam", 2, 1),
    }  # fmt: skip


def effects(
    tables: Mapping[Cell, np.ndarray], draws: int = 1_000
) -> Iterator[tuple[str, str, tuple[float, float, float]]]:
    """Yield each registered effect, the response, and the difference of the two sets' means with a 95 % interval.

    Responses are ``middle``, the mean accuracy of the eight waves in the middle in points, and ``correlation``.
    Intervals draw waves again, each with its own networks of all cells and seeds.
    """
    energies = wave_energies()

    def middle(_: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
        return float(100 * (first.mean() - second.mean()))

    def correlation(energies: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
        return rank_correlation(energies, first.mean(1)) - rank_correlation(
            energies, second.mean(1)
        )

    for name, sides in contrasts().items():
        columns = (
            energies,
            *(np.mean([tables[cell] for cell in cells], axis=0).T for cells in sides),
        )  # (waves, seeds)
        drawn = resampled(middle, *(column[MIDDLE] for column in columns), num_resamples=draws)
        yield name, "middle", with_interval(drawn)
        yield (
            name,
            "correlation",
            with_interval(resampled(correlation, *columns, num_resamples=draws)),
        )


def optimiser_of(network: nn.Module, cell: Cell) -> torch.optim.Optimizer:
    """Return the optimiser of a cell."""
    parameters = network.parameters()
    if cell.optimiser == "adam":
        return torch.optim.AdamW(parameters, lr=cell.rate, weight_decay=cell.weight_decay)
    momentum = 0.9 if cell.optimiser == "momentum" else 0.0
    return torch.optim.SGD(
        parameters, lr=cell.rate, momentum=momentum, weight_decay=cell.weight_decay
    )


def dataset(direction: Tensor, cell: Cell, seed: int) -> tuple[Tensor, Tensor]:
    """Return samples of D(v) whose margins have the overlap of the cell: images (N, 1, 32, 32) and labels (N,)."""
    images, labels = nc.separable_dataset(direction, NUM_SAMPLES, noise_std=NOISE_STD, seed=seed)
    if cell.overlap:
        generator = torch.Generator().manual_seed(seed_sequence(seed, 17))
        images += cell.overlap * torch.randn(NUM_SAMPLES, 1, 1, 1, generator=generator) * direction
    return images, labels


def train_one(cell: Cell, wave: Frequency, seed: int) -> dict[str, Any]:
    """Train one network with the paper's batches, clipping and schedule, and return its row.

    Weights, data and batches are the same for all cells, and others for each wave and seed.
    """
    own = seed_sequence(seed, waves().index(wave))
    direction = nc.fourier_direction(wave, size=32)
    (x, y), test = (
        dataset(direction, cell, seed_sequence(own, split) % 2**31) for split in (10, 11)
    )
    generator = torch.Generator().manual_seed(seed_sequence(own, 12))
    wrong = torch.rand(NUM_SAMPLES, generator=generator) < cell.label_noise
    y = torch.where(wrong, 1 - y, y)
    architecture = (
        nc.LENET if cell.architecture == "lenet" else ATLAS[cell.architecture].architecture
    )
    with seeded(seed_sequence(own, 13)):
        network = faster_max_pooling(architecture.build(1, 32, 2)).train()
    optimiser, recipe = optimiser_of(network, cell), nc.SEPARABLE_RECIPE
    total, reached = recipe.num_steps(NUM_SAMPLES), {}
    per_epoch = total // recipe.epochs
    for done, _ in training_steps(
        network, (x, y), optimiser, batches(NUM_SAMPLES, recipe, own % 2**31),
        rate=lambda step: cell.rate * (1 - step / total),
        clip_norm=None if cell.optimiser == "adam" else recipe.clip_norm,  # steps of Adam do not grow with the gradient
    ):  # fmt: skip
        if done % per_epoch == 0 and done // per_epoch in LOGGED:
            reached[done // per_epoch] = round(nc.accuracy(network.eval(), test), 5)
            network.train()
    return {
        "train_accuracy": round(nc.accuracy(network.eval(), (x, y)), 5),
        "test_accuracies": [reached.get(epoch) for epoch in LOGGED],
    }


def train_together(group: Sequence[Training], device: torch.device) -> list[dict[str, Any]]:
    """Train B networks of one architecture and one kind of optimiser in shared steps; return their rows.

    Each is that of `train_one` up to rounding.
    """
    cells, recipe, count = [cell for cell, _, _ in group], nc.SEPARABLE_RECIPE, len(group)
    pairs = sorted({(wave, seed) for _, wave, seed in group})  # of weights, data and batches
    owns = [seed_sequence(seed, waves().index(wave)) for wave, seed in pairs]
    which = torch.tensor(
        [pairs.index((wave, seed)) for _, wave, seed in group], device=device
    )  # (B,)
    directions = torch.stack([nc.fourier_direction(wave, size=32) for wave, _ in pairs]).to(
        device
    )  # (P, 1, 32, 32)

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
            wrong.append(
                torch.rand(
                    NUM_SAMPLES, generator=torch.Generator().manual_seed(seed_sequence(own, 12))
                )
            )
        truth = torch.stack(labels).to(device)[which]
        noise = (
            torch.tensor([cell.label_noise for cell in cells], device=device)[:, None]
            if part == 10
            else 0
        )
        truth = torch.where(torch.stack(wrong).to(device)[which] < noise, 1 - truth, truth)
        return [torch.stack(images), truth, torch.stack(normal).to(device)]

    train_set, test_set = drawn(10), drawn(11)
    overlap = torch.tensor([cell.overlap for cell in cells], device=device)

    def part_of(data: Sequence[Tensor], samples: Tensor) -> tuple[Tensor, Tensor]:
        """Return images (B, n, 1, 32, 32) and labels (B, n) at indices (B, n)."""
        images, labels, normal = data
        along = (overlap[:, None] * normal[which[:, None], samples])[
            ..., None, None, None
        ] * directions[which][:, None]
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
            "train_accuracy": fitted[b],
            "test_accuracies": [
                reached[epoch][b] if epoch in reached else None for epoch in LOGGED
            ],
        }
        for b in range(count)
    ]


def groups(missing: Sequence[Training], size: int) -> Iterator[list[Training]]:
    """Yield units that can be trained together, at most ``size`` of them."""

    def kind(unit: Training) -> tuple[str, bool]:
        return unit[0].architecture, unit[0].optimiser == "adam"

    for _, members in itertools.groupby(sorted(missing, key=kind, reverse=True), kind):
        found = list(members)
        yield from (found[i : i + size] for i in range(0, len(found), size))


class Forgetting(FileStudy):
    """When does training forget its NADs? 43 treatments, 16 waves, 2 seeds (``forgetting.toml``)."""

    name = "forgetting"
    file = "forgetting.json"
    summary = (
        "accuracy by wave under 43 treatments: optimiser, rate, label noise, weight decay, overlap"
    )
    unit_fields = ("cell", "wave", "seed")

    def units(self) -> list[Unit]:
        """Return the whole design with the first seed, then with the second."""
        return [
            {"cell": asdict(cell), "wave": list(wave), "seed": seed}
            for seed in SEEDS for cell in CELLS for wave in waves()
        ]  # fmt: skip

    def facts(self) -> dict[str, Any]:
        return {"epochs": list(LOGGED)}

    def run(self, unit: Unit, context: Context) -> Row:
        return train_one(*_training(unit))

    def run_many(self, units: Sequence[Unit], context: Context, keep: Keep) -> None:
        """Train networks in shared steps on a GPU, one per process on a CPU."""
        if context.device.type == "cpu":
            return super().run_many(units, context, keep)
        torch.backends.cudnn.allow_tf32 = False  # as on a CPU
        for group in groups([_training(unit) for unit in units], TOGETHER):
            for (cell, wave, seed), row in zip(
                group, train_together(group, context.device), strict=True
            ):
                keep({"cell": asdict(cell), "wave": list(wave), "seed": seed}, [row])

    def score(self, rows: Sequence[Row]) -> Evidence:
        """Compare the registered effects with their predicted ranges, and order the waves of each treatment.

        Raises:
            ValueError: for an incomplete design, which has no score.
        """
        if missing := self.missing(rows):
            raise ValueError(
                f"{len(missing)} of {len(self.units())} networks are missing: complete the design first"
            )
        tables = accuracies(rows)
        estimates: dict[str, dict[str, Estimate]] = {}
        met: dict[str, bool | None] = {}
        registered = load_registered("forgetting")["effects"]
        for effect, response, estimate in effects(tables):
            estimates.setdefault(effect, {})[response] = estimate
            low, high = registered[effect][response]
            met[f"{effect}, {response}"] = bool(low <= estimate[0] <= high)
        return Evidence(estimates, met)


def _training(unit: Unit) -> Training:
    ky, kx = unit["wave"]
    return Cell(**unit["cell"]), (ky, kx), unit["seed"]
