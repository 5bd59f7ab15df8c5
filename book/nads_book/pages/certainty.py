"""How certain NADs are: figures and claims of the section of ``09_nad_computation`` on independent
runs, and of the page on certainty.
"""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.claims import decides
from nads_book.experiments import formatting, load_nads, load_study, table_of
from nads_book.experiments.evidence import evidence
from nads_book.experiments.formatting import LABELS
from nads_book.figures.style import panel_row, shade, styled
from nads_book.published.waves import half_of_energy
from nads_book.studies.network_numbers import LARGEST
from nads_core.directions import NADs

NAMES = LABELS | {
    "mlp": "MLP",
    "cnn": "Small CNN",
    "vit": "Small ViT",
    "deep-linear": "Deep linear, exact C",
}
FEW = 15  # claims, below which a bin decides nothing
HIGH = 0.8  # certainty from which on LeNet's directions count as known
CERTAIN = 0.81  # predicted cos² above which a direction counts as reproducible
AREA, OVERLAP, TIMES = 0.95, 0.8, 4  # as registered, of few networks
MOST = 128  # networks; chosen after seeing the results
MEASURES = {
    "area": "area, learned waves",
    "correlation": "rank correlation",
    "first 10": "overlap, first 10",
    "first 50": "overlap, first 50",
}


def plot_certainty(nads: NADs, kind: str) -> Figure:
    """Draw the eigenvalues of one symmetry type with their errors, and the certainties."""
    chosen = [index for index, name in enumerate(nads.types) if name == kind][:48]
    values, errors = nads.eigenvalues[chosen], 2 * nads.eigenvalue_std[chosen]
    intervals = torch.stack([values, values - errors, values + errors], 1) / values[0]
    ranks, certainties = range(len(chosen)), nads.certainty[chosen]
    lines = {"eigenvalue / first": (ranks, intervals), "certainty": (ranks, certainties)}
    xlabel = f"rank within the type {kind}"
    return figures.plot_lines({"": lines}, xlabel, "value", yscale="log", ylim=(0.005, 1.2))


@cache
def agreement() -> dict[str, Any]:
    """Return squared cosines of LeNet's directions with another run, measured and foretold, and
    the overlaps of the first ones.

    Raises:
        ValueError: if the stored comparison is of other NADs than those that ship.
    """
    stored: dict[str, Any] = load_study("agreement.json")["lenet"]
    if stored["fingerprint"] != load_nads("lenet").fingerprint:
        raise ValueError("agreement.json is about other NADs of LeNet than those that ship")
    return stored | {name: np.array(stored[name]) for name in ("by_index", "by_name", "foretold")}


@cache
def calibration() -> pd.DataFrame:
    """Return the calibration of certainties: claimed and measured (kept) squared cosines by bin,
    errors, and numbers of claims, of all sets of runs in which something is certain.
    """
    facts = ["entry", "architecture", "num_networks", "runs"]
    return pd.json_normalize(load_study("calibration.json")["rows"], "bins", facts)


@styled
def plot_reliability() -> Figure:
    """Draw claimed against measured squared cosines, for many runs, one panel per network."""
    panels = calibration().groupby("architecture", sort=False)
    titles = [NAMES[name] for name, _ in panels]
    labels: dict[str, Any] = {"xlabel": "claimed cos²", "ylabel": "measured cos²"}
    figure, axes = panel_row(titles, 2.4, sharex=True, sharey=True, **labels)
    for axis, (_, sets) in zip(axes, panels, strict=True):
        axis.axline((0, 0), slope=1, color=shade(0.6))
        for (runs, count), bins in sets.groupby(["runs", "num_networks"], sort=False):
            look = {"fmt": "o", "label": f"{runs} runs of {count:,}"}
            axis.errorbar(bins["claimed"], bins["kept"], 2 * bins["error"], **look)
        axis.legend(loc="lower right", fontsize="small")
    return figure


@decides("ordered-basis")
def _():
    """Decide whether a hundred directions of LeNet are reproducible, and 300 as a subspace."""
    certain = agreement()["foretold"] > CERTAIN
    found = agreement()["by_name"][certain]
    subspace = agreement()["overlaps"]["300"]
    holds = found.mean() > CERTAIN and certain.sum() > 100 and subspace > 0.9
    return evidence(holds, found.mean(), size="paper", num_seeds=2)


@decides("head-known")
def _():
    """Decide whether high certainties of LeNet's directions are kept by a much longer run."""
    bins = calibration().query("architecture == 'lenet'")
    high = bins.query("count >= @FEW and claimed >= @HIGH")
    excess = (high["claimed"] - high["kept"]).max()
    return evidence(excess < 0.05, excess, size="paper", num_seeds=int(bins["runs"].iloc[0]))


@decides("names-steadier")
def _():
    """Decide whether directions of one name agree better than those of one index."""
    gain = (agreement()["by_name"] - agreement()["by_index"])[:50].mean()
    return evidence(gain > 0, gain, size="paper", num_seeds=2)


@decides("certainties-too-high")
def _():
    """Decide whether some certainties are too high."""
    many = calibration().query("count >= @FEW")
    excess = (many["claimed"] - many["kept"]).max()
    return evidence(excess > 0.05, excess, size="paper")


def table_shipped() -> str:
    """Return the networks, the concentration and the reliable directions of the NADs that ship."""
    rows = []
    for label in LABELS.values():
        nads = load_nads(label)
        values = nads.eigenvalues
        certain = int((nads.certainty >= 0.9).sum()) if nads.uncertainty else "–"
        spread = f"{float(values[0] / values[-1]):,.0f}"
        number = f"{nads.provenance['num_networks']:,}"
        rows.append([label, number, half_of_energy(nads), spread, certain])
    head = ["NADs that ship", "networks", "NADs with half of the energy", "first / last eigenvalue"]
    return formatting.markdown_table(rows, [*head, "certain above 0.9"])


# How many networks it takes


@cache
def network_numbers() -> pd.DataFrame:
    """Return the means of measures over runs, by network and number of networks."""
    rows = table_of("network-numbers").drop(columns=["seed", "run"])
    return rows.groupby(["network", "networks"]).mean()


def plot_network_numbers() -> Figure:
    """Draw what runs of few networks predict and know."""
    panels: dict[str, Any] = {}
    for network in LARGEST:
        found = network_numbers().loc[network]
        panels[NAMES[network]] = {
            label: (found.index, found[measure]) for measure, label in MEASURES.items()
        }
    labels = ("networks", "1 is perfect")
    return figures.plot_lines(panels, *labels, [4, 32, 256], level=AREA, ylim=(0, 1.03))


@decides("few-networks")
def _():
    """Decide whether so many networks predict which waves are learned, and in which networks
    knowing the first 50 NADs takes several times as many.
    """
    areas, firsts = (
        found[found >= limit].reset_index("networks").groupby(level=0)["networks"].min()
        for found, limit in (
            (network_numbers()["area"], AREA),
            (network_numbers()["first 50"], OVERLAP),
        )
    )
    # Where no number is enough, it takes infinitely many.
    enough = areas.reindex(LARGEST, fill_value=np.inf)
    several = firsts.reindex(LARGEST, fill_value=np.inf) >= TIMES * enough
    holds = enough.max() <= MOST and list(several.index[several]) == ["lenet", "resnet18"]
    return evidence(holds, enough.max(), size="paper", num_seeds=3)
