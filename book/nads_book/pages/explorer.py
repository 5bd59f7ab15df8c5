"""The page ``13_explorer``: how much the first NADs of two architectures have in common."""

from functools import cache
from itertools import permutations

import numpy as np
from matplotlib.figure import Figure

import nads_core as nc
from nads_book import figures
from nads_book.atlas.similarity import overlap_interval
from nads_book.claims import decides
from nads_book.experiments import load_nads, load_study
from nads_book.experiments.evidence import Estimate, evidence
from nads_book.experiments.formatting import LABELS

NETWORKS = ("lenet", "vgg11", "resnet18", "densenet121")
LEADING = (1, 3, 10, 30, 100, 300)  # numbers of first NADs that are compared


@cache
def overlaps() -> dict[tuple[str, str], Estimate]:
    """Return the overlap of the first ten shipped NADs of two networks, and the interval of the
    exact subspaces'.
    """
    nads = {name: load_nads(name) for name in NETWORKS}
    return {
        (a, b): (nads[a].overlap(nads[b], 10), *overlap_interval(nads[a], nads[b]))
        for a, b in permutations(NETWORKS, 2)
    }


def two_runs() -> float:
    """Return the overlap of the first ten NADs of two runs of LeNet."""
    return float(load_study("agreement.json")["lenet"]["overlaps"]["10"])


@decides("signature")
def _():
    """Decide whether two architectures have less in common than two runs of LeNet."""
    upper = max(high for _, _, high in overlaps().values())
    return evidence(upper < two_runs(), upper, size="paper")


def plot_common(nads: dict[str, nc.NADs]) -> Figure:
    """Draw how much the first NADs of two networks have in common, beside what chance and stored
    pairs give.

    Args:
        nads: name of the network -> its NADs, of images of one size; two of them.
    """
    leading = np.array([k for k in LEADING if k < min(map(len, nads.values()))])
    stored = {LABELS[name]: load_nads(name) for name in ("lenet", "resnet18")}
    panels = {}
    for title, pair in {"yours": nads, "stored, 32 × 32": stored}.items():
        one, other = pair.values()
        overlaps = [one.overlap(other, k) for k in leading.tolist()]
        chance = leading / one.basis.shape[0]
        panels[title] = {" and ".join(pair): (leading, overlaps), "chance": (leading, chance)}
    return figures.plot_lines(panels, "number of first NADs", "overlap of the subspaces")
