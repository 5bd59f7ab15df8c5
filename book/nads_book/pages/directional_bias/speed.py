"""How fast networks learn waves with little noise (Fig. 2)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.analysis import frequency_maps, statistics, waves
from nads_book.evidence import Evidence, evidence
from nads_book.pages.directional_bias.maps import Map, accuracies, length, sweep
from nads_book.report import LABELS, estimate, fixed, markdown_table
from nads_book.studies.directions import LOSSES

NEVER = 1e9  # steps to a loss that is not reached: more than any training has
SMALL = {"vgg11": "laptop", "resnet18": "narrow", "densenet121": "narrow"}  # size of deep networks


@cache
def steps(name: str, preset: str = "paper") -> dict[float, dict[tuple[int, int], float]]:
    """Return the steps to each loss by wave, medians over seeds, infinite where the loss is never reached."""
    counts = frequency_maps.by_frequency(sweep(name, preset, "fig2"), "iterations")
    return {loss: {k: found[i] for k, found in counts.items()} for i, loss in enumerate(LOSSES)}


def ranked(a: Map, b: Map) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of two maps where both have one, with `NEVER` for an infinity."""
    first, second = np.array(frequency_maps.common_pairs(a, b)).T
    return np.minimum(first, NEVER), np.minimum(second, NEVER)


def plot_speed() -> Figure:
    """Draw the steps until LeNet's training loss is small, for three thresholds."""
    panels = {f"loss {loss:g}": found for loss, found in steps("lenet").items()}
    return figures.plot_frequency_maps(
        {"": panels}, "steps", (30, 2_000), scale="log", over="never"
    )


def rank_correlations() -> dict[float, tuple[float, float]]:
    """Return rank correlations of LeNet's steps to each loss with those to 0.1, and with accuracy in much noise."""
    middle = steps("lenet")[0.1]
    return {
        loss: (
            statistics.rank_correlation(*ranked(found, middle)),
            statistics.rank_correlation(*ranked(found, accuracies("lenet"))),
        )
        for loss, found in steps("lenet").items()
    }


def one_bias_twice() -> Evidence:
    """Decide whether waves that are slow with little noise are those that are not learned with much."""
    same, learned = np.array([*rank_correlations().values()]).T
    results = [sweep("lenet", figure="fig2"), sweep("lenet")]
    weakest = learned.max()
    return evidence(same.min() > 0.9 and weakest < -0.7, value=weakest, results=results)


def energy_and_steps(name: str) -> tuple[float, float, float]:
    """Return the rank correlation of a deep network's steps with the energies of random weights, with its interval."""
    found = steps(name, SMALL[name])[0.1]
    return statistics.correlation_interval(*ranked(waves.predicted_energies(name), found))


def vgg_speed() -> Evidence:
    """Decide whether VGG-11 needs more steps for waves of less energy, by the bound that was written down before."""
    rank, *ends = energy_and_steps("vgg11")
    results = [sweep("vgg11", "laptop", "fig2")]
    return evidence(rank <= -0.7, value=rank, interval=ends, results=results)


def resnet_speed() -> Evidence:
    """Decide whether a narrow ResNet-18 needs more steps for waves of less energy."""
    rank, *ends = energy_and_steps("resnet18")
    results = [sweep("resnet18", "narrow", "fig2")]
    return evidence(ends[1] < 0, value=rank, interval=ends, null=0, results=results)


def table_of_thresholds() -> str:
    """Return LeNet's steps for three thresholds, and how similar their orders of waves are."""
    every = steps("lenet")
    everywhere = [k for k in every[0.1] if all(np.isfinite(found[k]) for found in every.values())]
    rows = []
    for loss, (same, learned) in rank_correlations().items():
        counts = every[loss]
        reached = sum(map(np.isfinite, counts.values()))
        middle = np.median([counts[k] for k in everywhere])
        rows.append(
            [
                f"{loss:g}",
                f"{reached} of {len(counts)}",
                f"{middle:.0f}",
                fixed(same, 2),
                fixed(learned, 2),
            ]
        )
    head = ["LeNet: loss", "reached on", "median steps where all three are reached"]
    head += ["rank correlation with loss 0.1", "with test accuracy at σ = 3"]
    return markdown_table(rows, head)


def table_of_deep_networks() -> str:
    """Return the steps of deep networks of reduced size, and what predicts their order."""
    rows = []
    for name, preset in SMALL.items():
        found = steps(name, preset)[0.1]
        reached = [count for count in found.values() if np.isfinite(count)]
        scores = {
            "LeNet's energies": waves.predicted_energies("lenet"),
            "low frequency": {k: -length(k) for k in found},
        }
        others = [
            fixed(statistics.rank_correlation(*ranked(score, found), min_size=4), 2)
            for score in scores.values()
        ]
        own = energy_and_steps(name) if len(found) > 4 else (float("nan"),)
        span = f"{min(reached):.0f} to {max(reached):.0f}" if reached else "–"
        rows.append(
            [
                f"{LABELS[name]} (`{preset}`)",
                f"{len(reached)} of {len(found)}",
                span,
                estimate(own),
                *others,
            ]
        )
    head = [
        "network",
        "loss 0.1 reached on",
        "steps",
        "rank correlation of steps with its energies",
    ]
    return markdown_table(rows, [*head, "with LeNet's energies", "with low frequency"])


LAB_TABLES: dict[str, Callable[[], str]] = {
    "Speed: three thresholds": table_of_thresholds,
    "Speed of deep networks of reduced size": table_of_deep_networks,
}
CLAIMS: dict[str, Callable[[], Evidence]] = {
    "one-bias-twice": one_bias_twice,
    "vgg-speed": vgg_speed,
    "resnet-speed": resnet_speed,
}
