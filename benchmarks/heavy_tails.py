"""Are certainties kept where the norms of gradients have heavy tails? Replicate runs of small
networks, in pairs.

python benchmarks/heavy_tails.py    # about ten minutes on one core

Which effective number of networks along a direction does a claim need? Samples of 4 to 128
networks, against the exact directions.

python benchmarks/heavy_tails.py --few    # about ten minutes
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torchvision
from nads_book.analysis.forecasting import restored
from nads_book.benchmarks.stored import write_result
from nads_core.directions.accumulation import read_checkpoint
from nads_core.directions.share_variance import share_variances
from torch import Tensor, nn

import nads_core as nc
from nads_core.directions import simulation
from nads_core.directions.eigenpairs import Eigenpairs, EigenProblem
from nads_core.directions.moments import DenseMoments, HalfSamples, effective_share

SHAPE = (1, 8, 8)
RANKS = 5  # directions that are compared
NETWORKS, RUNS = 512, 12
SIZES = (4, 8, 16, 32, 64, 128)  # networks of a sample
MOST_SAMPLES = 64  # of each size
LEADING = 8  # directions that are compared, and of leading spaces
CLAIMED = 0.5  # from which on a claim counts here
EDGES = (0, 1.5, 2, 3, 4, 5, 6, 8, 12, 200)  # of networks along a direction


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
            share = effective_share(*saved["powers"][:3].tolist())
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


class Weighted(nn.Module):
    """A network of 64 numbers that are multiplied by falling weights.

    Weights of its first layer are as likely with the other sign: the pixels are the exact
    directions.
    """

    def __init__(self, *sizes: int, activation: Callable[[], nn.Module] = nn.Identity):
        super().__init__()
        self.register_buffer("weights", (0.02 + torch.exp(-torch.arange(64) / 4)).sqrt())
        layers: list[nn.Module] = [nn.Linear(64, sizes[0])]
        for one, other in itertools.pairwise([*sizes, 10]):
            layers += [activation(), nn.Linear(one, other)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x * self.weights)


def shufflenet() -> nn.Module:
    return torchvision.models.shufflenet_v2_x0_5(num_classes=10)


# Factory, shape of its input, readouts, runs of 512 networks, of which the second half is for
# images the reference
FEW = {
    "MLP": (lambda: Weighted(32, 16, activation=nn.ReLU), (64,), 8, 4),
    "deep linear, 4 layers of 3": (lambda: Weighted(*[3] * 4), (64,), 3, 4),
    "deep linear, 8 layers of 4": (lambda: Weighted(*[4] * 8), (64,), 4, 4),
    "the same, 1 readout": (lambda: Weighted(*[4] * 8), (64,), 1, 4),
    "deep linear, 16 layers of 8": (lambda: Weighted(*[8] * 16), (64,), 8, 4),
    "ShuffleNet, 1 readout": (shufflenet, (3, 32, 32), 1, 1),
}


def stored_halves(factory: Callable[[], nn.Module], seed: int, **options: object) -> Tensor:
    """Return the vectors of a run of 512 networks, (n, R, 2, D)."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "run"
        options = {"num_directions": 2, "symmetries": (), "device": "cpu"} | options
        nc.compute_nads(factory, NETWORKS, checkpoint=path, seed=seed, progress=False, **options)
        first = HalfSamples()
        first.load_state_dict(read_checkpoint(path)["first_networks"])
    return first.halves()


Claim = tuple[str, float, float, float]


def claims(halves: Tensor, exact: Tensor) -> list[Claim]:
    """Return what is claimed of a sample (n, R, 2, D): kind, networks along the directions, and
    certainty as claimed and as measured.
    """
    num_networks, readouts, _, dimension = halves.shape
    moments, first = DenseMoments(dimension), HalfSamples()
    moments.update(halves.flatten(0, 1))
    first.update(0, num_networks, halves.flatten(0, 1), readouts)
    squares = halves.mean(2).double().square().sum(2).mean(1)
    share = effective_share(num_networks, float(squares.sum()), float(squares.square().sum()))
    shape, count = (dimension,), min(64, dimension)
    pairs = EigenProblem(moments, first, count, shape, effective_share=share).eigenpairs()
    directions, known = pairs.directions.to(halves), pairs.uncertainty
    coordinates = halves @ directions.T  # (n, R, 2, k)
    along = simulation.networks_along(
        coordinates.mean(2).double().square().mean((0, 1)),
        share_variances(coordinates[None]).diagonal(),
        simulation.SampleSize(num_networks, readouts),
        torch.zeros(count),
    )
    shared = (directions @ exact.to(directions).T).square()  # with each exact direction
    rows = []
    for rank in range(LEADING):
        least, span = float(along[: rank + 1].min()), slice(rank + 1)
        measured = float(shared[span, span].sum()) / (rank + 1)
        rows.append(("single", least, float(known.certainty[rank]), float(shared[rank, rank])))
        rows.append(("leading", least, float(known.leading_certainty[rank]), measured))
    for band in known.bands:
        inside = list(band.indices)
        measured = float(shared[inside][:, inside].sum()) / len(inside)
        rows.append(("band", float(along[: inside[-1] + 1].min()), band.certainty, measured))
    return [row for row in rows if row[2] >= CLAIMED]


def summary(rows: list[Claim], kind: str, low: float, high: float) -> dict[str, float]:
    """Return how many claims of a kind there are from low to high networks, and their means."""
    chosen = np.array([row[2:] for row in rows if row[0] == kind and low <= row[1] < high])
    if not len(chosen):
        return {"claims": 0}
    claimed, measured = chosen.mean(0).round(3).tolist()
    return {"claims": len(chosen), "claimed": claimed, "measured": measured}


def main_of_few() -> None:
    """Measure, write and print what claims of few networks keep, without the limit and with it."""
    limit, table = simulation.FEWEST_ALONG, {}
    for name, (factory, shape, readouts, runs) in FEW.items():
        estimator = nc.SmoothedGradient(4, readouts=readouts)
        halves = torch.cat(
            [
                stored_halves(factory, seed, image_shape=shape, estimator=estimator)
                for seed in range(runs)
            ]
        )
        exact = torch.eye(64)
        if len(shape) > 1:
            halves, others = halves.chunk(2)
            _, _, exact = torch.linalg.svd(others.mean(2).flatten(0, 1), full_matrices=False)
        samples = [sample for size in SIZES for sample in halves.split(size)[:MOST_SAMPLES]]
        rows = {}
        for least in (0, limit):
            simulation.FEWEST_ALONG = least
            rows[least] = [row for sample in samples for row in claims(sample, exact[:64])]
        table[name] = {
            kind: {
                f"{low} to {high} networks": summary(rows[0], kind, low, high)
                for low, high in itertools.pairwise(EDGES)
            }
            | {"with the limit": summary(rows[limit], kind, 0, np.inf)}
            for kind in ("single", "leading", "band")
        }
        print(name, table[name], flush=True)
    write_result("few_networks", {"limit": limit, "cases": table})


def main() -> None:
    """Measure, write and print the results."""
    torch.set_num_threads(1)
    if "--few" in sys.argv:
        return main_of_few()
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
