"""Do NADs rank architectures? Measures of random networks of NAS-Bench-201 and NAS-Bench-Macro, and
the contest.

`nas_contest` compares these measures with the published tables in ``book/results/nas_tables``,
which have licences of their own.
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import torch
from torch import Tensor, nn

import nads_core as nc
from nads_book.experiments import (
    Context,
    Facts,
    FileStudy,
    Row,
    Rows,
    Scored,
    Unit,
    factorial,
    rounded,
)
from nads_book.photos import load_images
from nads_book.studies.definitions import sampled_halves
from nads_book.studies.nas_contest import macro, proxies, score

# Digits 0 to 4.
OPERATIONS = ("skip_connect", "none", "nor_conv_3x3", "nor_conv_1x1", "avg_pool_3x3")
EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))  # of the six digits of a cell
NUM_NETWORKS, NUM_IMAGES, SHAPE = 64, 5_000, (3, 32, 32)
NUM_MACRO = 300  # keys of NAS-Bench-Macro, drawn evenly from the ranks of accuracy
GOALS = {"alone": 0.75, "with NADs": 0.88, "upper half, alone": 0.5}  # registered
GAIN = (-0.03, 0.02)  # in which the gain over jacov and synflow was expected
LEADING = (10, 50)  # numbers of principal components


class Zero(nn.Module):
    """No connection."""

    def forward(self, x: Tensor) -> Tensor:
        """Return zeros of the shape of x."""
        return torch.zeros_like(x)


def convolution(in_channels: int, out_channels: int, side: int, stride: int = 1) -> nn.Sequential:
    """Return ReLU, convolution and batch norm."""
    return nn.Sequential(nn.ReLU(), *normed(in_channels, out_channels, side, stride, side // 2))


def operation(name: str, channels: int) -> nn.Module:
    """Return the operation of an edge."""
    if name.startswith("nor_conv"):
        return convolution(channels, channels, int(name[-1]))
    if name == "avg_pool_3x3":
        return nn.AvgPool2d(3, 1, 1, count_include_pad=False)
    return nn.Identity() if name == "skip_connect" else Zero()


class Cell(nn.Module):
    """A cell of NAS-Bench-201: node 3 of a graph whose edges have operations, from node 0, the
    input.
    """

    def __init__(self, digits: str, channels: int):
        super().__init__()
        self.edges = nn.ModuleList(operation(OPERATIONS[int(digit)], channels) for digit in digits)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum at node 3."""
        nodes = [x]
        for node in (1, 2, 3):
            terms = [
                op(nodes[a]) for (a, b), op in zip(EDGES, self.edges, strict=True) if b == node
            ]
            nodes.append(torch.stack(terms).sum(0))
        return nodes[3]


