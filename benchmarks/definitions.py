"""Do long dipoles and smoothed gradients define the same NADs, and which do trained networks follow?

.venv/bin/python benchmarks/definitions.py moments    # both definitions, a dozen small networks: an hour of a core
.venv/bin/python benchmarks/definitions.py trainings  # along waves about whose order they disagree: minutes
.venv/bin/python benchmarks/definitions.py deep       # energies of waves in VGG-11 by both: 20 minutes of a core

Results go to book/results/studies/definitions.json, one network at a time: an interrupted call resumes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import nads_book as nb
import torch
from nads_book.experiments.presets import SIZES
from nads_book.experiments.stored import study_path
from nads_book.studies.definitions import SIZE, SmallNetwork
from torch import Tensor, nn
from tqdm import tqdm

import nads_core as nc
from nads_core.directions.contributions import Evaluation
from nads_core.directions.moments import FirstNetworks
from nads_core.networks.ensembles import Ensemble
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment

FILE = study_path("definitions.json")
NETWORKS = {
    **{f"{label} pooling, {n}": SmallNetwork(n, pooling)
       for label, pooling in (("max", "max"), ("average", "average"), ("no", "none")) for n in (1, 2, 3)},
    **{f"dense blocks, {n}": SmallNetwork(n, "average", dense=True) for n in (1, 2, 3)},
}  # fmt: skip
DEFINITIONS: dict[str, nc.Estimator] = {
    **{f"gradient {std:g}": nc.SmoothedGradient(16, input_std=std) for std in (0.3, 1.0, 3.0, 10.0)},
    **{f"dipole {arm:g}": nc.Dipole(step=arm) for arm in (1.0, 10.0, 100.0, 300.0)},
}
OURS, AUTHORS = "gradient 1", "dipole 100"
TRAINED, SIDE = "max pooling, 3", 32
NUM_NETWORKS, WAVES, AMONG, SEEDS = 512, 8, 20, (0, 1)
DEEP, GROUP, DEEP_SEEDS = nc.VGG11, 16, range(5, 13)  # networks of each seed; seed 4 was looked at before the others
NOISE_STD = 1.0  # of D(v), as in Fig. 6; with 3, as in Fig. 1, a first trial left nearly all waves at chance


def sampled_halves(
    build: Callable[[], nn.Module], shape: tuple[int, int, int], estimator: nc.Estimator, num_networks: int, seed: int
) -> Tensor:
    """Return what networks contribute to the second moment, as halves (n, 2, D) of their contributions.

    Args:
        build: returns a freshly initialised network with one output.
        shape: of its images, (1, H, H).
        estimator: with one readout.
        num_networks: n.
        seed: of weights and inputs.
    """
    ensemble, first = Ensemble(build, shape, seed=seed), FirstNetworks()
    evaluation = Evaluation(ensemble, estimator, "networks", ensemble.block_size)
    for block in ensemble.blocks(num_networks):
        first.update(block[0], ensemble.block_size, evaluation.contributions([block]), 1)
    return first.halves()[:, 0]


def wave_shares(halves: Tensor) -> Tensor:
    """Return the share of the energy at each frequency, (H, H), from halves (n, 2, H^2), without the noise of inputs.

    Averaged over the symmetries of the square, which the networks have.
    """
    side = math.isqrt(halves.shape[-1])
    waves = torch.fft.fft2(halves.double().unflatten(-1, (side, side)))
    energy = (waves[:, 0] * waves[:, 1].conj()).real.mean(0)
    energy = energy + energy.T
    flipped = energy.roll(-1, 1).flip(1)  # (ky, kx) -> (ky, -kx)
    return (energy + flipped) / (energy + flipped).sum()


def moved_share(first: Tensor, second: Tensor) -> tuple[float, float]:
    """Return how much of the energy lies at other frequencies, and how much of that sampling alone would give.

    Args:
        first: halves (n, 2, D) of networks, by one definition.
        second: the same by another, of networks drawn independently.
    """

    def distance(one: Tensor, other: Tensor) -> float:
        return float((wave_shares(one) - wave_shares(other)).abs().sum()) / 2

    # Two sets of half the networks differ by the square root of two times as much
    by_chance = [distance(part[::2], part[1::2]) / 2**0.5 for part in (first, second)]
    return distance(first, second), float((sum(x**2 for x in by_chance) / 2) ** 0.5)


def measured_moments(network: SmallNetwork, num_networks: int) -> dict[str, object]:
    """Compare all definitions on one network: energy that lies elsewhere, and that of waves."""
    start = time.perf_counter()
    halves = {
        label: sampled_halves(network.build, (1, SIZE, SIZE), estimator, num_networks, seed)
        for seed, (label, estimator) in enumerate(tqdm(DEFINITIONS.items(), leave=False))
    }
    labels = list(halves)
    moved = {
        f"{a} | {b}": [round(x, 4) for x in moved_share(halves[a], halves[b])]
        for number, a in enumerate(labels) for b in labels[number + 1 :]
    }  # fmt: skip
    shares = {
        label: [[round(x, 7) for x in row] for row in wave_shares(part).tolist()] for label, part in halves.items()
    }
    return {
        "num_networks": num_networks, "moved": moved, "shares": shares,
        "seconds": round(time.perf_counter() - start), **environment(torch.device("cpu")),
    }  # fmt: skip


def disputed_waves(shares: dict[str, list[list[float]]]) -> list[tuple[int, int]]:
    """Return the waves whose ranks differ most: those that gradients put first, then those that dipoles put first.

    Of those that are among the first by one definition at least: what both put last, no network learns.
    """
    # By the symmetries of the square (ky, kx) stands for (kx, ky) and their mirror images
    frequencies = [(ky, kx) for ky in range(SIZE // 2 + 1) for kx in range(ky, SIZE // 2 + 1)]
    ranks = []
    for label in (OURS, AUTHORS):
        energies = torch.tensor([shares[label][ky][kx] for ky, kx in frequencies])
        ranks.append(energies.argsort(descending=True, stable=True).argsort(stable=True))
    order = [i for i in (ranks[0] - ranks[1]).argsort(stable=True).tolist() if min(ranks[0][i], ranks[1][i]) < AMONG]
    return [frequencies[i] for i in order[:WAVES] + order[-WAVES:]]


def trained(network: SmallNetwork, waves: list[tuple[int, int]]) -> dict[str, object]:
    """Train on D(v) along the waves at the size `laptop`, one network for each wave and seed."""
    size = SIZES["laptop"].separable
    directions = torch.stack([nc.fourier_direction(wave, SIZE) for wave in waves])
    results = []
    for seed in SEEDS:
        options = {"noise_std": NOISE_STD, "paired": True}
        train = nc.SeparableDatasets(directions, size.num_train, seed=2 * seed, **options)
        test = nc.SeparableDatasets(directions, size.num_test, seed=2 * seed + 1, **options)
        result = nc.train_networks(
            lambda: network.build(2), train, test, recipe=size.recipe, seed=seed, stop_at_full_accuracy=True
        )
        results.append([round(float(x), 4) for x in result.test_accuracy])
    return {
        "waves": waves, "accuracies": results, "seeds": list(SEEDS), "noise_std": NOISE_STD, "num_test": size.num_test,
        **environment(torch.device("cpu")),
    }  # fmt: skip


def measured_deep(known: dict[str, Any], keep: Callable[[], None]) -> None:
    """Measure the energies of waves in a deep network by both definitions, by the same networks, a group at a time."""
    waves = list(nb.waves.predicted_energies(DEEP.name))
    build, shape = partial(DEEP.build, 1, SIDE, 1), (1, SIDE, SIDE)
    result = known.setdefault("deep", {}).setdefault(DEEP.name, {"group": GROUP, "waves": waves, "shares": {}})
    for label in (OURS, AUTHORS):
        groups = result["shares"].setdefault(label, [])
        for seed in tqdm(DEEP_SEEDS[len(groups) :], desc=label):
            shares = wave_shares(sampled_halves(build, shape, DEFINITIONS[label], GROUP, seed))
            groups.append([round(float(shares[k]), 7) for k in waves])
            result |= environment(torch.device("cpu"))
            keep()


def main() -> int:
    """Measure missing results, and write after each network."""
    parser = argparse.ArgumentParser(description="Compare two definitions of NADs.")
    parser.add_argument("what", choices=("moments", "trainings", "deep"))
    parser.add_argument("--num-networks", type=int, default=NUM_NETWORKS)
    options = parser.parse_args()
    known = json.loads(FILE.read_text("utf8")) if FILE.exists() else {"moments": {}, "trainings": {}}

    def keep() -> None:
        with atomic_write(FILE, "w") as file:
            json.dump(known, file, separators=(",", ":"))
            file.write("\n")

    if options.what == "moments":
        for label, network in NETWORKS.items():
            if label not in known["moments"]:
                known["moments"][label] = measured_moments(network, options.num_networks)
                keep()
            value, error = known["moments"][label]["moved"][f"{OURS} | {AUTHORS}"]
            print(f"{label}: {value:.3f} ± {error:.3f}", flush=True)
    elif options.what == "deep":
        measured_deep(known, keep)
    elif TRAINED not in known["trainings"]:
        waves = disputed_waves(known["moments"][TRAINED]["shares"])
        known["trainings"][TRAINED] = trained(NETWORKS[TRAINED], waves)
        keep()
    return 0


if __name__ == "__main__":
    sys.exit(main())
