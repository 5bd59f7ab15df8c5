"""Are certainties of NADs kept? Runs of one architecture, each compared with all the others
together.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import nads_core as nc
from nads_book.analysis.forecasting import restored
from nads_book.atlas.entries import ATLAS
from nads_book.checkout import build_folder
from nads_book.experiments import Context, Facts, KeyedStudy, Row, Unit, rounded
from nads_book.theory.deep_linear import deep_linear_output, gradient_covariance
from nads_core.directions.accumulation import read_checkpoint
from nads_core.directions.covariance import leading_eigenpairs
from nads_core.directions.eigenpairs import Eigenpairs, EigenProblem
from nads_core.directions.moments import DenseMoments, HalfSamples
from nads_core.directions.nads import NADs
from nads_core.directions.uncertainty import DirectionUncertainty

# Architecture, networks of a run, number of runs, and whether these have seeds of their own or are
# parts of one run
ENTRIES = {
    "lenet-512": ("lenet", 512, 40, True),
    "lenet-5120": ("lenet", 5_120, 40, True),
    "mlp-2000": ("mlp", 2_000, 10, True),
    "cnn-2000": ("cnn", 2_000, 10, True),
    "vit-1000": ("vit", 1_000, 10, True),
    "deep-linear-512": ("deep-linear", 512, 40, True),
    "deep-linear-5120": ("deep-linear", 5_120, 40, True),
    "resnet18-600": ("resnet18", 600, 10, False),
    "vgg11-1000": ("vgg11", 1_000, 10, False),
    "lenet-20480": ("lenet", 20_480, 5, False),
    "densenet121-500": ("densenet121", 500, 10, False),
}


def agreement(first: NADs, second: NADs) -> tuple[Tensor, Tensor]:
    """Return the squared cosines (n,) of the directions of one run with those of another.

    Returns:
        With the direction of the same index, and with the direction of the same name; 0 if there is
        none.
    """
    place = {name: index for index, name in enumerate(second.names)}
    squares = (first.directions.flatten(1) @ second.directions.flatten(1).T).square()
    named = torch.zeros(len(squares))
    for index, name in enumerate(first.names):
        if name in place:
            named[index] = squares[index, place[name]]
    return squares.diagonal(), named


PIXELS = 32 * 32
FREQUENCIES, TAPS = 256, 9  # of the deep linear models, and of their filters
Run = tuple[DenseMoments, HalfSamples]
EXACT = 0.98  # certainty of the pool of the other runs from which on it stands for the truth
BINS = 10


@dataclass(frozen=True)
class Comparison:
    """What one run promised about its directions, and the outcomes; those of certainty 0 promise
    nothing.

    Args:
        promised: (n,), expected squared cosines: with the exact direction of the same name where
            the pool of the other runs knows it, and with that of another run elsewhere.
        kept: (n,), squared cosines with the pool's direction, or their mean over all other runs.
        deviations: errors of the eigenvalues in units of their `eigenvalue_std`, where the pool
            knows them better.
    """

    promised: np.ndarray
    kept: np.ndarray
    deviations: np.ndarray


def compare_runs(
    runs: Sequence[Run], image_shape: tuple[int, ...], symmetries: tuple[str, ...]
) -> list[Comparison]:
    """Compare each of several runs of one architecture with the pool of the others, and with each
    of them.

    Args:
        runs: moments and first networks of each, three at least.
        image_shape: shape of an input.
        symmetries: symmetries of the architecture.
    """
    count = runs[0][0].dimension
    whole = merged(runs)
    eigenpairs = [
        EigenProblem(*run, count, image_shape, symmetries=symmetries).eigenpairs() for run in runs
    ]
    comparisons = []
    for number, (moments, _) in enumerate(runs):
        first = runs[(number + 1) % len(runs)][1]  # of the pool, not of this run
        rest = _without(whole, moments)
        pool = EigenProblem(rest, first, count, image_shape, symmetries=symmetries).eigenpairs()
        others = eigenpairs[:number] + eigenpairs[number + 1 :]
        comparisons.append(_comparison(eigenpairs[number], others, pool))
    return comparisons


def compare_with_exact(
    runs: Sequence[Run], covariance: torch.Tensor, image_shape: tuple[int, ...]
) -> list[Comparison]:
    """Compare runs with the second moment that their networks have.

    Args:
        runs: moments and first networks of each.
        covariance: (D, D), with different eigenvalues.
        image_shape: shape of an input.
    """
    count = len(covariance)
    values, axes = leading_eigenpairs(covariance.double(), count)
    one, zero = torch.ones(count), torch.zeros(count)
    exact = Eigenpairs(
        values, axes, DirectionUncertainty(("",) * count, one, one, zero, one, ()), "none"
    )
    return [
        _comparison(EigenProblem(*run, count, image_shape).eigenpairs(), [], exact) for run in runs
    ]


def merged(runs: Sequence[Run]) -> DenseMoments:
    """Return the moments of the networks of all runs."""
    whole = runs[0][0].empty()
    for moments, _ in runs:
        whole.merge(moments)
    return whole


def _without(whole: DenseMoments, part: DenseMoments) -> DenseMoments:
    """Return the moments of the networks of ``whole`` that are not in ``part``."""
    rest = whole.empty()
    (seen, noise), (own, own_noise) = whole.sums(), part.sums()
    count = whole.num_networks - part.num_networks
    rest.load_state_dict(
        {"seen": seen - own, "noise": noise - own_noise, "num_networks": count, "buffer": []}
    )
    return rest


def _comparison(run: Eigenpairs, others: list[Eigenpairs], pool: Eigenpairs) -> Comparison:
    own, known = run.uncertainty, pool.uncertainty
    exact = _places(own.names, known.names)

    def squares(other: Eigenpairs) -> Tensor:  # (n,), with its directions of the same names
        theirs = other.directions[_places(own.names, other.uncertainty.names)]
        return (run.directions.double() * theirs.double()).sum(1).square()

    # What is promised of the pool's direction where that is known, and of other runs elsewhere.
    in_pool = known.certainty[exact] > EXACT
    agreement = sum(map(squares, others), torch.zeros(len(own))) / max(len(others), 1)
    promised = torch.where(in_pool, own.certainty, own.agreement).double()
    kept = torch.where(in_pool, squares(pool), agreement)
    errors = (run.eigenvalues - pool.eigenvalues[exact]).double() / own.eigenvalue_std
    anything = own.certainty != 0
    better = anything & (known.eigenvalue_std[exact] < 0.3 * own.eigenvalue_std)
    found = promised[anything], kept[anything], errors[better]
    return Comparison(*(values.numpy() for values in found))


def _places(names: Sequence[str], among: Sequence[str]) -> list[int]:
    """Return where names stand among others."""
    place = {name: index for index, name in enumerate(among)}
    return [place[name] for name in names]


def reliability(comparisons: Sequence[Comparison]) -> list[dict[str, float]]:
    """Return a reliability diagram: means of promised and actual values, for directions of about
    one certainty.

    ``error`` is the standard error of ``kept`` over runs, ``share`` the part of all directions
    about which something was promised.
    """
    promised, kept = (
        np.concatenate([getattr(c, name) for c in comparisons]) for name in ("promised", "kept")
    )
    run = np.repeat(np.arange(len(comparisons)), [len(c.promised) for c in comparisons])
    place, bins = np.minimum((promised * BINS).astype(int), BINS - 1), []
    for number in np.unique(place):
        inside = place == number
        mean, count = kept[inside].mean(), inside.sum()
        sums = np.bincount(run[inside], kept[inside] - mean)  # over runs, of a ratio of sums
        values = {
            "promised": promised[inside].mean(),
            "kept": mean,
            "error": np.sqrt((sums**2).sum()) / count,
            "share": count / len(kept),
        }
        bins.append({name: float(value) for name, value in values.items()})
    return bins


def coverage(comparisons: Sequence[Comparison]) -> float:
    """Return how often the exact eigenvalue lies within 1.96 standard deviations;
    0.95 is promised.
    """
    deviations = np.concatenate([c.deviations for c in comparisons])
    return float((np.abs(deviations) < 1.96).mean())


def summary(comparisons: Sequence[Comparison], **facts: Any) -> Facts:
    """Return what a file keeps of a reliability diagram."""
    deviations = sum(len(c.deviations) for c in comparisons)
    return facts | {
        "runs": len(comparisons),
        "bins": reliability(comparisons),
        "eigenvalues": deviations,
        "coverage": coverage(comparisons),
    }


def separate(architecture: nc.Architecture, num_networks: int, count: int) -> list[Run]:
    """Compute runs of different seeds, or take up those that are there."""
    runs = []
    for number in range(count):
        path = scratch() / f"{architecture.name}-{num_networks}-{number}.ckpt"
        runs.append(drawn(architecture, num_networks, path, seed=1_000 + number))
    return runs


def drawn(factory: Any, num_networks: int, checkpoint: Path, **options: Any) -> Run:
    """Return moments and first networks of a run, which is resumed from its checkpoint."""
    nc.compute_nads(
        factory,
        num_networks,
        num_directions=1,
        device="cpu",
        checkpoint=checkpoint,
        progress=False,
        **options,
    )
    return restored(read_checkpoint(checkpoint))


def parts(architecture: nc.Architecture, num_networks: int, count: int) -> list[Run]:
    """Return what each part adds to one run; all share the first networks of the run."""
    path = scratch() / f"{architecture.name}-parts.ckpt"
    runs = [drawn(architecture, n * num_networks, path) for n in range(1, count + 1)]
    first = runs[0][1]
    moments = [runs[0][0], *(_without(b[0], a[0]) for a, b in itertools.pairwise(runs))]
    return [(part, first) for part in moments]


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
        path = scratch() / f"deep-linear-{num_networks}-{seed}.ckpt"
        run = drawn(
            partial(DeepLinear, response),
            num_networks,
            path,
            image_shape=(FREQUENCIES,),
            estimator=nc.PointGradient(),
            seed=1_000 + seed,
        )
        comparisons += compare_with_exact([run], gradient_covariance(response), (FREQUENCIES,))
    return comparisons


def scratch() -> Path:
    """Return the folder of the runs' checkpoints, which are made again where they are missing."""
    return build_folder("reliability")


