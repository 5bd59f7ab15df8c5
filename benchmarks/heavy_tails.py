"""Are certainties kept where the norms of gradients have heavy tails? Replicate runs of small
networks, in pairs.

python benchmarks/heavy_tails.py    # about ten minutes on one core
"""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from nads_book.analysis.forecasting import restored
from nads_book.benchmarks.stored import write_result
from torch import nn

import nads_core as nc
from nads_core.directions.accumulation import read_checkpoint
from nads_core.directions.eigenpairs import Eigenpairs, EigenProblem
from nads_core.directions.moments import NormMoments

SHAPE = (1, 8, 8)
RANKS = 5  # directions that are compared
NETWORKS, RUNS = 512, 12


def convnet(norm: Callable[[nn.Module], nn.Module] = lambda layer: layer) -> nn.Module:
    """Two convolutions and two linear layers."""
    return nn.Sequential(
        norm(nn.Conv2d(1, 4, 3, padding=1)),
        nn.ReLU(),
        norm(nn.Conv2d(4, 4, 3, padding=1)),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        norm(nn.Linear(64, 16)),
        nn.ReLU(),
        norm(nn.Linear(16, 1)),
    )


def spectral() -> nn.Module:
    """The same by the old spectral norm, whose power iteration has not converged in eval mode."""
    return convnet(nn.utils.spectral_norm)


def product(depth: int, width: int) -> nn.Module:
    """A convolution and a deep and narrow stack, whose gain is a product of random factors."""
    layers = [
        nn.Conv2d(1, 2, 3, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, width),
    ]
    for _ in range(depth):
        layers += [nn.LeakyReLU(0.5), nn.Linear(width, width)]
    return nn.Sequential(*layers, nn.LeakyReLU(0.5), nn.Linear(width, 1))


def student(degrees: float) -> nn.Module:
    """The convolutional network with weights of Student's t distribution."""
    network = convnet()
    for parameter in network.parameters():
        if parameter.dim() > 1:
            chi = torch._standard_gamma(torch.full(parameter.shape, degrees / 2)) * 2
            std = parameter[0].numel() ** -0.5
            parameter.data = std * torch.randn(parameter.shape) / (chi / degrees).sqrt()
    return network


def blurred(network: nn.Module) -> nn.Module:
    """The same behind a blur, which makes the first directions differ much from the others."""
    blur = nn.AvgPool2d(5, 1, 2, count_include_pad=False)
    return nn.Sequential(blur, blur, network)


CASES: dict[str, Callable[[], nn.Module]] = {
    "convolutional network": convnet,
    "spectral norm in eval mode": spectral,
    "spectral norm behind a blur": lambda: blurred(spectral()),
    "product of 4 layers": lambda: product(4, 4),
    "product of 8 layers": lambda: product(8, 4),
    "product of 16 layers": lambda: product(16, 3),
    "Student t, 5 degrees": lambda: student(5.0),
    "Student t, 3 degrees": lambda: student(3.0),
    "Student t, 3 degrees, blurred": lambda: blurred(student(3.0)),
    "Student t, 2 degrees": lambda: student(2.0),
    "Student t, 1 degree": lambda: student(1.0),
}


def run(factory: Callable[[], nn.Module], seed: int) -> tuple[float, dict[str, Eigenpairs]]:
    """Return the effective number of networks, and directions with certainties as they were, are,
    and normalised.
    """
    options = {
        "image_shape": SHAPE,
        "estimator": nc.SmoothedGradient(4),
        "seed": seed,
        "progress": False,
    }
    result = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, equal_weights in (("as it is", False), ("normalised", True)):
            path = Path(folder) / name
            nc.compute_nads(
                factory,
                NETWORKS,
                checkpoint=path,
                equal_weights=equal_weights,
                device="cpu",
                **options,
            )
            saved = read_checkpoint(path)
            moments, first = restored(saved)
            share = NormMoments(*saved["powers"][:3]).effective_share
            if equal_weights:
                result["normalised"] = EigenProblem(moments, first, 64, SHAPE).eigenpairs()
            else:
                effective = share * NETWORKS
                result["before"] = EigenProblem(moments, first, 64, SHAPE).eigenpairs()
                result["after"] = EigenProblem(
                    moments, first, 64, SHAPE, effective_share=share
                ).eigenpairs()
    return effective, result


def compared(runs: list[Eigenpairs]) -> dict[str, object]:
    """Compare what the first directions promise with what pairs of runs keep."""
    promised, kept = [], []
    for one, other in itertools.pairwise(runs):
        cosines = (
            (one.directions[:RANKS].double() * other.directions[:RANKS].double()).sum(1).square()
        )
        promised.append(
            ((one.uncertainty.agreement + other.uncertainty.agreement)[:RANKS] / 2).tolist()
        )
        kept.append(cosines.tolist())
    promised, kept = np.array(promised), np.array(kept)
    certain = np.array([(run.uncertainty.certainty[:RANKS] >= 0.9).tolist() for run in runs])
    both = certain[1:] & certain[:-1]
    return {
        "promised": promised.mean(0).round(3).tolist(),
        "kept": kept.mean(0).round(3).tolist(),
        "certain": float(certain.sum(1).mean().round(2)),
        "kept_by_certain": float(kept[both].mean().round(3)) if both.any() else None,
        "mean_promised": float(promised.mean().round(3)),
        "mean_kept": float(kept.mean().round(3)),
    }


def main() -> None:
    """Measure, write and print the results."""
    torch.set_num_threads(1)
    cases = {}
    for name, factory in CASES.items():
        runs = [run(factory, seed) for seed in range(RUNS)]
        quantiles = np.quantile([number for number, _ in runs], [0, 0.5, 1])
        cases[name] = {"effective_networks": [round(float(number), 1) for number in quantiles]}
        cases[name] |= {kind: compared([each[kind] for _, each in runs]) for kind in runs[0][1]}
        print(name, cases[name], flush=True)
    write_result("heavy_tails", {"num_networks": NETWORKS, "runs": RUNS, "cases": cases})


if __name__ == "__main__":
    main()
