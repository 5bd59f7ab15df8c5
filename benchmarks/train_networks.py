"""Seconds that training many networks on D(v) takes:
``python benchmarks/train_networks.py --num-networks 32``.

The baseline is a plain PyTorch loop that trains one network after another with torch's own threads.
Both train the same architecture on the same datasets at the paper's settings. Writes one JSON file
a (architecture, method, device) into ``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
import time

import nads_book as nb
import torch
from nads_book.benchmarks.stored import write_result
from torch.nn import functional as F

import nads_core as nc
from nads_core.training import METHODS


def plain_loop(architecture, train, test, recipe, device) -> list[float]:
    """Train one network after another as one would write it by hand; return their test accuracies."""
    accuracies = []
    for (images, labels), (test_images, test_labels) in zip(train, test, strict=True):
        images, labels, test_images = images.to(device), labels.to(device), test_images.to(device)
        network = architecture.build(1, 32, 2).to(device)
        optimizer = torch.optim.SGD(network.parameters(), lr=recipe.learning_rate)
        total = recipe.num_steps(len(images))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step, total=total: 1 - step / total
        )
        for _ in range(recipe.epochs):
            for batch in torch.randperm(len(images)).to(device).split(recipe.batch_size):
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architecture", choices=nc.ARCHITECTURES, default="lenet")
    parser.add_argument("--num-networks", type=int, default=32)
    usual = ["plain", "auto", "auto-bfloat16"]
    parser.add_argument("--methods", nargs="+", choices=[*usual, *METHODS], default=usual)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    device, architecture = torch.device(options.device), nc.ARCHITECTURES[options.architecture]
    directions = torch.stack(
        [nc.fourier_direction(k) for k in nb.grid_frequencies()[: options.num_networks]]
    )
    train, test = (nc.SeparableDatasets(directions, 10_000, 1.0, 3.0, seed) for seed in (0, 1))
    for method in options.methods:
        start = time.perf_counter()
        if method == "plain":
            accuracies = plain_loop(architecture, train, test, nc.SEPARABLE_RECIPE, device)
        else:
            method_, _, rounded = method.partition("-")
            options = {"method": method_, "mixed_precision": True if rounded else None}
            result = nc.train_networks(
                architecture, train, test, recipe=nc.SEPARABLE_RECIPE, device=device, **options
            )
            accuracies = result.test_accuracy
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        result = {
            "problem": f"{architecture.name} on D(v), the paper's settings",
            "method": method,
            "num_networks": len(train),
            "seconds": seconds,
            "seconds_per_network": seconds / len(train),
            "mean_test_accuracy": float(torch.as_tensor(accuracies).mean()),
        }
        write_result(f"train_networks-{architecture.name}-{method}-{device.type}", result, device)
        print(
            f"{method:<12} {seconds:8.1f} s for {len(train)} networks, {seconds / len(train):.2f} s each",
            flush=True,
        )


if __name__ == "__main__":
    main()
