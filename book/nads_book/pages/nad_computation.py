"""The page ``09_nad_computation``: how NADs are computed, and how well they are known.

What runs cost; which estimators agree, and the paper's directions; strides, poolings and the last
average, which explain combs. `certainty` has the section on independent runs.
"""

from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

import nads_core as nc
from nads_book import figures
from nads_book.benchmarks import load_costs
from nads_book.claims import decides
from nads_book.experiments import load_nads, load_study, rows_of, table_of
from nads_book.experiments.evidence import Evidence, Facts, evidence
from nads_book.experiments.formatting import LABELS
from nads_book.figures.style import colours, legend, panel_row, shade, styled
from nads_book.pages.scored_rows import registered
from nads_book.published.waves import spectrum_of
from nads_book.studies.mixed_derivative import NETWORKS
from nads_core.directions import NADs
from nads_core.networks.architectures import Architecture, architecture_named
from nads_core.runtime.seeds import seeded

OURS, AUTHORS = 2_000, 10_000  # networks of a default run, and of the authors' computation
RUNS = {  # stored costs -> number of networks of a run
    "smoothed gradient": ("smoothed-16", OURS),
    "the same in bfloat16": ("smoothed-16-bfloat16", OURS),
    "authors' dipole": ("dipole", AUTHORS),
}
STEPS = np.arange(17)  # vertical frequencies of images of 32 rows
TEETH = STEPS % 4 == 0


# Costs


@cache
def costs() -> dict[tuple[str, str], Any]:
    """Return the stored costs of the paper's architectures: (architecture, method) -> cost."""
    return {(cost["architecture"], cost["method"]): cost for cost in load_costs("cost")}


def run_times() -> pd.DataFrame:
    """Return the minutes of a whole run of each architecture on two CPU cores."""
    minutes = {
        f"{label}, {count:,} networks": {
            text: count * costs()[name, method]["seconds_per_network"] / 60
            for name, text in LABELS.items()
        }
        for label, (method, count) in RUNS.items()
    }
    return pd.DataFrame(minutes).rename_axis("minutes")


@decides("fewer-passes")
def _():
    """Decide whether a dipole along every pixel takes 50 times the operations of 16 inputs."""
    dipole, smoothed = (costs()["resnet18", method]["work"] for method in ("dipole", "smoothed-16"))
    factor = dipole["forward"] / (smoothed["forward"] + smoothed["backward"])
    return evidence(factor > 50, factor)


@decides("certainty-not-bought")
def _():
    """Decide whether 64 networks leave the first directions at 3 × 224 × 224 unknown."""
    common = max(
        one["half_overlap"]
        for run in load_costs("large")
        for one in run["first_directions"].values()
    )
    return evidence(common < 0.05, common, size="paper")


# Estimators


def stored_beside(nads: NADs) -> dict[str, NADs]:
    """Return a run for a figure, below the NADs that ship if its architecture is one of ours."""
    label = f"{LABELS.get(nads.name, nads.name)}\n({nads.provenance['num_networks']:,})"
    if nads.name in nc.ARCHITECTURES:
        stored = load_nads(nads.name)
        if stored.directions.shape[1:] == nads.directions.shape[1:]:
            return {f"stored\n({stored.provenance['num_networks']:,})": stored, label: nads}
    return {label: nads}


@styled
def plot_along_a_line(architecture: str, direction: Tensor, seed: int = 0) -> Figure:
    """Draw the slope of a random network along a line, near an image and from afar."""
    build: Any = architecture_named(architecture, tuple(direction.shape))
    if isinstance(build, Architecture):
        build = partial(build.build, *direction.shape[:2])
    with seeded(seed):
        network = build().double().eval().requires_grad_(False)
        image, direction = torch.randn(1, *direction.shape).double(), direction.double()
    gradient = torch.func.grad(lambda x: network(x)[0, 0])(image)
    titles = ("near the image", "from afar")
    figure, axes = panel_row(titles, 3.0, xlabel="t", ylabel="slope of f(x + tv)")
    for axis, reach in zip(axes, (1, 100), strict=True):
        places = torch.linspace(-reach, reach, 2_000).double()
        line = image + places.view(-1, 1, 1, 1) * direction
        outputs = torch.cat([network(some)[:, 0] for some in line.split(200)])
        slopes = outputs.diff() / places.diff()
        axis.stairs(slopes, places, baseline=None, color=shade(0), linewidth=0.8)
        axis.plot(0, (gradient * direction).sum(), "o", label="gradient at the image")
    dipole = float(outputs[-1] - outputs[0]) / 200
    for axis in axes:
        axis.axhline(dipole, linestyle="--", color=colours()[1], label="dipole of step 100")
    legend(figure, axes, ncols=2)
    return figure


