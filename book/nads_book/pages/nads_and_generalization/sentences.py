"""Sentences of the paper about NADs and accuracy, which the errata page pastes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nads_book import report
from nads_book.checks import errata
from nads_book.pages.nads_and_generalization import fall, paper
from nads_book.pages.nads_and_generalization.waves import LEARNED
from nads_book.report import LABELS, fixed, markdown_table, percent, show


def paste_monotone() -> tuple[str, str]:
    """Hand the verdict on the paper's monotonic fall to the errata page, and return it."""
    trends, swapped, beyond = fall.trends().values(), fall.swapped().values(), fall.not_monotonic()
    still_open = [_curve(label) for label in fall.curves() if label not in beyond]
    beyond = [_curve(label) for label in beyond]
    verdict = (
        f"as a trend in {sum(one < 0 for one in trends)} of {len(trends)} curves; not "
        f"monotonically for {' and '.join(beyond)}; open for {', '.join(still_open)}"
    )
    text = (
        f"Rank correlation with the index {fixed(min(trends), 2)} to {fixed(max(trends), 2)}. "
        "Deviations from the closest falling curve exceed what the noise of test sets and of "
        f"repeated trainings explains in {len(beyond)} of {len(trends)} curves. Of two "
        "neighbouring NADs the later is learned better in "
        f"{100 * min(swapped):.0f} to {percent(max(swapped))} of the pairs."
    )
    errata.paste("monotone", verdict, text)
    return verdict, text


def _falls() -> str:
    return (
        "NADs with half of the energy (ours), and the index below which the authors’ accuracy is "
        "75 %: "
        + ", ".join(f"{name} {one.half} and {one.authors}" for name, one in paper.falls().items())
        + "."
    )


def paste_decay() -> tuple[str, str]:
    """Hand the verdict on faster decay and earlier fall to the errata page, and return it."""
    without, with_vgg = (paper.pairs_in_order(one) for one in (False, True))
    verdict = (
        f"holds in {sum(without)} of {len(without)} pairs of networks without VGG-11, and in "
        f"{sum(with_vgg)} of {len(with_vgg)} with it; not decided, since we do not reproduce the "
        "authors’ accuracies of VGG-11"
    )
    text = f"{_falls()} How pronounced the drops are was not measured."
    errata.paste("decay", verdict, text)
    return verdict, text


def paste_stronger_bias() -> tuple[str, str]:
    """Hand the verdict on the stronger bias to the errata page, and return it."""
    verdict = (
        "holds by the decay of our eigenvalues; by the authors’ accuracies VGG-11 falls before "
        "ResNet-18; not decided, since we do not reproduce those of VGG-11"
    )
    errata.paste("stronger-bias", verdict, _falls())
    return verdict, _falls()


def paste_supports() -> tuple[str, str]:
    """Hand where the first NADs have their energy to the errata page, and return it."""
    found = paper.supports()
    verdict = (
        f"holds for our first ten NADs, to {percent(min(found.values()))} of their energy or more"
    )
    text = (
        "Share of their energy on the waves of Fig. 1 that lies on published waves above "
        f"{percent(LEARNED)}: {_listed({k: percent(v) for k, v in found.items()})}."
    )
    errata.paste("supports", verdict, text)
    return verdict, text


def paste_ordering() -> tuple[str, str]:
    """Hand whether NADs are ordered by frequency to the errata page, and return it."""
    found = paper.ordering()
    nearly = [LABELS[name] for name, value in found.items() if value >= 0.9]
    verdict = (
        f"holds but for {', '.join(nearly)}, whose NADs nearly follow one" if nearly else "holds"
    )
    text = (
        "Rank correlation of a NAD’s index and its mean frequency (1 would be a uniform ordering): "
        f"{_listed({name: fixed(value, 2) for name, value in found.items()})}."
    )
    errata.paste("ordering", verdict, text)
    return verdict, text


def paste_random() -> tuple[str, str]:
    """Hand how equal random directions are to the errata page, and return it."""
    one = paper.random_family()
    within = np.ptp(one.accuracies) < 0.05
    verdict = (
        f"{'holds' if within else 'does not hold'} within five points for LeNet; deep networks "
        "were not run"
    )
    text = (
        f"LeNet along {len(one)} random directions at σ = {one.noise_std:g}: "
        f"{100 * one.accuracies.min():.1f} to {percent(one.accuracies.max(), 1)}."
    )
    errata.paste("random", verdict, text)
    return verdict, text


def paste_train_accuracy() -> tuple[str, str]:
    """Hand how well deep networks fit their training sets to the errata page, and return it."""
    verdict = (
        "at a fifth of the training: holds for ResNet-18; not reached by VGG-11 and DenseNet-121, "
        "of which two VGG-11 were run at the paper’s recipe, and reach it"
    )
    found = "; ".join(
        f"{label}, {100 * values.min():.0f} to {percent(values.max())}, {(values > 0.99).sum()} of "
        f"{len(values)} networks above 99 %"
        for label, values in paper.training_accuracies().items()
    )
    text = f"Training accuracies along waves: {found}."
    errata.paste("train-accuracy", verdict, text)
    return verdict, text


SENTENCES: dict[str, tuple[str, Callable[[], tuple[str, str]]]] = {
    "monotone": ("“performance … monotonically decreases for higher NADs”", paste_monotone),
    "decay": ("“a faster decay …, the drop … happens at earlier indices”", paste_decay),
    "stronger-bias": ("the best networks have “the stronger bias”", paste_stronger_bias),
    "supports": ("supports of NADs lie in “high accuracy regions”", paste_supports),
    "ordering": ("NADs “do not follow a uniform ordering”", paste_ordering),
    "random": ("random directions: “the same performance”", paste_random),
    "train-accuracy": ("“nearly 100% train accuracy”", paste_train_accuracy),
}


def show_sentences_of_paper() -> None:
    """Show what the paper says of NADs and accuracy, and what we found."""
    rows = []
    for sentence, paste in SENTENCES.values():
        verdict, _ = paste()
        rows.append(
            [
                sentence,
                f"**{verdict.partition(';')[0]}**{verdict[len(verdict.partition(';')[0]) :]}",
            ]
        )
    show(markdown_table(rows, ["the paper", "what we found"]))
    for key in SENTENCES:
        report.publish(f"errata-{key}")


def _curve(label: str) -> str:
    """Return the name of a curve in a sentence."""
    name, _, whose = label.partition(", ")
    return f"{name} ({'ours' if whose == 'ours' else 'authors'})"


def _listed(found: dict[str, str]) -> str:
    return ", ".join(f"{LABELS[name]} {value}" for name, value in found.items())
