"""How well NADs are known: independent runs, certainties, and the noise of the inputs."""

from collections.abc import Callable, Sequence
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import nads_core as nc
from nads_book import figures, report
from nads_book.analysis.statistics import grouped
from nads_book.evidence import Evidence, evidence
from nads_book.experiments import load_nads, load_study
from nads_book.figures.style import colours, shade, styled, subplots
from nads_book.pages.nad_computation.estimators import Source
from nads_book.pages.published_spectra import half_of_energy
from nads_book.studies.calibration import ENTRIES
from nads_core.directions import NADs

NAMES = report.LABELS | {
    "mlp": "MLP",
    "cnn": "Small CNN",
    "vit": "Small ViT",
    "deep-linear": "Deep linear, exact C",
}
FEW = 15  # claims, below which a bin decides nothing
HIGH = 0.8  # certainty from which on LeNet's directions count as known
CERTAIN = 0.81  # predicted cos² above which a direction counts as reproducible


@cache
def agreement() -> dict[str, np.ndarray]:
    """Return squared cosines of LeNet's directions with another run, found and predicted.

    Raises:
        ValueError: if the stored comparison is of other NADs than those that ship.
    """
    stored = load_study("agreement.json")["lenet"]
    if stored["fingerprint"] != load_nads("lenet").fingerprint:
        raise ValueError("agreement.json is about other NADs of LeNet than those that ship")
    names = {"by_index": "by_index", "by_name": "by_name", "foretold": "predicted"}
    return {new: np.array(stored[old]) for old, new in names.items()}


@cache
def diagrams() -> dict[str, dict[str, Any]]:
    """Return the calibration of certainties, by set of runs."""
    stored = {row["entry"]: row for row in load_study("calibration.json")["rows"]}
    return {name: stored[name] for name in ENTRIES if name in stored}


def bins_of(facts: dict[str, Any]) -> np.ndarray:
    """Return claimed and measured squared cosines of a set of runs by bin, errors, and numbers of
    claims: (4, bins).
    """
    names = ("claimed", "kept", "error", "count")
    return np.array([[one[name] for one in facts["bins"]] for name in names])


def plot_two_runs(
    architecture: Source,
    counts: Sequence[int],
    image_shape: tuple[int, ...] = (1, 32, 32),
    seed: int = 0,
    k: int = 10,
) -> Figure:
    """Compute two independent runs; draw how well they agree, and what they predict of it.

    Args:
        architecture: architecture, or its name.
        counts: numbers of networks, ascending.
        image_shape: shape of the inputs.
        seed: seed of the first run; the second one has another.
        k: number of leading NADs whose subspaces are compared.
    """
    with TemporaryDirectory() as folder:  # a checkpoint lets each run continue from its last count
        runs = [
            [
                nc.compute_nads(
                    architecture,
                    image_shape,
                    count,
                    seed=seed + turn,
                    checkpoint=f"{folder}/{turn}.ckpt",
                    progress=False,
                )
                for count in counts
            ]
            for turn in (1, 2)
        ]
    pairs = list(zip(*runs, strict=True))
    found = [float(a.overlap(b, k=k)) for a, b in pairs]
    predicted = [_leading(a, k) * _leading(b, k) for a, b in pairs]
    curves = {f"first {k}, measured": found, "predicted by the runs": predicted}
    dimension = runs[0][0].directions[0].numel()
    return figures.plot_overlaps(counts, curves, chance=k / dimension)


def _leading(nads: NADs, k: int) -> float:
    known = nads.uncertainty
    return float("nan") if known is None else float(known.leading_certainty[k - 1])


