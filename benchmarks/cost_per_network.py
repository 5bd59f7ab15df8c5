"""Seconds (and GPU memory) that one network costs, by estimator: ``python benchmarks/cost_per_network.py``.

The dipole is the authors' procedure, one network at a time; the smoothed gradient is ours. Writes one JSON file a
(architecture, estimator, device) into ``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

import nads_core as nc
from nads_core.directions import environment
from nads_core.ensembles import Ensemble

RESULTS = Path(__file__).parent / "results"
ESTIMATORS = {"smoothed-16": nc.SmoothedGradient(16), "dipole": nc.Dipole()}


def seconds_per_network(ensemble: Ensemble, estimator, num_networks: int, repeats: int) -> list[float]:
    """Time drawing and differentiating ``num_networks`` networks, after one warm-up block."""

    def synchronize() -> None:
        if ensemble.device.type == "cuda":
            torch.cuda.synchronize(ensemble.device)

    if ensemble.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(ensemble.device)
    estimator.contributions(ensemble, estimator.draw(ensemble, 0)[:1])
    times = []
    for repeat in range(repeats):
        synchronize()
        start = time.perf_counter()
        for block, count in ensemble.blocks(num_networks):
            estimator.contributions(ensemble, estimator.draw(ensemble, block + repeat)[:count])
        synchronize()
        times.append((time.perf_counter() - start) / num_networks)
    return times


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architectures", nargs="+", choices=nc.ARCHITECTURES, default=["lenet", "resnet18"])
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--num-networks", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    for name in options.architectures:
        architecture = nc.ARCHITECTURES[name]
        ensemble = Ensemble(
            lambda architecture=architecture: architecture.build(1, 32, 1), (1, 32, 32), device=options.device
        )
        for label in options.estimators:
            count = 1 if label == "dipole" and name != "lenet" else max(options.num_networks, ensemble.block_size)
            times = seconds_per_network(ensemble, ESTIMATORS[label], count, options.repeats)
            on_gpu = ensemble.device.type == "cuda"
            result = {
                "problem": f"{name}, 1 x 32 x 32", "method": label, "num_networks": count, "repeats": options.repeats,
                "seconds_per_network": statistics.median(times), "all_seconds_per_network": times,
                **environment(ensemble.device),
            }  # fmt: skip
            if on_gpu:
                result["peak_memory_bytes"] = torch.cuda.max_memory_allocated(ensemble.device)
            path = RESULTS / f"cost_per_network-{name}-{label}-{ensemble.device.type}.json"
            path.write_text(json.dumps(result, indent=1) + "\n")
            print(f"{name:<12} {label:<12} {1e3 * result['seconds_per_network']:10.2f} ms a network")


if __name__ == "__main__":
    main()
