"""How estimators order directions that none of them chose: energies of the waves of Fig. 1 and of our NADs, for LeNet.

.venv/bin/python benchmarks/estimator_orders.py  # about ten minutes on one CPU thread

The chapter on NADs and generalisation correlates them with stored accuracies of trained LeNets. Results go to
book/results/studies/estimator-orders.json.
"""

from __future__ import annotations

import time

import nads_book as nb
import torch
from nads_book.experiments.stored import study_path
from result_files import write_compact

import nads_core as nc
from nads_core.runtime.provenance import environment

FILE = study_path("estimator-orders.json")
SEED = 7
ESTIMATORS = {  # with their numbers of networks; "smoothed, as few" has those of the dipole
    "point": (nc.PointGradient(), 4_096),
    "smoothed": (nc.SmoothedGradient(num_inputs=16), 4_096),
    "mixed": (nc.MixedDerivative(num_inputs=16), 4_096),
    "dipole": (nc.Dipole(step=100.0), 256),
    "smoothed, as few": (nc.SmoothedGradient(num_inputs=16), 256),
}
FAMILIES = {"DFT": "fig1-lenet", "our NADs": "fig6-lenet"}


def main() -> None:
    """Compute the energies, in the order of `nads_book.prediction.Family.of`."""
    families = {label: nb.prediction.Family.of(nb.load_results(name)) for label, name in FAMILIES.items()}
    energies: dict[str, dict[str, list[float]]] = {label: {} for label in families}
    seconds = {}
    for label, (estimator, count) in ESTIMATORS.items():
        start = time.perf_counter()
        nads = nc.compute_nads(nc.LENET, count, estimator=estimator, seed=SEED, progress=False)
        seconds[label] = round(time.perf_counter() - start)
        for kind, family in families.items():
            found = nads.energy(family.directions)
            energies[kind][label] = [float(f"{value:.6g}") for value in (found / found.mean()).tolist()]
        print(label, seconds[label], flush=True)
    keys = {kind: [list(key) if isinstance(key, tuple) else key for key in one.keys] for kind, one in families.items()}
    content = {
        "num_networks": {label: count for label, (_, count) in ESTIMATORS.items()},
        "seed": SEED,
        "seconds": seconds,
        "keys": keys,
        "energies": energies,
    }
    write_compact(FILE, content | environment(torch.device("cpu")))


if __name__ == "__main__":
    main()
