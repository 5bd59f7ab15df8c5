"""Are certainties of NADs kept? Runs of one architecture, each compared with a much longer run,
with all the others together, or with the exact C.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import torch

import nads_core as nc
from nads_book.atlas.entries import ATLAS
from nads_book.experiments import Context, Row, Study, Unit, rounded
from nads_book.theory.deep_linear import deep_linear_output, gradient_covariance
from nads_core.directions import NADs, SecondMoment

# Architecture, networks of a run, and number of runs
ENTRIES = {
    "lenet-512": ("lenet", 512, 8),
    "lenet-2048": ("lenet", 2_048, 4),
    "cnn-512": ("cnn", 512, 4),
    "mlp-512": ("mlp", 512, 4),
    "vit-256": ("vit", 256, 4),
    "deep-linear-512": ("deep-linear", 512, 8),
    "deep-linear-2048": ("deep-linear", 2_048, 8),
}
SHAPE = (1, 32, 32)
FREQUENCIES, TAPS = 256, 9  # of the deep linear models, and of their filters
BINS = 10
WITHIN = 2.3646  # standard errors in an interval: Student's t with 7 degrees of freedom, 95 %


@dataclass(frozen=True)
class Comparison:
    """What one run claims of its directions, and how it compares with a better known basis.

    Args:
        claimed: (n,), certainties above 0.
        kept: (n,), squared cosines with the direction of the same name; 0 where there is none.
        deviations: errors of eigenvalues in units of their standard error, where that is given.
    """

    claimed: np.ndarray
    kept: np.ndarray
    deviations: np.ndarray

    @classmethod
    def of(
        cls, run: NADs, names: Sequence[str], rows: torch.Tensor, values: torch.Tensor
    ) -> "Comparison":
        """Compare a run with named directions, (n, D), and their eigenvalues, (n,)."""
        place = {name: index for index, name in enumerate(names)}
        claims = [
            (index, place.get(name)) for index, name in enumerate(run.names) if run.certainty[index]
        ]
        kept, deviations = [], []
        for index, other in claims:
            cosine = 0.0 if other is None else run[index].flatten().double() @ rows[other].double()
            kept.append(float(cosine) ** 2)
            std = float(run.eigenvalue_std[index])
            if other is not None and np.isfinite(std):
                deviations.append(float(run.eigenvalues[index] - values[other]) / std)
        claimed = [float(run.certainty[index]) for index, _ in claims]
        return cls(np.array(claimed), np.array(kept), np.array(deviations))


def compare_runs(runs: Sequence[SecondMoment], name: str) -> list[Comparison]:
    """Compare each of several runs of one architecture with the NADs that ship, or with all others,
    merged.
    """
    if name in nc.ARCHITECTURES:
        known = nc.load_nads(name)
        shipped = known.names, known.directions.flatten(1), known.eigenvalues
        return [Comparison.of(run.nads(), *shipped) for run in runs]
    comparisons = []
    for number, run in enumerate(runs):
        others = reduce(SecondMoment.merge, [*runs[:number], *runs[number + 1 :]]).nads()
        merged = others.names, others.directions.flatten(1), others.eigenvalues
        comparisons.append(Comparison.of(run.nads(), *merged))
    return comparisons


def compare_with_exact(run: SecondMoment, covariance: torch.Tensor) -> Comparison:
    """Compare a run without symmetries with the second moment (D, D) that its networks have."""
    values, axes = torch.linalg.eigh(covariance.double())
    names = [str(rank) for rank in range(len(values))]
    return Comparison.of(run.nads(()), names, axes.T.flip(0), values.flip(0))


def reliability(comparisons: Sequence[Comparison]) -> list[dict[str, float]]:
    """Return means of claimed and kept squared cosines for directions of about one certainty.

    ``error`` is the standard error of ``kept`` over runs, ``share`` the part of all claims, and
    ``count`` the number of them.
    """
    claimed, kept = (
        np.concatenate([getattr(c, name) for c in comparisons]) for name in ("claimed", "kept")
    )
    run = np.repeat(np.arange(len(comparisons)), [len(c.claimed) for c in comparisons])
    place, bins = np.minimum((claimed * BINS).astype(int), BINS - 1), []
    for number in np.unique(place):
        inside = place == number
        mean, count = kept[inside].mean(), inside.sum()
        sums = np.bincount(run[inside], kept[inside] - mean)  # over runs, of a ratio of sums
        values = {
            "claimed": claimed[inside].mean(),
            "kept": mean,
            "error": np.sqrt((sums**2).sum()) / count,
            "share": count / len(kept),
            "count": int(count),
        }
        bins.append(rounded(values, 4))
    return bins


class DeepLinear(torch.nn.Module):
    """The model of `deep_linear` with stride 4 as a network, (B, D) -> (B, 1), which draws its own
    weights.

    Args:
        response: m, (D,).
    """

    response: torch.Tensor

    def __init__(self, response: torch.Tensor):
        super().__init__()
        self.register_buffer("response", response.float())
        self.theta = torch.nn.Parameter(torch.randn(len(response) // 4))
        self.phi = torch.nn.Parameter(torch.randn(len(response)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return f(x)."""
        return deep_linear_output(self.theta, self.phi, x, self.response)[..., None]


def deep_linear(num_networks: int, count: int) -> list[Comparison]:
    """Compare runs of deep linear models, each with the response of a random filter of its own,
    with their exact C.
    """
    comparisons = []
    for seed in range(count):
        taps = torch.randn(TAPS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        response = torch.fft.rfft(taps, 2 * FREQUENCIES)[:FREQUENCIES].abs()
        run = nc.second_moment(
            partial(DeepLinear, response),
            (FREQUENCIES,),
            num_networks,
            estimator=nc.PointGradient(),
            seed=1_000 + seed,
            device="cpu",
            workers=1,
            progress=False,
        )
        comparisons.append(compare_with_exact(run, gradient_covariance(response)))
    return comparisons


class Calibration(Study):
    """Are certainties kept? Runs of one architecture, each compared with what is known better."""

    name = "calibration"
    on_gpu = False
    design = {"entry": ENTRIES}

    def run(self, unit: Unit, context: Context) -> Row:
        name, num_networks, count = ENTRIES[unit["entry"]]
        if name == "deep-linear":
            comparisons = deep_linear(num_networks, count)
        else:
            architecture = nc.ARCHITECTURES.get(name) or ATLAS[name].architecture
            options: dict[str, Any] = {"device": "cpu", "workers": 1, "progress": False}
            runs = [
                nc.second_moment(architecture, SHAPE, num_networks, seed=1_000 + seed, **options)
                for seed in range(count)
            ]
            comparisons = compare_runs(runs, name)
        deviations = np.abs(np.concatenate([c.deviations for c in comparisons]))
        covered = float((deviations < WITHIN).mean()) if len(deviations) else None
        return {
            "architecture": name,
            "num_networks": num_networks,
            "runs": count,
            "seeds": f"1000 to {999 + count}",
            "bins": reliability(comparisons),
            "eigenvalues": len(deviations),
            "coverage": covered and round(covered, 4),
        }