class Reduction(nn.Module):
    """A residual block that halves the image and doubles the channels."""

    def __init__(self, channels: int):
        super().__init__()
        self.main = nn.Sequential(
            convolution(channels, 2 * channels, 3, 2), convolution(2 * channels, 2 * channels, 3)
        )
        self.short = nn.Sequential(
            nn.AvgPool2d(2), nn.Conv2d(channels, 2 * channels, 1, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both paths."""
        return self.main(x) + self.short(x)


def nas_bench_201(digits: str, num_classes: int = 10) -> nn.Sequential:
    """Return a network of NAS-Bench-201 (Dong and Yang 2020) from the six digits of its cell."""
    if not re.fullmatch(r"[0-4]{6}", digits):
        raise ValueError(f"a cell has six digits from 0 to 4, got {digits!r}")
    layers = normed(3, 16, 3, 1, 1)
    for channels in (16, 32, 64):
        # Drawn at each width, though the first cells need none: weights in stored rows follow it.
        reduction = Reduction(channels // 2)
        layers += [reduction] if channels > 16 else []
        layers += [Cell(digits, channels) for _ in range(5)]
    layers += [nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(64, num_classes))


def normed(
    in_channels: int,
    out_channels: int,
    side: int,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
) -> list[nn.Module]:
    """Return a convolution without biases and its batch norm."""
    layer = nn.Conv2d(in_channels, out_channels, side, stride, padding, groups=groups, bias=False)
    return [layer, nn.BatchNorm2d(out_channels)]


class InvertedResidual(nn.Module):
    """A block of MobileNetV2: 1 x 1 expansion, depthwise convolution, 1 x 1 projection."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, expansion: int, side: int):
        super().__init__()
        wide = in_channels * expansion
        self.skip = stride == 1 and in_channels == out_channels
        self.main = nn.Sequential(
            *normed(in_channels, wide, 1),
            nn.ReLU(),
            *normed(wide, wide, side, stride, side // 2, groups=wide),
            nn.ReLU(),
            *normed(wide, out_channels, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output, with the input added where shapes agree."""
        return x + self.main(x) if self.skip else self.main(x)


def nas_bench_macro(digits: str, num_classes: int = 10) -> nn.Sequential:
    """Return a network of NAS-Bench-Macro (Su et al. 2021) from its eight digits."""
    layers: list[nn.Module] = [*normed(3, 32, 3, 1, 1), nn.ReLU()]
    channels, blocks = 32, iter(digits)
    for width, length in ((64, 2), (128, 3), (256, 3)):
        for stride in (2, 1, 1)[:length]:
            digit = next(blocks)
            if digit != "0":
                expansion, side = {"1": (3, 3), "2": (6, 5)}[digit]
                layers.append(InvertedResidual(channels, width, stride, expansion, side))
            elif stride == 2:
                layers += normed(channels, width, 1, stride)
            channels = width
    layers += [*normed(channels, 1280, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(1280, num_classes))


def macro_keys() -> list[str]:
    """Return the sampled keys."""
    ordered = sorted(macro(), key=lambda key: (float(macro()[key]["mean_acc"]), key))
    return [ordered[round(i)] for i in np.linspace(0, len(ordered) - 1, NUM_MACRO)]


def on_paths(digits: str) -> str:
    """Return the operations (digits) on a path from the input of a cell of NAS-Bench-201 to its
    output.
    """
    edges = [
        (a, b, digit)
        for (a, b), digit in zip(EDGES, digits, strict=True)
        if OPERATIONS[int(digit)] != "none"
    ]
    reached, used = {0}, {3}
    for _ in range(3):  # the longest path has three edges
        reached |= {b for a, b, _ in edges if a in reached}
        used |= {a for a, b, _ in edges if b in used}
    return "".join(digit for a, b, digit in edges if a in reached and b in used)


@lru_cache
def photo_moments() -> dict[str, Tensor]:
    """Return factors (r, D) of the covariances between and within classes, and principal
    components, of photos.
    """
    photos = load_images("cifar10", num_images=NUM_IMAGES, progress=False)
    images = photos.images
    images = images - images.mean((0, 2, 3), keepdim=True)
    flat = (images / images.std((0, 2, 3), keepdim=True)).flatten(1)
    flat = flat - flat.mean(0)
    means = torch.stack([flat[photos.labels == label].mean(0) for label in range(10)])
    within = flat - means[photos.labels]
    components = torch.linalg.svd(flat, full_matrices=False).Vh
    return {
        "between": means / 10**0.5,
        "within": within / len(flat) ** 0.5,
        **{f"components_{k}": components[:k] for k in LEADING},
    }


def effective_directions(
    build: Callable[[], nn.Module], num_networks: int = NUM_NETWORKS, seed: int = 0
) -> float:
    """Return 1 / tr C^2 of random networks, C of trace 1: without bias for any number of them.

    Args:
        build: factory of networks for images (3, 32, 32).
        num_networks: number of networks.
        seed: seed of the networks.
    """
    halves = sampled_halves(build, SHAPE, nc.SmoothedGradient(16), num_networks, seed).double()
    trace, squares = trace_and_squares(halves)
    return float(trace**2 / squares)


def trace_and_squares(halves: Tensor) -> tuple[Tensor, Tensor]:
    """Return tr C, from products of halves, and tr C^2, from products of networks: (n, 2, D)."""
    mean, n = halves.mean(1), len(halves)
    gram = (mean @ mean.T).square()
    trace = (halves[:, 0] * halves[:, 1]).sum(1).mean()
    return trace, (gram.sum() - gram.diagonal().sum()) / (n * (n - 1))


def measures(benchmark: str, key: str) -> Facts:
    """Return measures of the second moment C of random networks, and of what they see of photos.

    All are unbiased sums over halves of the inputs, and where C occurs twice over different
    networks: ``trace``, ``squares`` (tr C^2), ``between`` and ``within`` (tr C B of photos'
    classes), ``components_10`` and _50 (energy in the space of principal components);
    ``between_each`` is the median over networks of a ratio.
    """
    if benchmark == "201" and not on_paths(key):
        return {"rejected": "no path from input to output"}
    build = partial(nas_bench_201 if benchmark == "201" else nas_bench_macro, key)
    halves = sampled_halves(build, SHAPE, nc.SmoothedGradient(16), NUM_NETWORKS, 0).double()
    halves /= halves.square().sum(2).mean().sqrt()  # (n, 2, D); the output's scale means nothing
    norms = (halves[:, 0] * halves[:, 1]).sum(1)
    trace, squares = trace_and_squares(halves)
    row: dict[str, Tensor] = {"trace": trace, "squares": squares}
    row["heaviness"] = norms.square().mean() / norms.mean() ** 2
    for name, factor in photo_moments().items():
        seen = (halves @ factor.T.double()).prod(1).sum(1)  # (n,)
        row[name] = seen.mean()
        if name == "between":
            row["between_each"] = (seen / norms).median()
    return rounded(row, 6, significant=True)


class ArchitectureSearch(FileStudy):
    """Do NADs rank architectures? Measures of random networks of two benchmarks (``nas.toml``)."""

    name = "nas"
    on_gpu = False
    on_photos = True

    def units(self) -> list[Unit]:
        cells = factorial(benchmark=["201"], key=proxies()["cifar10"])
        return cells + factorial(benchmark=["macro"], key=macro_keys())

    constants = {"num_networks": NUM_NETWORKS}

    def run(self, unit: Unit, context: Context) -> Row:
        return measures(unit["benchmark"], unit["key"])

    def score(self, rows: Rows) -> Scored:
        """Compare the chosen score with published proxies where it was not chosen, see
        `nas_contest.score`.
        """
        self.require_complete(rows)
        found = score(self.registered["sealed"]["score"], rows)
        met = {
            f"{name} above {goal:g}": found["cifar10"][name][1] > goal
            for name, goal in GOALS.items()
        }
        return Scored(found, met)
