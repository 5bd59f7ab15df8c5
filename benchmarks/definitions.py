"""Do long dipoles and smoothed gradients define the same NADs, and which do trained networks follow?

.venv/bin/python benchmarks/definitions.py moments    # both definitions, a dozen small networks: an hour of a core
.venv/bin/python benchmarks/definitions.py trainings  # along waves about whose order they disagree: minutes
.venv/bin/python benchmarks/definitions.py deep       # VGG-11 along its directions by both: 50 minutes of a core

Results go to nads_core/precomputed/definitions.json, a network at a time: an interrupted call goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

import nads_core as nc
from nads_core.evidence.definitions import SIZE, SmallNetwork, moved_share, sampled_halves, wave_shares
from nads_core.evidence.presets import SIZES
from nads_core.machinery.files import replacing
from nads_core.machinery.provenance import environment
from nads_core.machinery.seeds import seed_sequence

FILE = Path(__file__).resolve().parent.parent / "nads_core" / "precomputed" / "definitions.json"
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
TRAINED = "max pooling, 3"
NUM_NETWORKS, WAVES, AMONG, SEEDS = 512, 8, 20, (0, 1)
DEEP, DEEP_NETWORKS, DEEP_SEED, DEEP_INDICES = "vgg11", 128, 4, (5, 8, 12, 20)  # both from the same networks
NOISE_STD = 1.0  # of D(v), as in Fig. 6; with 3, as in Fig. 1, a first trial left nearly all waves at chance


def measured_moments(network: SmallNetwork, num_networks: int) -> dict[str, object]:
    """Compare all definitions on one network: energy that lies elsewhere, and that of waves."""
    start = time.perf_counter()
    halves = {
        label: sampled_halves(network, estimator, num_networks, seed)
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
    found = []
    for seed in SEEDS:
        options = {"noise_std": NOISE_STD, "paired": True}
        train = nc.SeparableDatasets(directions, size.num_train, seed=2 * seed, **options)
        test = nc.SeparableDatasets(directions, size.num_test, seed=2 * seed + 1, **options)
        result = nc.train_networks(
            lambda: network.build(2), train, test, recipe=size.recipe, seed=seed, stop_perfect=True
        )
        found.append([round(float(x), 4) for x in result.test_accuracy])
    return {
        "waves": waves, "accuracies": found, "seeds": list(SEEDS), "noise_std": NOISE_STD, "num_test": size.num_test,
        **environment(torch.device("cpu")),
    }  # fmt: skip


def deep_directions() -> tuple[Tensor, dict[str, object]]:
    """Return VGG-11's directions of a few indices by each definition, (2, n, 1, 32, 32), and what is foretold of them.

    Foretold by the first-step law with the second moment of the shipped NADs.
    """
    shipped, found, facts = nc.load_nads(DEEP), [], {}
    job = nc.experiment(f"fig6-{DEEP}", "laptop")
    for label in (OURS, AUTHORS):
        file = FILE.parent.parent.parent / "_build" / f"definitions-{DEEP}-{label.replace(' ', '-')}.ckpt"
        file.parent.mkdir(exist_ok=True)
        nads = nc.compute_nads(
            DEEP, DEEP_NETWORKS, estimator=DEFINITIONS[label], debiasing="none", seed=DEEP_SEED, checkpoint=file
        )
        directions = nads.directions[list(DEEP_INDICES)]
        law = nc.prediction.predicted_accuracy(
            nc.prediction.signal_to_noise(shipped, directions, job.num_train, job.noise_std)
        )
        shared = {count: round(nads.overlap(shipped, count), 3) for count in (10, 20)}
        facts[label] = {"foretold": [round(float(x), 4) for x in law], "overlap": shared}
        found.append(directions.float())
    return torch.stack(found), facts


def trained_deep(known: dict[str, Any], keep: Callable[[], None]) -> None:
    """Train VGG-11 at the size `laptop` along directions of equal index by both definitions, and keep each result."""
    directions, facts = deep_directions()
    job = nc.experiment(f"fig6-{DEEP}", "laptop")
    places = [(label, index) for label in (OURS, AUTHORS) for index in DEEP_INDICES]
    found = known.setdefault("deep", {
        "architecture": DEEP, "num_networks": DEEP_NETWORKS, "seed": DEEP_SEED, "indices": list(DEEP_INDICES),
        "num_train": job.num_train, "num_test": job.num_test, "noise_std": job.noise_std, "definitions": facts,
        "rows": [], **environment(torch.device("cpu")),
    })  # fmt: skip
    keep()
    left = [n for n, place in enumerate(places) if list(place) not in [row[:2] for row in found["rows"]]]
    kept = directions.flatten(0, 1)[left]
    draw = partial(nc.SeparableDatasets, kept, noise_std=job.noise_std)

    def keep_row(number: int, result: nc.TrainingResult) -> None:
        found["rows"].append([*places[left[number]], round(float(result.test_accuracy), 5)])
        keep()

    if left:
        nc.train_networks(
            job.architecture, draw(job.num_train, seed=seed_sequence(DEEP_SEED, 5)),
            draw(job.num_test, seed=seed_sequence(DEEP_SEED, 6), paired=job.paired_test),
            recipe=job.recipe, seed=DEEP_SEED, numbers=[n % len(DEEP_INDICES) for n in left],
            mixed_precision=True, stop_perfect=job.stop_perfect, on_result=keep_row,
        )  # fmt: skip


def main() -> int:
    """Measure what is not there yet, and write after each network."""
    parser = argparse.ArgumentParser(description="Compare two definitions of NADs.")
    parser.add_argument("what", choices=("moments", "trainings", "deep"))
    parser.add_argument("--num-networks", type=int, default=NUM_NETWORKS)
    options = parser.parse_args()
    known = json.loads(FILE.read_text("utf8")) if FILE.exists() else {"moments": {}, "trainings": {}}

    def keep() -> None:
        with replacing(FILE, "w") as file:
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
        trained_deep(known, keep)
        print(*known["deep"]["rows"], sep="\n")
    elif TRAINED not in known["trainings"]:
        waves = disputed_waves(known["moments"][TRAINED]["shares"])
        known["trainings"][TRAINED] = trained(NETWORKS[TRAINED], waves)
        keep()
    return 0


if __name__ == "__main__":
    sys.exit(main())
