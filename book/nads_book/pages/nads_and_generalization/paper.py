"""What the paper says of decays, supports, orders and random directions, measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

import nads_core as nc
from nads_book.analysis import published, statistics
from nads_book.analysis.prediction import Family, predicted_accuracy, signal_to_noise
from nads_book.evidence import Evidence, evidence
from nads_book.pages import stored
from nads_book.pages.nads_and_generalization.fall import curves
from nads_book.pages.nads_and_generalization.waves import DEEP, LEARNED
from nads_book.report import LABELS, markdown_table
from nads_book.studies import load_results

# Faster decay, earlier fall


class Fall(NamedTuple):
    """NADs with half of the energy, and indices from which on accuracy is under 75 %."""

    half: int
    law: int
    authors: int


@cache
def falls() -> dict[str, Fall]:
    """Return where each network falls: by eigenvalues, by the law, and as published."""
    found = {}
    for name in DEEP:
        nads, curve = nc.load_nads(name), curves()[f"{LABELS[name]}, paper"]
        half = int((nads.eigenvalues.cumsum(0) < nads.eigenvalues.sum() / 2).sum()) + 1
        ratios = signal_to_noise(nads, nads.directions, 10_000, 1.0)
        law = int((predicted_accuracy(ratios) > 0.75).sum())
        authors = statistics.first_below(curve.keys, curve.accuracies, 0.75)
        found[LABELS[name]] = Fall(half, law, authors)
    return found


def pairs_in_order(with_vgg: bool) -> list[bool]:
    """Return for each pair of networks whether the one with the faster decay falls first.

    Args:
        with_vgg: whether the pairs are those with VGG-11, or those without.
    """
    one = falls()
    return [
        (one[a].half < one[b].half) == (one[a].authors < one[b].authors)
        for a in one
        for b in one
        if a < b and ("VGG-11" in (a, b)) == with_vgg
    ]


def decay_orders_falls() -> Evidence:
    """Decide whether faster decay means an earlier fall in all pairs without VGG-11."""
    without = pairs_in_order(with_vgg=False)
    holds = all(without) and not all(pairs_in_order(with_vgg=True))
    return evidence(holds, value=sum(without), size="paper")


def stronger_bias() -> Evidence:
    """Decide whether ResNet-18 and DenseNet-121 fall before LeNet and VGG-11."""
    late = max(falls()[name].authors for name in ("ResNet-18", "DenseNet-121"))
    earlier = any(falls()[name].authors < late for name in ("LeNet", "VGG-11"))
    halves = [falls()[name].half for name in ("LeNet", "VGG-11", "ResNet-18", "DenseNet-121")]
    holds = None if earlier else max(halves[2:]) < min(halves[:2])
    return evidence(holds, size="paper")


# Supports, ordering, random directions, training accuracy


@cache
def supports() -> dict[str, float]:
    """Return the share of the first ten NADs' energy on waves that lies on learned ones."""
    found = {}
    for name in DEEP:
        cells = published.fourier_accuracies(name)
        rows, columns = np.array(list(cells)).T + 16
        energy = nc.spectrum(nc.load_nads(name).directions[:10, 0]).numpy()[:, rows, columns]
        learned = np.array(list(cells.values())) > LEARNED
        found[name] = float(energy[:, learned].sum() / energy.sum())
    return found


@cache
def ordering() -> dict[str, float]:
    """Return the rank correlation of a NAD's index and its mean frequency."""
    radius = np.hypot(*np.meshgrid(np.arange(-16, 16), np.arange(-16, 16)))
    found = {}
    for name in DEEP:
        spectra = nc.spectrum(nc.load_nads(name).directions[:, 0]).numpy()
        mean = (spectra * radius).sum((1, 2))
        found[name] = statistics.rank_correlation(np.arange(len(mean), dtype=float), mean)
    return found


@cache
def random_family() -> Family:
    """Return the random directions along which LeNets were trained."""
    return Family.of(stored("random-lenet"))


def training_accuracies() -> dict[str, np.ndarray]:
    """Return the training accuracies of deep networks along waves, at reduced size."""
    found = {
        f"{LABELS[name]} ({size})": load_results(f"fig1-{name}", size)
        for name in DEEP[1:]
        for size in ("laptop", "narrow")
        if (name, size) != ("vgg11", "narrow")
    }
    return {
        label: np.array([row["train_accuracy"] for row in one.rows])
        for label, one in found.items()
        if one
    }


# Tables of the lab notes


def table_of_falls() -> str:
    """Return where each network falls."""
    head = ["NADs with half of the energy", "below 75 % from NAD: law", "authors"]
    return markdown_table([[label, *one] for label, one in falls().items()], ["", *head])


CLAIMS: dict[str, Callable[[], Evidence]] = {
    "decay-pairs": decay_orders_falls,
    "errata-decay": lambda: evidence(None, size="paper"),
    "errata-stronger-bias": stronger_bias,
    "errata-supports": lambda: evidence(min(supports().values()) > 0.9, size="paper"),
    "errata-ordering": lambda: evidence(
        None if max(ordering().values()) >= 0.9 else True, size="paper"
    ),
    "errata-random": lambda: evidence(None, size="paper"),
    "errata-train-accuracy": lambda: evidence(None, size="laptop"),
}
LAB_TABLES: dict[str, Callable[[], str]] = {
    "Faster decay, earlier fall": table_of_falls,
}