@styled
def plot_reliability() -> Figure:
    """Draw claimed against measured squared cosines, for many runs, one panel per network."""
    panels = grouped((facts["architecture"], facts) for facts in diagrams().values())
    rows = -(-len(panels) // 3)
    figure, grid = subplots(rows, 3, height=2.7 * rows)
    for axis in grid.flat[len(panels) :]:
        axis.axis("off")
    for axis, (architecture, of_sizes) in zip(grid.flat, panels.items(), strict=False):
        axis.plot([0, 1], [0, 1], color=shade(0.6))
        for facts, colour in zip(of_sizes, colours(), strict=False):
            promised, kept, error, count = bins_of(facts)
            label = f"{facts['runs']} runs of {facts['num_networks']:,}"
            axis.errorbar(promised, kept, 2 * error, fmt="none", color=colour)
            areas = 12 + count
            axis.scatter(promised, kept, areas, colour, alpha=0.6, linewidth=0, label=label)
        axis.set(xlabel="claimed cos²", ylabel="measured cos²", aspect="equal")
        axis.set(title=NAMES[architecture])
        axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        for handle in axis.legend(loc="upper left", fontsize="small").legend_handles:
            handle.set_sizes([30])
    return figure


# Claims


def excesses(facts: dict[str, Any], least: int = 1) -> np.ndarray:
    """Return by how much certainties are too high, in bins of at least so many claims."""
    promised, kept, _, count = bins_of(facts)
    return (promised - kept)[count >= least]


def ordered_basis() -> Evidence:
    """Decide whether a hundred directions of LeNet are reproducible, and 300 as a subspace."""
    certain = agreement()["predicted"] > CERTAIN
    found = agreement()["by_name"][certain]
    subspace = load_study("agreement.json")["lenet"]["overlaps"]["300"]
    holds = found.mean() > CERTAIN and certain.sum() > 100 and subspace > 0.9
    return evidence(holds, found.mean(), size="paper", num_seeds=2)


def head_known() -> Evidence:
    """Decide whether high certainties of LeNet's directions are kept by a much longer run."""
    runs = [facts for facts in diagrams().values() if facts["architecture"] == "lenet"]
    excess = -np.inf
    for facts in runs:
        claimed, kept, _, count = bins_of(facts)
        excess = max(excess, (claimed - kept)[(count >= FEW) & (claimed >= HIGH)].max())
    return evidence(excess < 0.05, excess, size="paper", num_seeds=runs[0]["runs"])


def names_steadier() -> Evidence:
    """Decide whether directions of one name agree better than those of one index."""
    gain = (agreement()["by_name"] - agreement()["by_index"])[:50].mean()
    return evidence(gain > 0, gain, size="paper", num_seeds=2)


def certificates_bold() -> Evidence:
    """Decide whether some certainties are too high."""
    excess = max(excesses(facts, FEW).max(initial=0) for facts in diagrams().values())
    return evidence(excess > 0.05, excess, size="paper")


# Tables


_FIFTHS = ("below .4", ".4 to .6", ".6 to .8", ".8 to 1")


def _pair(claimed: float, measured: float) -> str:
    """Return two squared cosines as one cell that does not wrap."""
    return "\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}".join(f"{x:.2f}" for x in (claimed, measured))


def table_by_certainty() -> str:
    """Return claimed and measured squared cosines, for each set of runs and fifth of certainties.

    The last column is the standard deviation of the measured mean of one run between .4 and .8: the
    bins' standard error over runs, times the root of their number.
    """
    rows = []
    for facts in diagrams().values():
        promised, kept, error, count = bins_of(facts)
        cells = []
        for number in range(1, 5):  # certainties below .3 are 0
            weights = np.where((5 * promised).astype(int) == number, count, 0)
            cells.append("–")
            if weights.sum() >= FEW:
                cells[-1] = _pair(*np.average([promised, kept], 1, weights))
        middle = (promised >= 0.4) & (promised < 0.8)
        spread = "–"
        if middle.any():
            spread = report.fixed(float(error[middle].mean() * facts["runs"] ** 0.5), 2)
        runs = f"{facts['runs']} × {facts['num_networks']:,}"
        rows.append([NAMES[facts["architecture"]], runs, *cells, spread])
    return report.markdown_table(rows, ["network", "runs × networks", *_FIFTHS, "one run"])


def table_shipped() -> str:
    """Return the networks, the concentration and the reliable directions of the NADs that ship."""
    rows = []
    for label in report.LABELS.values():
        nads = load_nads(label)
        values = nads.eigenvalues
        half = half_of_energy(nads)
        certain = int((nads.certainty >= 0.9).sum()) if nads.uncertainty else "–"
        spread = f"{float(values[0] / values[-1]):,.0f}"
        rows.append([label, f"{nads.provenance['num_networks']:,}", half, spread, certain])
    head = ["NADs that ship", "networks", "NADs with half of the energy", "first / last eigenvalue"]
    return report.markdown_table(rows, [*head, "certain above 0.9"])


# Of the page "How certain is a NAD?": marker in its text -> table
TABLES: dict[str, Callable[[], str]] = {
    "calibration": table_by_certainty,
    "shipped": table_shipped,
}