class Calibration(KeyedStudy):
    """Are certainties kept? Runs of one architecture, each compared with all
    the others together.
    """

    name = "calibration"
    on_gpu = False
    file = "reliability.json"
    design = {"entry": ENTRIES}

    runs_key = "provenance"

    def run(self, unit: Unit, context: Context) -> Row:
        name, num_networks, count, separately = ENTRIES[unit["entry"]]
        if name == "deep-linear":
            comparisons = deep_linear(num_networks, count)
        else:
            architecture = nc.ARCHITECTURES.get(name) or ATLAS[name].architecture
            runs = (separate if separately else parts)(architecture, num_networks, count)
            comparisons = compare_runs(runs, (1, 32, 32), architecture.symmetries_at(32))
        seeds = f"1000 to {999 + count}" if separately else "parts of one run"
        return summary(comparisons, architecture=name, num_networks=num_networks, seeds=seeds)


class Agreement(KeyedStudy):
    """Do the NADs that ship agree with those of independent networks?"""

    name = "agreement"
    on_gpu = False
    design = {"architecture": ["lenet"]}

    runs_key = "provenance"

    def run(self, unit: Unit, context: Context) -> Row:
        architecture = nc.ARCHITECTURES[unit["architecture"]]
        runs = separate(architecture, 5_120, 40)
        shipped, together = nc.load_nads(architecture.name), merged(runs)
        found = EigenProblem(
            together, runs[0][1], PIXELS, (1, 32, 32), symmetries=architecture.symmetries_at(32)
        ).eigenpairs()
        directions = found.directions.float().view(-1, 1, 32, 32)
        other = nc.NADs(directions, found.eigenvalues.float(), {}, found.uncertainty)
        by_index, by_name = agreement(shipped, other)
        predicted = shipped.certainty * other.certainty[_places(shipped.names, other.names)]
        shares = {"by_index": by_index, "by_name": by_name, "foretold": predicted}
        return {
            "version": shipped.provenance["version"],
            "fingerprint": shipped.fingerprint,
            "num_networks": [shipped.provenance["num_networks"], together.num_networks],
            "overlaps": {str(k): round(shipped.overlap(other, k), 4) for k in (10, 50, 100, 300)},
            **rounded(shares, 3),
        }
