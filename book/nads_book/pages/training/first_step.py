"""The first step of training: exact derivatives, and a closed form without labels."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from nads_book import figures
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.experiments import matching
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.pages.training.trajectories import LABELS, NETWORKS
from nads_book.report import estimate
from nads_book.studies import first_step_rates
from nads_book.studies.exact_first_step import LAW, SHOWN_STEPS

STUDY, RATES = "exact-first-step", "first-step-rates"
SAMPLES, CLIP = {"wave": "wave (0, 4)", "photos": "photos"}, 0.5  # clipped as in the paper
LAWS = {law: LABELS[law] for law in (LAW, "first of law", "S", "G_0")}
UNRESOLVED = "not resolved"
FACTS: Facts = {"size": "paper", "num_seeds": 1}


def derivatives() -> dict[str, Any]:
    """Return the row of each network whose derivative is stored, in the order of `NETWORKS`."""
    found = {row["network"]: row for row in rows_of(STUDY) if row["measured"] == "derivative"}
    return {name: found[name] for name in NETWORKS if name in found}


def balanced() -> dict[tuple[str, int], Any]:
    """Return the rows of later steps with balanced classes, by network and step."""
    return {(row["network"], row["step"]): row for row in rows_of(STUDY) if "step" in row}


def written(values: Sequence[float | None], digits: int = 2) -> str:
    """Return an estimate with its interval, or that it cannot be told from noise."""
    return UNRESOLVED if None in values else estimate([float(x or 0) for x in values], digits)


def plot_first_step() -> Figure:
    """Draw the direction of the first change of the second moment, and how fast it shrinks."""
    direction: dict[str, dict[str, Any]] = {label: {} for label in LAWS.values()}
    size: dict[str, Any] = {}
    for name, row in derivatives().items():
        for law, label in LAWS.items():
            values = row["change"]["cosine"][law]
            if None not in values:
                direction[label][NETWORKS[name]] = values
        value, low, high = row["growth"]
        size[NETWORKS[name]] = -value, -high, -low
    panels = {"direction": direction, "size": {LAWS[LAW]: size}}
    return figures.plot_intervals(
        panels,
        ["cosine of the first change", "−d log tr G per unit of the rate"],
        logarithmic=["size"],
    )


def plot_rates() -> Figure:
    """Draw tr G after one step, relative to that before it, over the learning rate."""
    panels: dict[str, Any] = {}
    for network in ("lenet", "cnn"):
        for data, where in SAMPLES.items():
            lines = panels[f"{NETWORKS[network]}, {where}"] = {}
            for labels in first_step_rates.LABELS:
                cell = {"network": network, "data": data, "labels": labels}
                own = matching(rows_of(RATES), clip=CLIP, **cell)
                growth = [row["growth"] for row in own]
                lines[f"{labels} labels"] = [row["rate"] for row in own], growth
    ylabel = "tr G after the step / before"
    ticks = [0.01, 0.05, 0.21, 0.5]
    return figures.plot_lines(panels, "learning rate", ylabel, ticks, level=1, bands=True)


def plot_balanced() -> Figure:
    """Draw the cosines of the change with signal and rivals at later steps, classes balanced."""
    panels: dict[str, Any] = {}
    for step in SHOWN_STEPS:
        panel: dict[str, Any] = {}
        for (name, at), row in balanced().items():
            if at == step:
                found = row["change"]["cosine"]
                panel[NETWORKS[name]] = {
                    label: found[law]
                    for law, label in LABELS.items()
                    if law in found and None not in found[law]
                }
        panels[f"step {step}"] = panel
    return figures.plot_intervals(panels, ["cosine of the change"] * len(panels))


def by_criteria(
    criteria: Sequence[str],
    estimate: Sequence[float],
    networks: Sequence[str],
    kind: str = "derivative",
    null: float | None = None,
) -> Evidence:
    """Decide by registered criteria, and show an estimate, with the number of networks of a kind of
    rows.
    """
    rows = matching(rows_of(STUDY), measured=kind)
    number = max(row["num_networks"] for row in rows if row["network"] in networks)
    facts = FACTS | {"num_trainings": number, "null": null}
    return registered(STUDY, criteria, estimate, **facts)


def first_step_along_law() -> Evidence:
    """Decide whether LeNet's first change is opposite to G₀SG₀ (registered)."""
    cosine = derivatives()["lenet"]["change"]["cosine"][LAW]
    return by_criteria(["lenet, opposite"], cosine, ["lenet"], null=0)


def first_step_shrinks() -> Evidence:
    """Decide whether the first step shrinks tr G in LeNet, the small CNN and the MLP
    (registered).
    """
    names = ("lenet", "cnn", "mlp")
    criteria = [f"{name}, shrinks" for name in names]
    return by_criteria(criteria, derivatives()["lenet"]["growth"], names, null=0)


def first_step_grows() -> Evidence:
    """Decide whether along a wave one step shrinks LeNet's tr G at a rate of .05 and enlarges it at
    .5 (registered), and show by how many per cent with right labels.
    """
    found = scored(RATES).estimates["lenet, wave, right"]["rate 0.5, clipped"]
    facts = FACTS | {"num_trainings": first_step_rates.NUM_NETWORKS["lenet"]}
    criteria = ["lenet, wave: falls at .05", "lenet, wave: grows at .5"]
    return registered(RATES, criteria, [100 * (value - 1) for value in found], null=0, **facts)


# The closed form of a deep linear network


def first_change(second_moment: Tensor, hidden: int) -> Tensor:
    """Return the change of the second moment per unit of the rate, (D, D), by Wick's theorem.

    Args:
        second_moment: S of the inputs, (D, D).
        hidden: number of hidden units h; weights have variances 1/h and 1/D.
    """
    h, size = hidden, len(second_moment)
    along_data = (h + 2) / (h * size) + (h + 1) / size**2
    identity = torch.eye(size, dtype=second_moment.dtype)
    return -2 * (along_data * second_moment + second_moment.trace() / size**2 * identity)


def simulated_changes(
    second_moment: Tensor,
    signal: Tensor,
    hidden: int,
    rate: float,
    count: int,
    generator: torch.Generator,
) -> Tensor:
    """Return the changes of g g' by one exact gradient step of networks f(x) = a W x, (n, D, D).

    Args:
        second_moment: S of the inputs, (D, D).
        signal: E[y x] of the labels, (D,).
        hidden: number of hidden units.
        rate: learning rate.
        count: number of networks n.
        generator: source of the weights.
    """
    size = len(signal)
    draw: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    a = torch.randn(count, 1, hidden, **draw) / hidden**0.5
    weights = torch.randn(count, hidden, size, **draw) / size**0.5
    g = a @ weights  # (n, 1, D)
    slope = g @ second_moment - signal  # of the loss, in g
    after = (a - rate * slope @ weights.mT) @ (weights - rate * a.mT @ slope)
    return after.mT @ after - g.mT @ g


def first_step_closed_form(count: int = 20_000) -> Evidence:
    """Decide whether simulations with and without labels agree with the closed form."""
    size, hidden, rate = 12, 6, 1e-3
    generator = torch.Generator().manual_seed(0)
    draw: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    factor = torch.randn(size, size, **draw)
    second_moment, signal = factor @ factor.T / size, torch.randn(size, **draw)
    expected = rate * first_change(second_moment, hidden)
    largest = []
    for labels in (0 * signal, signal):
        change = simulated_changes(second_moment, labels, hidden, rate, count, generator)
        errors = change.std(0) / count**0.5
        largest.append(float(((change.mean(0) - expected) / errors).abs().max()))
    return evidence(max(largest) < 5, max(largest))
