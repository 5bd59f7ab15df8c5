"""Along the authors' own NADs: what the first-step law says of them, what our VGG-11 learns, and which of them ship.

.venv/bin/python benchmarks/published_nads.py ship   # writes the leading 64 of LeNet and ResNet-18 into nads_book
.venv/bin/python benchmarks/published_nads.py laws   # seconds
.venv/bin/python benchmarks/published_nads.py train  # some minutes a network on a CPU; an interrupted call resumes

The authors' accuracies of VGG-11 fall much earlier than ours. Two reasons are possible: their directions, or their
noise and recipe. Trainings along their directions, by the recipe of the preset "laptop", distinguish these. The folder
that NADS_REFERENCE names has the directions. Results go to book/results/studies/law-published.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import nads_book as nb
import numpy as np
import torch
from nads_book.experiments.stored import study_path
from nads_book.studies import experiment
from result_files import write_compact

import nads_core as nc
from nads_core.runtime.provenance import environment
from nads_core.runtime.seeds import seed_sequence

FILE = study_path("law-published.json")
ARCHITECTURES = ("lenet", "vgg11", "resnet18")
UNITS = ((22, 1.0), (4, 1.0), (4, 3.0), (102, 1.0), (22, 3.0), (6, 1.0), (1, 3.0), (102, 3.0))  # index, sigma
COMPLETE = 1023  # directions that the authors published of each network
SEED = 3  # that of the preset "laptop"


def ship(num: int = 64) -> None:
    """Write the leading directions in 16 bit, and their singular values, beside the published accuracies."""
    for name in ("lenet", "resnet18"):
        nads, values = nb.published.directions(name, COMPLETE), nb.published.eigenvalues(name, COMPLETE)
        arrays = {"nads": nads[:num].flatten(1).half().numpy(), "singular_values": values[:num].sqrt().numpy()}
        np.savez_compressed(Path(nb.published.__file__).with_name(f"{name}.npz"), **arrays)


def laws() -> dict[str, Any]:
    """Return the energies of the authors' directions under our second moments, and all else that the law needs."""
    found = {}
    for name in ARCHITECTURES:
        values, keys = nc.load_nads(name).eigenvalues.double(), list(nb.published.nad_accuracies(name))
        shares = (
            (nb.published.directions(name, COMPLETE)[keys].flatten(1) @ nc.load_nads(name).basis).double().square()
        )  # (m, D)
        total, digits = float(values.square().sum()), lambda numbers: [float(f"{number:.6g}") for number in numbers]
        found[name] = {
            "key": keys, "energies": digits((shares @ values) / total**0.5),
            "squares": digits((shares @ values.square()) / total), "version": nc.load_nads(name).provenance["version"],
        }  # fmt: skip
    return found


def train(content: dict[str, Any], count: int) -> None:
    """Train VGG-11 along the authors' NADs, one network after another."""
    size = experiment("fig6-vgg11", "laptop")
    directions = nb.published.directions("vgg11", COMPLETE)
    for index, noise_std in UNITS[:count]:
        unit = {"index": index, "noise_std": noise_std, "seed": SEED}
        if any(unit.items() <= row.items() for row in content["rows"]):
            continue
        start = time.perf_counter()
        sets, tests = (
            nc.SeparableDatasets(directions[[index]], number, 1.0, noise_std, seed=seed_sequence(SEED, p), paired=pair)
            for p, number, pair in ((5, size.num_train, False), (6, size.num_test, size.paired_test))
        )
        result = nc.train_networks(
            nc.VGG11, sets, tests, recipe=size.recipe, seed=SEED, stop_at_full_accuracy=True, mixed_precision=True,
            method="loop", progress=False,
        )  # fmt: skip
        reached = {"test_accuracy": result.test_accuracy, "train_accuracy": result.train_accuracy}
        row = unit | {name: round(float(values[0]), 5) for name, values in reached.items()}
        seconds = round(time.perf_counter() - start)
        content["rows"].append(row | {"num_test": size.num_test, "seconds": seconds})
        write_compact(FILE, content | environment(torch.device("cpu")))
        print(content["rows"][-1], file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("laws", "train", "ship"))
    parser.add_argument("--count", type=int, default=len(UNITS))
    options = parser.parse_args()
    if any(nb.published.directions(name, COMPLETE) is None for name in ARCHITECTURES):
        parser.error("the complete sets of the authors' directions are needed: NADS_REFERENCE names their folder")
    if options.what == "ship":
        return ship()
    content = json.loads(FILE.read_text("utf8")) if FILE.exists() else {"rows": []}
    if options.what == "laws":
        write_compact(FILE, content | {"laws": laws()} | environment(torch.device("cpu")))
    else:
        train(content, options.count)


if __name__ == "__main__":
    main()
