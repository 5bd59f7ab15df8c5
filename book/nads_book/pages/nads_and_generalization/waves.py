"""Random weights predict which waves are learned: energies and published accuracies."""

from functools import cache

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

import nads_core as nc
from nads_book import figures
from nads_book.analysis import published, waves
from nads_book.analysis.frequency_maps import LEARNED, published_accuracies
from nads_book.analysis.statistics import area_under_curve
from nads_book.evidence import Evidence, evidence
from nads_book.figures.style import dotted, legend, panel_row, shade, styled
from nads_book.report import LABELS
from nads_book.theory import pooling
from nads_core.data.fourier import Frequency

DEEP = ("lenet", "vgg11", "resnet18", "densenet121")
OWN = "random weights"
OTHERS = "another's random weights"
# The rule that was chosen for each architecture.
RULES = {
    "lenet": "two averages",
    "vgg11": "two averages",
    "resnet18": "a multiple of four",
    "densenet121": "near an axis",
}
FREQUENCY_RULES = (
    "low frequency",
    "fitted band",
    "near an axis",
    "a multiple of four",
    "two averages",
)


def arrays(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the frequencies (n, 2) of all waves, and their published accuracies (n,)."""
    keys = list(waves.predicted_energies(name))
    return np.array(keys), np.array([published_accuracies(name)[key] for key in keys])


def energies(name: str, phase: str = "sine") -> np.ndarray:
    """Return the energies of all waves in random weights, (n,)."""
    return np.array([*waves.predicted_energies(name, phase).values()])


@cache
def scores(name: str) -> dict[str, np.ndarray]:
    """Return what ranks the waves of a network: energies, and rules about the frequency."""
    keys, accuracies = arrays(name)
    learned, lengths = accuracies > LEARNED, np.hypot(*keys.T)
    bands = [-np.abs(lengths - centre) for centre in np.arange(0, 23, 0.5)]
    # What LeNet's two poolings would pass if they were averages.
    passed = pooling.frequency_response(pooling.prefilter("average", 32, 4)).abs().numpy()
    other = max(
        (energies(one) for one in DEEP if one != name),
        key=lambda score: area_under_curve(score, learned),
    )
    found = {
        OWN: energies(name),
        "random weights, cosine": energies(name, "cosine"),
        "low frequency": -lengths,
        "fitted band": max(reversed(bands), key=lambda score: area_under_curve(score, learned)),
        "near an axis": -np.abs(keys).min(1).astype(float),
        "a multiple of four": (keys % 4 == 0).any(1).astype(float),
        "two averages": np.round(passed[keys].prod(1), 9),
        OTHERS: other,
    }
    values, known = published.eigenvalues(name), published.directions(name, 1001)
    if values is not None and known is not None:
        vectors = torch.stack([nc.fourier_direction(tuple(key), 32) for key in keys.tolist()])
        found["published NADs"] = nc.NADs(known, values).energy(vectors).numpy()
    return found


def area(name: str, label: str = OWN) -> float:
    """Return the share of pairs of waves in which a score ranks the learned one first."""
    return area_under_curve(scores(name)[label], arrays(name)[1] > LEARNED)


# Figures


def plot_maps() -> Figure:
    """Draw the energy of each wave in untrained networks above its published accuracy."""

    def log_scale(name: str) -> dict[Frequency, float]:
        """Return the place of each energy between the smallest, 0 %, and the largest, 100 %."""
        logs = np.log(energies(name))
        places = 100 * (logs - logs.min()) / np.ptp(logs)
        return dict(zip(waves.predicted_energies(name), places.tolist(), strict=True))

    accuracies = {
        LABELS[name]: {key: 100 * value for key, value in published_accuracies(name).items()}
        for name in DEEP
    }
    return figures.plot_frequency_maps(
        {"predicted": {LABELS[name]: log_scale(name) for name in DEEP}, "published": accuracies},
        own={"predicted": ("energy, log scale (%)", (0, 100))},
    )


@styled
def plot_energies(name: str, energy: Tensor, own: tuple[float, float] | None = None) -> Figure:
    """Draw published accuracies against energies that the reader computed.

    Args:
        name: architecture whose published accuracies are drawn.
        energy: energies of its waves, (n,), in the order of `published_accuracies`.
        own: energy and accuracy of a wave that the reader's network learned.
    """
    accuracies = np.array([*published_accuracies(name).values()])
    figure, (axis,) = panel_row(
        [LABELS[name]],
        2.9,
        xlabel="energy before training, relative to the mean",
        ylabel="test accuracy (%)",
    )
    axis.axhline(100 * LEARNED, **dotted(f"learned: above {100 * LEARNED:.0f} %"))
    axis.plot(energy, 100 * accuracies, "o", alpha=0.6, label="published")
    axis.set(xscale="log", ylim=(45, 102))
    if own:
        axis.plot(own[0], 100 * own[1], "*", color=shade(0), markersize=13, label="yours")
    legend(figure, axis, "outside lower center", ncols=3)
    return figure


# Claims


def energy_predicts() -> Evidence:
    """Decide whether energies separate learned waves, better than those of another network."""
    smallest = min(
        area_under_curve(energies(name, phase), arrays(name)[1] > limit)
        for name in DEEP
        for phase in ("sine", "cosine")
        for limit in np.arange(52, 61) / 100
    )
    ahead = all(area(name, OTHERS) < area(name) for name in DEEP)
    return evidence(smallest > 0.95 and ahead, smallest, size="paper")


def rules_come_close() -> Evidence:
    """Decide whether a rule chosen for each network comes close, and no rule works for all."""
    smallest = min(area(name, RULES[name]) for name in DEEP)
    alone = all(min(area(name, rule) for name in DEEP) < 0.8 for rule in FREQUENCY_RULES)
    return evidence(smallest > 0.97 and alone, smallest, size="paper")
