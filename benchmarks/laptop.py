"""Which smaller size shows LeNet's map as the paper's size does: ``python benchmarks/laptop.py``.

Trains LeNet on every wave of the published grid at each candidate size, on samples and from weights that neither seed
of the paper's size has seen, and compares the maps with those of ``book/results/fig1-lenet.json``. The time ratio is
that of single networks on this machine: each candidate's mean over all waves, against the paper's size on a few of
them. One JSON file a candidate in ``benchmarks/results/``; those that are there are not run again.

``python benchmarks/laptop.py deep`` trains VGG-11 at the paper's size along two waves that the authors' learns and ours
at the laptop's size does not: if it learns them, the size was what it lacked. Takes an hour on one core.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path

import nads_book as nb
import numpy as np
import torch
from nads_book.experiments import frequency_maps as maps
from result_files import RESULTS, write_result

import nads_core as nc
from nads_core.runtime.seeds import seed_sequence

SEED, NUM_TIMED = 2, 8  # the paper's size has seeds 0 and 1
LEARNED = 0.55
# Training and test samples, epochs, batch size, learning rate, and whether networks that are through stop and all are
# tested on pairs.
CANDIDATES = {
    "paper": (10_000, 10_000, 20, 128, 0.5, False),
    "10000x4, batch 48, rate 0.2": (10_000, 10_000, 4, 48, 0.2, True),
    "10000x4, batch 64, rate 0.25": (10_000, 4_000, 4, 64, 0.25, True),
    "10000x3, batch 64, rate 0.25": (10_000, 10_000, 3, 64, 0.25, True),
    "9000x3, batch 48, rate 0.2": (9_000, 4_000, 3, 48, 0.2, True),
    "10000x4": (10_000, 10_000, 4, 128, 0.5, True),
}
DEEP = "vgg11", ((0, 4), (4, -2))


def path_of(name: str) -> Path:
    """Return the file of a candidate."""
    return RESULTS / f"laptop-{re.sub('[^0-9a-z.]+', '-', name)}.json"


def run(name: str) -> dict:
    """Train LeNets at one size; of the paper's only a few, for their time."""
    num_train, num_test, epochs, batch_size, rate, stops = CANDIDATES[name]
    frequencies = nb.grid_frequencies()[: NUM_TIMED if name == "paper" else None]
    recipe = replace(nc.SEPARABLE_RECIPE, epochs=epochs, batch_size=batch_size, learning_rate=rate)
    directions = torch.stack([nc.fourier_direction(k) for k in frequencies])
    train, test = (
        nc.SeparableDatasets(directions, count, noise_std=3.0, seed=seed_sequence(SEED, stream), paired=paired)
        for count, stream, paired in ((num_train, 5, False), (num_test, 6, stops))
    )
    result = nc.train_networks(
        nc.LENET, train, test, recipe=recipe, seed=SEED, device="cpu", stop_at_full_accuracy=stops
    )
    steps = result.losses.isfinite().sum(1)
    rows = [
        {"frequency": list(k), "test_accuracy": round(float(a), 5), "seconds": round(float(s), 2), "steps": int(n)}
        for k, a, s, n in zip(frequencies, result.test_accuracy, result.seconds, steps, strict=True)
    ]
    size = {"num_train": num_train, "num_test": num_test, "recipe": asdict(recipe), "stop_perfect": stops}
    return {"size": size, "seed": SEED, "rows": rows}


def compare(name: str) -> str:
    """Return the line of a table."""
    result, timed = (json.loads(path_of(which).read_text("utf8")) for which in (name, "paper"))
    small = {tuple(row["frequency"]): row["test_accuracy"] for row in result["rows"]}
    full = nb.load_results("fig1-lenet")
    seeds = [maps.by_frequency(full, seed=seed) for seed in (0, 1)]

    def off_chance(a, b):
        pairs = np.array([pair for pair in maps.common_pairs(a, b) if max(pair) > LEARNED])
        return nb.statistics.rank_correlation(*pairs.T), len(pairs)

    ranks = [f"{rho:.3f} ({n})" for rho, n in (off_chance(small, seed) for seed in seeds)]
    learned = np.array([np.mean([seed[k] for seed in seeds]) > LEARNED for k in small])
    areas = nb.statistics.area_under_curve(np.array([*small.values()]), learned)
    seconds = [np.mean([row["seconds"] for row in part["rows"]]) for part in (result, timed)]
    gap = np.mean([small[k] - np.mean([seed[k] for seed in seeds]) for k, a in zip(small, learned, strict=True) if a])
    return " | ".join([f"| {name}", *ranks, f"{areas:.3f}", f"{seconds[0] / seconds[1]:.3f}", f"{100 * gap:+.1f} |"])


def run_deep() -> None:
    """Train the networks of ``DEEP``, in the precision of the laptop's runs, and write each one when it is trained."""
    name, frequencies = DEEP
    job = nb.experiment(f"fig1-{name}", "paper")
    directions = torch.stack([nc.fourier_direction(k) for k in frequencies])
    train, test = (
        nc.SeparableDatasets(directions, count, noise_std=job.noise_std, seed=seed_sequence(SEED, stream))
        for count, stream in ((job.num_train, 5), (job.num_test, 6))
    )
    size = {"num_train": job.num_train, "num_test": job.num_test, "recipe": asdict(job.recipe)}
    results = {"architecture": name, "size": size, "mixed_precision": True, "seed": SEED, "rows": []}

    def keep(number: int, result: nc.TrainingResult) -> None:
        row = {"frequency": list(frequencies[number]), "test_accuracy": round(float(result.test_accuracy), 5)}
        row |= {"train_accuracy": round(float(result.train_accuracy), 5), "seconds": round(float(result.seconds))}
        results["rows"].append(row)
        write_result(f"deep-{name}-paper", results)

    nc.train_networks(
        job.architecture, train, test, recipe=job.recipe, seed=SEED, device="cpu", mixed_precision=True, on_result=keep
    )


def main() -> None:
    """Run missing jobs, and print the table."""
    for name in CANDIDATES:
        path = path_of(name)
        if not path.exists():
            write_result(path.stem, run(name))
        if name == "paper":
            print("| size | rank correlation off chance (waves) with seed 0 | with seed 1 | area under the curve "
                  "| time against paper | points on the learned waves |")  # fmt: skip
        else:
            print(compare(name), flush=True)


if __name__ == "__main__":
    run_deep() if sys.argv[1:] == ["deep"] else main()
