"""Directions of the experiment on the law's missing term, on a grid of energies and gains.

.venv/bin/python benchmarks/law_design.py lenet  # or cnn, or resnet18: writes book/preregistered/law-lenet.npz

Random packets of waves are moved by gradient descent until they have the energy, the ratio z of the first-step law, and
the gain of their cell, which `nads_book.studies.gain.load_design` defines. They are stored as integers:
another processor would find others.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import torch
from nads_book.analysis.prediction import Responses, filter_gain
from nads_book.atlas import ATLAS
from nads_book.checkout import checkout_folder
from scipy.special import ndtri
from torch import Tensor

import nads_core as nc

SIZE, NUM_TRAIN, NUM_NETWORKS = 32, 10_000, 4_096
STEPS, RATE = 400, 0.02
PURITY = 0.8  # z of a direction over z of an eigenvector of C with the same energy


@dataclass(frozen=True)
class Grid:
    """Cells of a design.

    Args:
        laws: accuracies that the first-step law predicts in the first and in the last shell.
        gains: gains of the first and of the last level.
        counts: numbers of directions of a cell, of shells and of levels.
        side: side of the filters of the first layer.
        arms: arms after the free one.
    """

    laws: tuple[float, float]
    gains: tuple[float, float]
    counts: tuple[int, int, int]
    side: int
    arms: tuple[str, ...] = ("frozen", "taught")


GRIDS = {
    "lenet": Grid((0.54, 0.93), (2.0, 13.0), (5, 8, 6), 5),
    "cnn": Grid((0.57, 0.90), (1.5, 4.0), (5, 4, 3), 3),
    "resnet18": Grid((0.56, 0.85), (1.6, 5.0), (5, 3, 2), 3, ("frozen",)),
}


def packet(rng: np.random.Generator) -> np.ndarray:
    """Return a random pattern (SIZE, SIZE) of norm 1: noise around one frequency, inside one window.

    The windows are wide and not at the border: with small ones, directions of little gain are specks at the border.
    """
    places = np.arange(SIZE)
    frequency, centre = rng.uniform(-SIZE / 2, SIZE / 2, 2), rng.uniform(10, 22, 2)
    bandwidth, window = 2 ** rng.uniform(-2, 4), 2 ** rng.uniform(2.5, 4)
    rows, columns = np.exp(-((np.fft.fftfreq(SIZE) * SIZE - frequency[:, None]) ** 2) / (2 * bandwidth**2))
    noise = np.fft.ifft2(np.fft.fft2(rng.normal(size=(SIZE, SIZE))) * np.outer(rows, columns)).real
    rows, columns = np.exp(-((places - centre[:, None]) ** 2) / (2 * window**2))
    pattern = noise * np.outer(rows, columns)
    return pattern / np.linalg.norm(pattern)


def second_moment(name: str) -> Tensor:
    """Return C (D, D) with a mean eigenvalue of 1: that of the shipped NADs, or of networks computed now."""
    if name == "cnn":  # only 64 of its NADs ship
        nads = nc.compute_nads(
            ATLAS[name].architecture, NUM_NETWORKS, estimator=nc.SmoothedGradient(16), seed=11, progress=False
        )
    else:
        nads = nc.load_nads(name)
    return (nads.basis * nads.eigenvalues) @ nads.basis.T / nads.eigenvalues.mean()


def measured(vectors: Tensor, covariance: Tensor, side: int) -> Tensor:
    """Return the logarithms of energy, ratio z and gain of vectors (m, D) of any norm, (3, m), differentiable."""
    v = vectors / vectors.norm(dim=1, keepdim=True)
    moved, total = v @ covariance, covariance.square().sum()
    energies, squares = (moved * v).sum(1), moved.square().sum(1)
    noise = (squares - energies**2).clamp(min=0) + (total - 2 * squares + energies**2) / NUM_TRAIN
    patches = torch.nn.functional.unfold(v.view(-1, 1, SIZE, SIZE), side)
    gains = torch.linalg.eigvalsh(patches @ patches.mT)[:, -1]
    return torch.stack([energies, energies / noise.sqrt(), gains]).log()


def design(name: str, covariance: Tensor, seed: int = 0) -> dict[str, np.ndarray]:
    """Return the arrays of a design file."""
    grid = GRIDS[name]
    copies, shells, levels = grid.counts
    copy, shell, level = (axis.ravel() for axis in np.indices(grid.counts))
    ratios = np.geomspace(*ndtri(grid.laws), shells)[shell]
    energies = ratios / PURITY * float(covariance.square().sum()) ** 0.5 / NUM_TRAIN**0.5
    targets = torch.tensor(np.log([energies, ratios, np.geomspace(*grid.gains, levels)[level]]), dtype=torch.float32)
    rng = np.random.default_rng(seed)
    pool = torch.tensor(np.array([packet(rng) for _ in range(40 * len(shell))]), dtype=torch.float32).flatten(1)
    found = torch.cat([measured(part, covariance, grid.side) for part in pool.split(1_000)], 1)  # (3, pool)
    starts = []
    for target in targets.T:  # the closest unused packet
        distance = (found - target[:, None]).square().sum(0)
        starts.append(int(distance.argmin()))
        found[:, starts[-1]] = torch.inf
    vectors = pool[starts].requires_grad_()
    optimiser = torch.optim.Adam([vectors])
    for step in range(STEPS):
        optimiser.param_groups[0]["lr"] = RATE * (1 - step / STEPS) / 8
        optimiser.zero_grad()
        (measured(vectors, covariance, grid.side) - targets).square().sum().backward()
        optimiser.step()
    images = vectors.detach().view(-1, SIZE, SIZE)
    integers = (images * (127 / images.abs().amax((1, 2), keepdim=True))).round().to(torch.int8)
    directions = integers.double().flatten(1)
    directions /= directions.norm(dim=1, keepdim=True)
    responses = Responses.of(covariance.double(), directions.view(-1, 1, SIZE, SIZE))
    return {
        "images": integers.numpy(), "shells": shell.astype(np.int8), "levels": level.astype(np.int8),
        "energies": responses.energies, "ratios": responses.signal_to_noise(NUM_TRAIN, 1.0),
        "gains": filter_gain(directions.view(-1, 1, SIZE, SIZE), grid.side),
        "held_out": copy == copies - 1, "arms": np.array(grid.arms),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=GRIDS)
    name = parser.parse_args().name
    torch.set_num_threads(1)
    arrays = design(name, second_moment(name))
    path = checkout_folder("book/preregistered") / f"law-{name}.npz"
    np.savez_compressed(path, **arrays)
    logs = np.log([arrays["energies"], arrays["ratios"], arrays["gains"]])
    print(f"{path}: {len(logs[0])} directions, {path.stat().st_size:,} bytes")
    print("correlations of the logarithms of energy, ratio and gain:\n", np.corrcoef(logs).round(4))


if __name__ == "__main__":
    main()
