"""What audits of a factory cost, and which factories they reject: ``python benchmarks/audits.py``.

A run of `compute_nads` audits its first eight networks (one, if a network is large), then four in
256 (beyond 2,048 networks, in 2,048), and one more for each thread at its end. Cost: CPU time of
the audits of 2,000 networks, as a share of that of the networks, on one thread. Power: share of 300
factories that are rejected within 2,000 networks, if one network in ten, twenty or a hundred is
another one by a number that torch does not draw. It writes ``results/audits.json`` in some minutes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import torch
from nads_book.benchmarks.stored import write_result
from nads_core.directions.evaluation import BatchEvaluator
from torch import nn

import nads_core as nc
from nads_core.networks import Ensemble

NETWORKS, EVERY, AUDITED = 2_000, 256, 4
COSTS = {"lenet": 128, "resnet18": 4}  # networks that are timed
SHARES = (0.01, 0.05, 0.1)
FACTORIES = 300


def cpu_seconds(function: Callable[[], object]) -> float:
    """Return the CPU time of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def cost(name: str, count: int, repetitions: int = 5) -> dict[str, float]:
    """Return CPU milliseconds of a network, of an audit and of the first audits, each the least of
    several.
    """
    architecture = nc.ARCHITECTURES[name]
    ensemble = Ensemble(lambda: architecture.build(1, 32, 1), (1, 32, 32))
    evaluation = BatchEvaluator(ensemble, nc.SmoothedGradient(readouts=8), name)
    size = ensemble.block_size
    blocks = [(1_000 + block, size) for block in range(count // size)]
    # Audits are timed separately
    evaluation.ensemble.audit = lambda index: None  # type: ignore[method-assign]
    network = (
        min(cpu_seconds(lambda: evaluation.contributions(blocks)) for _ in range(repetitions))
        / count
    )
    audit = min(cpu_seconds(lambda: Ensemble.audit(ensemble, NETWORKS)) for _ in range(repetitions))
    first = min(cpu_seconds(ensemble.identity) for _ in range(2))
    total = audit * AUDITED * (NETWORKS // EVERY) + first
    values = {"network_ms": network, "audit_ms": audit, "first_ms": first}
    return {key: round(1e3 * value, 2) for key, value in values.items()} | {
        "share": round(total / network / NETWORKS, 4)
    }


def rejected(share: float, seed: int) -> bool:
    """Whether a factory is rejected of whose networks a share has weights that are three times as
    large.
    """
    numbers = random.Random(seed)

    def factory() -> nn.Module:
        network = nn.Sequential(nn.Flatten(), nn.Linear(16, 4), nn.Tanh(), nn.Linear(4, 1))
        with torch.no_grad():
            network[1].weight.mul_(3 if numbers.random() < share else 1)
        return network

    try:
        ensemble = Ensemble(factory, (1, 4, 4), seed=seed)
        ensemble.identity()
        for last in range(EVERY, NETWORKS, EVERY):
            for index in range(last - AUDITED, last):
                ensemble.audit(index)
    except ValueError:
        return True
    return False


def main() -> None:
    """Measure, write and print the results."""
    torch.set_num_threads(1)
    costs = {name: cost(name, count) for name, count in COSTS.items()}
    power: dict[str, Any] = {}
    for share in SHARES:
        power[str(share)] = sum(rejected(share, seed) for seed in range(FACTORIES)) / FACTORIES
    write_result(
        "audits", {"networks": NETWORKS, "factories": FACTORIES, "costs": costs, "rejected": power}
    )
    print(costs, power)


if __name__ == "__main__":
    main()
