"""Seconds that training many LeNets on D(v) takes: ``python benchmarks/train_networks.py``.

The baseline is a plain PyTorch loop that trains one network after another with torch's own threads.
Both train on the same datasets at the paper's settings. It writes
``results/train_networks-lenet-METHOD-cpu.json``.
"""

from __future__ import annotations

import time

import nads_book as nb
import torch
from nads_book.benchmarks.stored import write_result
from torch.nn import functional as F

import nads_core as nc

NETWORKS = 8


def plain_loop(architecture, train, test, recipe) -> list[float]:
    """Train one network after another, as by hand; return their test accuracies."""
    accuracies = []
    for (images, labels), (test_images, test_labels) in zip(train, test, strict=True):
        network = architecture.build(1, 32, 2)
        optimizer = torch.optim.SGD(network.parameters(), lr=recipe.learning_rate)
        total = recipe.num_steps(len(images))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step, total=total: 1 - step / total
        )
        for _ in range(recipe.epochs):
            for batch in torch.randperm(len(images)).split(recipe.batch_size):
                loss = F.cross_entropy(network(images[batch]), labels[batch])
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
                optimizer.step()
                schedule.step()
        accuracies.append(nc.accuracy(network, (test_images, test_labels)))
    return accuracies


def main() -> None:
    """Measure and write the results."""
    device, recipe = torch.device("cpu"), nc.SEPARABLE_RECIPE
    directions = torch.stack([nc.fourier_direction(k) for k in nb.grid_frequencies()[:NETWORKS]])
    train, test = (nc.SeparableDatasets(directions, 10_000, 1.0, 3.0, seed) for seed in (0, 1))
    for method, mixed in (("plain", False), ("auto", False), ("auto-bfloat16", True)):
        start = time.perf_counter()
        if method == "plain":
            accuracies = plain_loop(nc.LENET, train, test, recipe)
        else:
            result = nc.train_networks(
                nc.LENET, train, test, recipe=recipe, device=device, mixed_precision=mixed
            )
            accuracies = result.test_accuracy
        seconds = time.perf_counter() - start
        result = {
            "problem": "lenet on D(v), the paper's settings",
            "method": method,
            "num_networks": NETWORKS,
            "seconds": seconds,
            "seconds_per_network": seconds / NETWORKS,
            "mean_test_accuracy": float(torch.as_tensor(accuracies).mean()),
        }
        write_result(f"train_networks-lenet-{method}-cpu", result)
        print(f"{method} {seconds / NETWORKS:.2f} s per network", flush=True)


if __name__ == "__main__":
    main()
