"""What the paper says of decays, supports, orders and random directions, measured."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

import nads_core as nc
from nads_book.analysis import published, statistics
from nads_book.analysis.frequency_maps import LEARNED
from nads_book.analysis.prediction import Family, predicted_accuracy, signal_to_noise
from nads_book.evidence import Evidence, evidence
from nads_book.experiments import load_nads
from nads_book.pages.nads_and_generalization.fall import curves
from nads_book.pages.nads_and_generalization.waves import DEEP
from nads_book.pages.published_spectra import half_of_energy
from nads_book.report import LABELS, fixed, percent
from nads_book.studies import stored

DEEP_SWEEPS = (  # stored trainings along waves
    ("resnet18", "paper"),
    ("vgg11", "laptop"),
    ("resnet18", "laptop"),
    ("resnet18", "narrow"),
    ("densenet121", "laptop"),
    ("densenet121", "narrow"),
)

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
        nads, curve = load_nads(name), curves()[f"{LABELS[name]}, paper"]
        ratios = signal_to_noise(nads, nads.directions, 10_000, 1.0)
        law = int((predicted_accuracy(ratios) > 0.75).sum())
        authors = statistics.first_below(curve.keys, curve.accuracies, 0.75)
        found[LABELS[name]] = Fall(half_of_energy(nads), law, authors)
    return found


def _falls() -> str:
    found = (f"{name} {one.half} and {one.authors}" for name, one in falls().items())
    return (
        "NADs with half of the energy (ours), and the index below which the authors’ accuracy is "
        f"75 %: {', '.join(found)}."
    )


def errata_decay() -> Evidence:
    """Tell where networks fall, which does not decide the paper's sentence on decays."""
    return evidence(None, sentence=_falls(), size="paper")


def errata_stronger_bias() -> Evidence:
    """Decide whether ResNet-18 and DenseNet-121 fall before LeNet and VGG-11."""
    late = max(falls()[name].authors for name in ("ResNet-18", "DenseNet-121"))
    earlier = any(falls()[name].authors < late for name in ("LeNet", "VGG-11"))
    halves = [falls()[name].half for name in ("LeNet", "VGG-11", "ResNet-18", "DenseNet-121")]
    holds = None if earlier else max(halves[2:]) < min(halves[:2])
    return evidence(holds, sentence=_falls(), size="paper")


# Supports, ordering, random directions, training accuracy


@cache
def supports() -> dict[str, float]:
    """Return the share of the first ten NADs' energy on waves that lies on learned ones."""
    found = {}
    for name in DEEP:
        cells = published.fourier_accuracies(name)
        rows, columns = np.array(list(cells)).T + 16
        energy = nc.spectrum(load_nads(name).directions[:10, 0]).numpy()[:, rows, columns]
        learned = np.array(list(cells.values())) > LEARNED
        found[name] = float(energy[:, learned].sum() / energy.sum())
    return found


@cache
def ordering() -> dict[str, float]:
    """Return the rank correlation of a NAD's index and its mean frequency."""
    radius = np.hypot(*np.meshgrid(np.arange(-16, 16), np.arange(-16, 16)))
    found = {}
    for name in DEEP:
        spectra = nc.spectrum(load_nads(name).directions[:, 0]).numpy()
        mean = (spectra * radius).sum((1, 2))
        found[name] = statistics.rank_correlation(np.arange(len(mean), dtype=float), mean)
    return found


@cache
def random_family() -> Family:
    """Return the random directions along which LeNets were trained."""
    return Family.of(stored("random-lenet"))


def _listed(found: Mapping[str, float]) -> str:
    return ", ".join(f"{LABELS[name]} {fixed(value, 2)}" for name, value in found.items())


def errata_supports() -> Evidence:
    """Decide whether the first ten NADs have their energy on learned waves."""
    text = (
        "Share of their energy on the waves of Fig. 1 that lies on learned ones: "
        f"{_listed(supports())}."
    )
    return evidence(min(supports().values()) > 0.9, sentence=text, size="paper")


def errata_ordering() -> Evidence:
    """Decide whether NADs are not ordered by frequency; open where one network's nearly are."""
    text = (
        "Rank correlation of a NAD’s index and its mean frequency (1 would be a uniform ordering): "
        f"{_listed(ordering())}."
    )
    holds = None if max(ordering().values()) >= 0.9 else True
    return evidence(holds, sentence=text, size="paper")


def errata_random() -> Evidence:
    """Tell how equal LeNet's accuracies along random directions are; deep networks were not run."""
    one = random_family()
    span = [percent(end, 1) for end in (one.accuracies.min(), one.accuracies.max())]
    text = (
        f"LeNet along {len(one)} random directions at σ = {one.noise_std:g}: {' to '.join(span)}."
    )
    return evidence(None, sentence=text, size="paper")


def errata_train_accuracy() -> Evidence:
    """Tell how well deep networks fit their training sets, most of them of reduced size, which
    decides nothing.
    """
    found = []
    for job, preset in DEEP_SWEEPS:
        results = stored(f"fig1-{job}", preset)
        shares = np.array([row["train_accuracy"] for row in results.rows])
        found.append(
            f"{LABELS[job]} ({preset}), {percent(shares.min())} to {percent(shares.max())}, "
            f"{(shares > 0.99).sum()} of {len(shares)} networks above 99 %"
        )
    text = f"Training accuracies along waves: {'; '.join(found)}."
    return evidence(None, sentence=text, size="laptop")
