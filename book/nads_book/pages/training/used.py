"""Which NADs a trained network uses: predictions that change when a component's sign is turned."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis.statistics import student_mean
from nads_book.evidence import Evidence, evidence
from nads_book.experiments.stored import load_study
from nads_book.experiments.study import Estimate
from nads_book.figures import style
from nads_book.report import estimate, fixed, markdown_table
from nads_book.studies.used_nads import MORE, SAME, SEEDS, ratios

NAMES = {"resnet": "ResNet-18, quarter width", "vgg11": "VGG-11"}
CONTROLS = {"wave": "waves of equal energy", "random": "random directions, equal change"}
EXPECTED = 2.0  # least ratio to random directions that was predicted


@cache
def rows() -> list[dict[str, Any]]:
    """Return the rows of all networks and seeds."""
    found: list[dict[str, Any]] = load_study("used-nads.json")["rows"]
    return found


def mean_ratio(network: str, control: str) -> Estimate:
    """Return the geometric mean over seeds and NADs 0 to 40, with Student's interval over NADs."""
    logs = np.log(ratios(rows(), network, control)).mean(0)
    value, low, high = np.exp(student_mean(logs))
    return float(value), float(low), float(high)


@style.styled
def plot_used() -> Figure:
    """Draw how many more predictions change along a NAD than along its controls."""
    figure, axes = style.panel_row(
        NAMES.values(),
        3.2,
        xlabel="energy of photos along the NAD",
        ylabel="ratio",
        sharey=True,
        sharex=True,
    )
    for axis, network in zip(axes, NAMES, strict=True):
        for colour, (control, label), marker in zip(
            style.colours(), CONTROLS.items(), "os", strict=False
        ):
            for row in (row for row in rows() if row["network"] == network):
                shares = [
                    (one["energy"], one["nad"]["turn"] / one[control]["turn"])
                    for one in row["directions"]
                ]
                axis.plot(
                    *zip(*shares, strict=True),
                    marker,
                    color=colour,
                    markersize=4,
                    markerfacecolor=colour if control == "wave" else "none",
                    label=f"NAD over {label}",
                )
        axis.axhline(1, color=style.shade(0.4), linewidth=0.8)
        axis.set(xscale="log", yscale="log")
        axis.set_xticks([0.2, 1, 5, 20], ["0.2", "1", "5", "20"])
        axis.set_yticks([0.25, 0.5, 1, 2], ["¼", "½", "1", "2"])
        axis.minorticks_off()
    style.legend(figure, axes, ncol=2)
    return figure


FACTS: dict[str, Any] = {"size": "narrow", "num_seeds": len(SEEDS), "num_trainings": len(SEEDS)}


def by_seed(network: str, control: str) -> np.ndarray:
    """Return the geometric mean over NADs 0 to 40 for each seed, (seeds,)."""
    return np.asarray(np.exp(np.log(ratios(rows(), network, control)).mean(1)))


def follows_data(network: str) -> Evidence:
    """Decide by the registered limits whether a network uses early NADs no more than waves."""
    seeds = by_seed(network, "wave")
    value, *interval = mean_ratio(network, "wave")
    holds = len(seeds) == 2 and ((seeds > SAME[0]) & (seeds < SAME[1])).all()
    return evidence(holds, value=value, interval=interval, **FACTS)


def like_random() -> Evidence:
    """Decide whether ResNet-18's ratio to random directions is below the predicted range."""
    value, *interval = mean_ratio("resnet", "random")
    holds = by_seed("resnet", "random").max() < EXPECTED
    return evidence(holds, value=value, interval=interval, null=EXPECTED, **FACTS)


def vgg_beside(control: str, more: bool) -> Evidence:
    """Decide whether VGG-11 uses early NADs more, or less, than a control."""
    value, *interval = mean_ratio("vgg11", control)
    holds = interval[0] > 1 if more else interval[1] < 1
    return evidence(holds, value=value, interval=interval, null=1, **FACTS)


def summaries() -> str:
    """Return accuracies and mean ratios by network and seed, sign turned and component removed."""
    lines = []
    for row in rows():
        cells = [
            fixed(float(np.exp(np.log(ratios([row], row["network"], control, how)).mean())), 2)
            for control in CONTROLS
            for how in ("turn", "remove")
        ]
        late = np.exp(np.log(ratios([row], row["network"], "wave", early=False)).mean())
        lines.append(
            [
                NAMES[row["network"]],
                row["seed"],
                fixed(100 * row["accuracy"]),
                *cells,
                fixed(float(late), 2),
            ]
        )
    head = ["network", "seed", "accuracy (%)", "over waves, turned", "removed"]
    head += ["over random, turned", "removed", "late NADs over waves, turned"]
    return markdown_table(lines, head)


def rule() -> str:
    """Return the mean ratios with Student's intervals, beside the registered limits."""
    lines = [
        [
            NAMES[network],
            CONTROLS[control],
            estimate(mean_ratio(network, control)),
            ", ".join(fixed(value, 2) for value in by_seed(network, control)),
        ]
        for network in NAMES
        for control in CONTROLS
    ]
    limits = f"not more: {SAME[0]:g} to {SAME[1]:g}; more: above {MORE:g}"
    return markdown_table(lines, ["network", "control", "NADs 0 to 40", f"seeds ({limits})"])


def by_nad() -> str:
    """Return energy, share of changed predictions and ratio to waves of each NAD."""
    lines = [
        [
            f"{NAMES[row['network']]}, seed {row['seed']}",
            one["index"],
            fixed(one["energy"], 2),
            fixed(100 * one["nad"]["turn"], 2),
            fixed(one["nad"]["turn"] / one["wave"]["turn"], 2),
        ]
        for row in rows()
        for one in row["directions"]
    ]
    return markdown_table(lines, ["network", "NAD", "energy", "changed (%)", "ratio to waves"])


CLAIMS: dict[str, Callable[[], Evidence]] = {
    "turned-like-random": like_random,
    "trained-follow-data": lambda: follows_data("resnet"),
    "vgg-follows-data": lambda: follows_data("vgg11"),
    "vgg-more-than-waves": lambda: vgg_beside("wave", more=True),
    "vgg-less-than-random": lambda: vgg_beside("random", more=False),
}
LAB_TABLES: dict[str, Callable[[], str]] = {
    "Used NADs: the registered rule": rule,
    "Used NADs: networks": summaries,
    "Used NADs: directions": by_nad,
}
