"""Are certainties of NADs kept? Runs of one architecture, each compared with a much longer run,
with all the others together, or with the exact C.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

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
FIRST_SEED = 1_000
FREQUENCIES, TAPS = 256, 9  # of the deep linear models, and of their filters
BINS = 10
WITHIN = 2.3646  # standard errors in an interval: Student's t with 7 degrees of freedom, 95 %


def compared(run: NADs, names: Sequence[str], rows: Tensor, values: Tensor) -> pd.DataFrame:
    """Return what a run claims of its directions, and how it compares with a better known basis.

    Args:
        run: NADs of the run.
        names: names of the better known directions.
        rows: these directions, (n, D).
        values: their eigenvalues, (n,).

    Returns:
        Of each direction with a certainty above 0 what is ``claimed``; what is ``kept``, the
        squared cosine with the direction of the same name (0 where there is none); and the
        ``deviation`` of the eigenvalue in standard errors (NaN where these are unknown).
    """
    place = torch.from_numpy(pd.Index(names).get_indexer(pd.Index(run.names)))  # -1 for none
    cosines = (run.directions.flatten(1).double() * rows[place].double()).sum(1)
    deviations = (run.eigenvalues - values[place]) / run.eigenvalue_std
    table = pd.DataFrame(
        {
            "claimed": run.certainty.double(),
            "kept": cosines.square().where(place >= 0, 0.0),
            "deviation": deviations.where(place >= 0, torch.nan),
        }
    )
    return table[table["claimed"] > 0]


def reliability(claims: pd.DataFrame) -> list[dict[str, float]]:
    """Return means of claimed and kept squared cosines for directions of about one certainty.

    ``error`` is the standard error of ``kept`` over runs, ``share`` the part of all claims, and
    ``count`` the number of them.

    Args:
        claims: claims of all runs, see `compared`, with a level ``run`` of their index.
    """
    bins = []
    for _, inside in claims.groupby((claims["claimed"] * BINS).astype(int).clip(upper=BINS - 1)):
        mean, count = inside["kept"].mean(), len(inside)
        sums = (inside["kept"] - mean).groupby("run").sum()  # over runs, of a ratio of sums
        values = {
            "claimed": inside["claimed"].mean(),
            "kept": mean,
            "error": np.sqrt(sums.pow(2).sum()) / count,
            "share": count / len(claims),
            "count": count,
        }
        bins.append(rounded(values, 4))
    return bins


class DeepLinear(torch.nn.Module):
    """The model of `deep_linear` with stride 4 as a network, (B, D) -> (B, 1), which draws its own
    weights.

    Args:
        response: m, (D,).
    """

    response: Tensor

    def __init__(self, response: Tensor):
        super().__init__()
        self.register_buffer("response", response.float())
        self.theta = torch.nn.Parameter(torch.randn(len(response) // 4))
        self.phi = torch.nn.Parameter(torch.randn(len(response)))

    def forward(self, x: Tensor) -> Tensor:
        """Return f(x)."""
        return deep_linear_output(self.theta, self.phi, x, self.response)[..., None]


def random_response(seed: int) -> Tensor:
    """Return the response of a random filter, (D,)."""
    taps = torch.randn(TAPS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.fft.rfft(taps, 2 * FREQUENCIES)[:FREQUENCIES].abs()


def drawn(
    factory: nc.Architecture | Callable[[], torch.nn.Module],
    shape: tuple[int, ...],
    num_networks: int,
    number: int,
    **options: Any,
) -> SecondMoment:
    """Return the second moment of one run, by its number."""
    options |= {"device": "cpu", "workers": 1, "progress": False}
    return nc.second_moment(factory, shape, num_networks, seed=FIRST_SEED + number, **options)


def linear_claims(num_networks: int, number: int) -> pd.DataFrame:
    """Compare a run of deep linear models, each with the response of a random filter of its own,
    with their exact C.
    """
    response, point = random_response(number), nc.PointGradient()
    factory = partial(DeepLinear, response)
    run = drawn(factory, (FREQUENCIES,), num_networks, number, estimator=point)
    values, axes = torch.linalg.eigh(gradient_covariance(response))
    names = [str(rank) for rank in range(len(values))]
    return compared(run.nads(()), names, axes.T.flip(0), values.flip(0))


def network_claims(name: str, runs: Sequence[SecondMoment]) -> list[pd.DataFrame]:
    """Compare each of several runs of one architecture with the NADs that ship, or with all others,
    merged.
    """
    found = []
    for number, run in enumerate(runs):
        if name in nc.ARCHITECTURES:
            known = nc.load_nads(name)
        else:
            known = reduce(SecondMoment.merge, [*runs[:number], *runs[number + 1 :]]).nads()
        rows = known.directions.flatten(1)
        found.append(compared(run.nads(), known.names, rows, known.eigenvalues))
    return found


class Calibration(Study):
    """Are certainties kept? Runs of one architecture, each compared with what is known better."""

    name = "calibration"
    on_gpu = False
    design = {"entry": ENTRIES}

    def run(self, unit: Unit, context: Context) -> Row:
        name, num_networks, count = ENTRIES[unit["entry"]]
        if name == "deep-linear":
            tables = [linear_claims(num_networks, number) for number in range(count)]
        else:
            factory = nc.ARCHITECTURES.get(name) or ATLAS[name].architecture
            draw = partial(drawn, factory, (1, 32, 32), num_networks)
            tables = network_claims(name, [draw(number) for number in range(count)])
        claims = pd.concat(dict(enumerate(tables)), names=["run"])
        deviations = claims["deviation"].abs().dropna()
        return {
            "architecture": name,
            "num_networks": num_networks,
            "runs": count,
            "seeds": f"{FIRST_SEED} to {FIRST_SEED + count - 1}",
            "bins": reliability(claims),
            "eigenvalues": len(deviations),
            "coverage": round(float((deviations < WITHIN).mean()), 4) if len(deviations) else None,
        }
