"""Estimators of the gradient of random networks: which agree, and the paper's directions."""

from collections.abc import Callable
from functools import cache
from itertools import combinations

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import nads_core as nc
from nads_book import figures, report
from nads_book.evidence import Evidence, evidence
from nads_book.experiments import load_nads, load_study
from nads_book.pages import published_spectra
from nads_book.pages.scored_rows import registered, rows_of
from nads_book.studies.mixed_derivative import NETWORKS
from nads_core.directions import NADs
from nads_core.networks.architectures import Architecture, architecture_named
from nads_core.runtime.seeds import seeded

Source = Architecture | Callable[[], nn.Module] | str
MIXED = "mixed-derivative"


def label_of(architecture: Source) -> str:
    """Return how an architecture is called: "LeNet" for "lenet", otherwise its own name."""
    name = architecture if isinstance(architecture, str) else ""
    name = name or getattr(architecture, "name", "") or getattr(architecture, "__name__", "")
    return report.LABELS.get(name, name or "your network")


def stored_beside(nads: NADs) -> dict[str, NADs]:
    """Return a run for a figure, below the NADs that ship if its architecture is one of ours."""
    count = nads.provenance["num_networks"]
    label = report.LABELS.get(nads.name, nads.name)
    bases = {f"{label}\n({count:,})": nads}
    if nads.name in nc.ARCHITECTURES:
        stored = load_nads(nads.name)
        if stored.directions.shape[1:] == nads.directions.shape[1:]:
            return {f"stored\n({stored.provenance['num_networks']:,})": stored} | bases
    return bases


# One network along a line


def draw_network(architecture: Source, image_shape: tuple[int, ...], seed: int) -> nn.Module:
    """Return a random network of an architecture, in float64 and for evaluation."""
    if isinstance(architecture, str):
        architecture = architecture_named(architecture, image_shape)
    with seeded(seed):
        if isinstance(architecture, Architecture):
            network = architecture.build(image_shape[0], image_shape[-1], 1)
        else:
            network = architecture()
    return network.double().eval().requires_grad_(False)


def plot_along_a_line(architecture: Source, direction: Tensor, seed: int = 0) -> Figure:
    """Draw output and slope of a random network along a line, near an image and from afar."""
    network = draw_network(architecture, tuple(direction.shape), seed)
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(1, *direction.shape, generator=generator).double()
    direction = direction.double()

    def output(t: Tensor) -> Tensor:
        steps = t.reshape(-1, *[1] * direction.dim())
        return network(image + steps * direction).flatten(1)[:, 0]

    at_image = torch.func.grad(lambda t: output(t).sum())(torch.zeros(1).double())
    cuts = {}
    for title, reach in (("near the image", 1.0), ("from afar", 100.0)):
        places = torch.linspace(-reach, reach, 2_000).double()
        cuts[title] = (places, torch.cat([output(some) for some in places.split(200)]))
    ends = cuts["from afar"][1]
    slopes = {
        "gradient at the image": float(at_image),
        "dipole, ρ = 100": float(ends[-1] - ends[0]) / 200,
    }
    return figures.plot_kinks(cuts, slopes)


# Which estimators agree


def point_flat() -> Evidence:
    """Decide whether gradients at a point prefer any wave, from 4,096 LeNets."""
    rows = load_study("estimator-orders.json")["rows"]
    energies = {row["estimator"]: row["DFT"] for row in rows}
    ratio = max(energies["point"]) / min(energies["point"])
    return evidence(ratio < 1.2 and max(energies["smoothed"]) > 10, ratio, size="paper")


def of_mixed(criterion: str) -> Evidence:
    """Decide a sentence of the paper by a registered criterion, with the overlaps of each
    network.
    """
    texts = []
    for row in rows_of(MIXED):
        own = [row["overlaps"][kind] for kind in ("smoothed", "mixed")]
        across = row["overlaps"]["averaged over inputs"]
        texts.append(
            f"{label_of(row['network'])}: two runs of the gradient overlap by {own[0]:.2f}, two of "
            f"the mixed derivative by {own[1]:.2f}, one of each by {across:.2f}"
        )
    text = "; ".join(texts) + f" (first ten directions, {len(texts)} of {len(NETWORKS)} networks)."
    return registered(MIXED, [criterion], sentence=text, size="paper")


# The paper's directions


def published_overlaps() -> dict[str, dict[int, float]]:
    """Return the overlaps of our first NADs with the published ones: label -> number -> overlap."""
    return {
        report.LABELS[name]: {int(k): one for k, one in row["overlaps"].items()}
        for name, row in published_spectra.rows().items()
        if "overlaps" in row
    }


def show_published() -> None:
    """Display the overlaps of our NADs with the published ones."""
    found = published_overlaps()
    counts = list(next(iter(found.values())))
    rows = [
        [label, *(f"{one:.3f}" for one in overlaps.values())] for label, overlaps in found.items()
    ]
    report.table(rows, ["overlap with the published NADs", *(f"first {k}" for k in counts)])


def published_directions() -> Evidence:
    """Decide whether the first ten NADs of two networks are the published ones, and a third's
    not.
    """
    tens = {label: overlaps[10] for label, overlaps in published_overlaps().items()}
    holds = min(tens["LeNet"], tens["ResNet-18"]) > 0.9 > 0.8 > tens["VGG-11"]
    return evidence(holds, tens["VGG-11"], size="paper")


@cache
def overlaps_between() -> dict[tuple[str, str], float]:
    """Return the overlaps of the first 100 NADs of each two of the paper's convolutional
    networks.
    """
    shipped = {label: load_nads(name) for name, label in report.LABELS.items() if name != "logreg"}
    return {(a, b): float(shipped[a].overlap(shipped[b], 100)) for a, b in combinations(shipped, 2)}


def errata_unique() -> Evidence:
    """Return the largest overlap of two networks, which decides nothing about trained ones."""
    found = overlaps_between()
    ends = [
        f"{found[pair]:.2f} ({' and '.join(pair)})" for pair in sorted(found, key=found.__getitem__)
    ]
    text = (
        f"The first 100 NADs of two of the four networks overlap by {ends[0]} to {ends[-1]}; "
        f"random subspaces by {100 / 1024:.2f}. Which features trained networks use is another "
        "question."
    )
    return evidence(None, max(found.values()), sentence=text, size="paper")


CLAIMS = {
    "errata-similar": lambda: of_mixed("very similar for most networks"),
    "errata-stable": lambda: of_mixed("the gradient is more stable"),
}