@decides("point-flat")
def _():
    """Decide whether gradients at a point prefer any wave, from 4,096 LeNets."""
    rows = load_study("estimator-orders.json")["rows"]
    energies = {row["estimator"]: row["DFT"] for row in rows}
    ratio = max(energies["point"]) / min(energies["point"])
    return evidence(ratio < 1.2 and max(energies["smoothed"]) > 10, ratio, size="paper")


@decides("errata-similar", criterion="very similar for most networks")
@decides("errata-stable", criterion="the gradient is more stable")
def _(criterion: str) -> Evidence:
    """Decide a sentence of the paper by a registered criterion, with the overlaps of each
    network.
    """
    texts = []
    for row in rows_of("mixed-derivative"):
        own = [row["overlaps"][kind] for kind in ("smoothed", "mixed")]
        across = row["overlaps"]["averaged over inputs"]
        texts.append(
            f"{LABELS[row['network']]}: two runs of the gradient overlap by {own[0]:.2f}, two of "
            f"the mixed derivative by {own[1]:.2f}, one of each by {across:.2f}"
        )
    text = "; ".join(texts) + f" (first ten directions, {len(texts)} of {len(NETWORKS)} networks)."
    return registered("mixed-derivative", [criterion], sentence=text, size="paper")


# The paper's directions


def published_overlaps() -> pd.DataFrame:
    """Return the overlaps of our first NADs with the published ones: networks × numbers of NADs."""
    rows = table_of("published-spectra").dropna(subset="overlaps")
    networks = rows["architecture"].map(LABELS).rename("overlap with the published NADs")
    return pd.DataFrame(rows["overlaps"].tolist(), networks).add_prefix("first ")


@decides("published-directions")
def _():
    """Decide whether the first ten NADs of two networks are the published ones, and a third's
    not.
    """
    tens = published_overlaps()["first 10"]
    holds = min(tens["LeNet"], tens["ResNet-18"]) > 0.9 > 0.8 > tens["VGG-11"]
    return evidence(holds, tens["VGG-11"], size="paper")


@decides("errata-unique")
def _():
    """Return the largest overlap of two networks, which decides nothing about trained ones."""
    shipped = {label: load_nads(name) for name, label in LABELS.items() if name != "logreg"}
    found = [
        (float(shipped[a].overlap(shipped[b], 100)), f"{a} and {b}")
        for a, b in combinations(shipped, 2)
    ]
    least, most = (f"{value:.2f} ({pair})" for value, pair in (min(found), max(found)))
    text = (
        f"The first 100 NADs of two of the four networks overlap by {least} to {most}; "
        f"random subspaces by {100 / 1024:.2f}. Which features trained networks use is another "
        "question."
    )
    return evidence(None, max(found)[0], sentence=text, size="paper")


# Combs: strides, poolings and the last average


def rows_of_spectrum(nads: NADs) -> np.ndarray:
    """Return the energy of C by row of its spectrum, in percent: of 0 to 16 cycles."""
    rows = spectrum_of(nads).sum(1).numpy()  # of −16 to 15
    return 50 * (rows[16 - STEPS] + rows[(16 + STEPS) % 32]) / rows.sum()


def comb_share(nads: NADs) -> float:
    """Return the energy of C at frequencies that are multiples of 4, but for the constant."""
    spectrum = spectrum_of(nads)
    teeth = torch.arange(-16, 16) % 4 == 0
    lattice = teeth[:, None] & teeth
    lattice[16, 16] = False
    return float(spectrum[lattice].sum() / spectrum.sum())


@cache
def measured() -> dict[str, np.ndarray]:
    """Return `rows_of_spectrum` of the NADs that ship, of the networks that are predicted."""
    return {label: rows_of_spectrum(load_nads(label)) for label in predicted()}


def predicted() -> dict[str, np.ndarray]:
    """Return the energy by row that strides and poolings alone predict, in percent."""
    passed = np.cos(np.pi * STEPS / 32) ** 2 * np.cos(np.pi * STEPS / 16) ** 2
    whole = passed[0] + passed[16] + 2 * passed[1:16].sum()
    return {
        "ResNet-18": np.where(TEETH, 100 / 8, 0),
        "DenseNet-121": np.where(STEPS == 0, 100.0, 0.0),
        "LeNet": 100 * passed / whole,
    }


def plot_combs() -> Figure:
    """Draw the energy of C by vertical frequency: measured in random networks, and predicted."""
    panels = {
        label: {"measured": (STEPS, measured()[label]), "predicted": (STEPS, values)}
        for label, values in predicted().items()
    }
    settings: Facts = {"yscale": "log", "ylim": (0.05, 150)}
    return figures.plot_lines(panels, "vertical frequency", "energy (% of the total)", **settings)


@decides("comb")
def _():
    """Decide whether ResNet-18's second moment is a comb, and DenseNet-121's one spike of it."""
    resnet = measured()["ResNet-18"]
    gap = resnet[TEETH].min() / resnet[~TEETH].max()
    return evidence(gap > 5 and measured()["DenseNet-121"][0] > 80, gap, size="paper")
