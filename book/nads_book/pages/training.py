"""The page ``11_training``: what training does to NADs.

The second moment of networks that train, step by step; the first step, by exact derivatives and in
a closed form; what the reader trains. What networks learn with three optimisers, and which NADs
they use, is in `training_learned`.
"""

import itertools
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from IPython.display import HTML
from matplotlib.figure import Figure
from torch import Tensor

import nads_core as nc
from nads_book import figures
from nads_book.claims import decides
from nads_book.experiments import Row, rows_of, table_of
from nads_book.experiments.evidence import Evidence, Facts, above, below, evidence
from nads_book.experiments.formatting import fixed
from nads_book.explorer.bundle import element
from nads_book.explorer.data import compressed
from nads_book.figures.publishing import publishing
from nads_book.pages.scored_rows import registered, scored
from nads_book.studies import first_step_rates
from nads_book.studies.exact_first_step import LAW
from nads_core.directions import NADs

SIGNAL = "signal"
FIRST_STEP, STEP_RATES, PAPER_RATES = "exact-first-step", "first-step-rates", "paper-rates"
NETWORKS = {
    "lenet": "LeNet",
    "cnn": "small CNN",
    "mlp": "MLP",
    "linear": "deep linear",
    "resnet": "narrow ResNet-18",
    "resnet-nonorm": "narrow ResNet-18, no norm",
}
SMALL = ("lenet", "cnn", "mlp", "linear")
LONG = ("lenet", "mlp", "linear")  # followed to the last step
LAST = 1_000
DATA = {
    "photos": "photos",
    "random labels": "photos, random labels",
    "learned wave": "wave (0, 4)",
    "wave in the middle": "wave (4, 10)",
}
SHOWN = 4  # directions in the widget
LAWS = {LAW: "G₀SG₀", "S": "S", "G_0": "G₀"}
ONE_SEED: Facts = {"size": "paper", "num_seeds": 1, "null": 0}
SAMPLES, CLIP = {"wave": "wave (0, 4)", "photos": "photos"}, 0.5  # clipped as in the paper
# Step by step


@cache
def known() -> dict[tuple[str, str, int], Row]:
    """Return the stored rows: (network, data, step) -> row."""
    rows = [row for row in rows_of("geometry") if row["step"] != "small"]
    return {(row["network"], row["data"], row["step"]): row for row in rows}


def cosine(network: str, data: str, step: int, law: str, of: str = "change") -> np.ndarray:
    """Return the cosine of a change, or of the moment itself, with a law, and its interval, which
    ends at −1 and 1; NaN where it is not known.
    """
    values = known()[network, data, step][of].get("cosine", {}).get(law) or [None] * 3
    return np.array(values, dtype=float).clip(-1, 1)


def steps_of(network: str, data: str) -> list[int]:
    """Return the steps at which a condition was measured, the start included."""
    return [step for (*condition, step) in known() if condition == [network, data]]


def widget() -> HTML:
    """Return a figure whose slider shows leading directions of networks while they train."""
    entries, pixels = {}, []
    networks = {name: NETWORKS[name] for name in ("lenet", "cnn", "mlp", "resnet")}
    for network, data in itertools.product(networks, DATA):
        if not (steps := steps_of(network, data)):
            continue
        curves: dict[str, Any] = {}
        for name, law in (("start", "G_0"), (SIGNAL, SIGNAL)):
            found = [cosine(network, data, step, law, "moment")[0] for step in steps]
            curves[name] = [None if np.isnan(value) else round(value, 3) for value in found]
        without = {} if any(curves[SIGNAL]) else {SIGNAL: None}
        entries[f"{network}|{data}"] = {"steps": steps} | curves | without
        before = np.zeros((SHOWN, 1_024))
        for step in steps:
            leading = np.array(known()[network, data, step]["leading"][:SHOWN])
            opposite = (leading * before).sum(1, keepdims=True) < 0
            before = leading * np.where(opposite, -1, 1)  # as similar to the last as possible
            pixels.append(before.astype(np.int8))
    choices = {"networks": networks, "data": DATA, "entries": entries, "shown": SHOWN}
    config = compressed((choices, np.stack(pixels).tobytes()))
    sentence = "A slider shows directions of networks while they train."
    return HTML(element("nad-trained", config, sentence, publishing()))


def plot_changes() -> Figure:
    """Draw cosines of the change on photos with the signal and with the law, by step."""
    laws = {SIGNAL: "with the signal of the labels", LAW: "with G₀SG₀, which knows no labels"}
    panels: dict[str, Any] = {}
    for network in SMALL:
        steps = [step for step in steps_of(network, "photos") if step >= 10]
        panels[NETWORKS[network]] = {
            label: (steps, [cosine(network, "photos", step, law) for step in steps])
            for law, label in laws.items()
        }
    limits = {"ylim": (-0.1, 1.1), "xlim": (8, 1_300)}
    ticks = [10, 100, 1_000]
    return figures.plot_lines(panels, "step", "cosine", ticks, level=0, bands=True, **limits)


def facts(networks: Iterable[str], step: int = 0) -> Facts:
    """Return size and number of networks of a claim about networks on photos."""
    number = sum(known()[name, "photos", step]["num_networks"] for name in networks)
    return {"size": "paper", "num_seeds": 1, "num_trainings": number}


@decides("bright-above-dark")
def _():
    """Decide whether LeNet's leading direction becomes the upper half against the lower one."""
    halves = np.repeat([1.0, -1.0], 512) / 32
    shares = []
    for step in (0, 100):
        leading = np.array(known()["lenet", "photos", step]["leading"][0], dtype=float)
        shares.append(float((leading / np.linalg.norm(leading) @ halves) ** 2))
    holds = shares[0] < 0.1 and shares[1] > 0.4
    return evidence(holds, shares[1], **facts(["lenet"], step=100))


@decides("signal-takes-over")
def _():
    """Decide whether the change after ten steps is closer to the signal than to G₀SG₀, in each
    small network, by the smallest lead in absolute values.
    """
    changes = [known()[name, "photos", 10]["change"] for name in SMALL]
    ahead = [one["law ahead"][SIGNAL] for one in changes]  # of G₀SG₀
    leads = [(-value, -high, -low) for value, low, high in ahead]
    return above(min(leads), **facts(SMALL))


@decides("signal-at-paper-rate")
def _():
    """Decide whether on photos the signal leads all rivals after ten steps at the paper's rate
    (registered), and show by how much its interval does.
    """
    criteria = ["lenet, photos, step 10", "cnn, photos, step 10"]
    rows = at_paper_rates("photos")
    lead = min(map(first_step_rates.signal_lead, rows))
    number = sum(row["num_networks"] for row in rows)
    return registered(PAPER_RATES, criteria, [lead], num_trainings=number, **ONE_SEED)


@decides("slopes-shrink-at-paper-rate")
def _():
    """Decide whether along a wave ten steps at the paper's rate leave less than a third of tr G,
    and show what is left in the network that may keep most, in per cent.
    """
    rows = at_paper_rates("wave")
    growths = (row["growth"] for row in rows)
    left = [100 * value for value in max(growths, key=lambda growth: growth[2])]
    number = sum(row["num_networks"] for row in rows)
    return below(left, 100 / 3, size="paper", num_seeds=1, num_trainings=number)


def at_paper_rates(data: str) -> list[Row]:
    """Return what ten steps at the paper's rate did to each network, on some data."""
    return [row for row in rows_of(PAPER_RATES) if (row["data"], row["step"]) == (data, 10)]


@decides("neither-at-the-end")
def _():
    """Decide whether cosines with the signal and the law are within .2 of 0 at step 1,000."""
    found = np.array([cosine(name, "photos", LAST, law) for law in (LAW, SIGNAL) for name in LONG])
    largest = found[found[:, 0].argmax()]
    return evidence(np.abs(found).max() < 0.2, *largest, null=0.2, **facts(LONG, step=LAST))


# The first step: exact derivatives, and a closed form without labels


def derivatives() -> dict[str, Any]:
    """Return the row of each network whose derivative is stored, in the order of `NETWORKS`."""
    found = {r["network"]: r for r in rows_of(FIRST_STEP) if r.get("measured") == "derivative"}
    return {name: found[name] for name in NETWORKS if name in found}


def plot_first_step() -> Figure:
    """Draw the direction of the first change of the second moment, and how fast it shrinks."""
    direction: dict[str, dict[str, Any]] = {label: {} for label in LAWS.values()}
    size: dict[str, Any] = {}
    for name, row in derivatives().items():
        cosines = row["change"]["cosine"]
        for law, label in LAWS.items():
            if None not in cosines.get(law, [None]):
                direction[label][NETWORKS[name]] = np.clip(cosines[law], -1, 1)
        value, low, high = row["growth"]
        size[NETWORKS[name]] = -value, -high, -low
    return figures.plot_intervals(
        {"direction": direction, "size": {LAWS[LAW]: size}},
        ["cosine of the first change", "fall of log tr G per unit of the rate"],
        logarithmic=["size"],
    )


def plot_rates() -> Figure:
    """Draw tr G after one step, relative to that before it, over the learning rate."""
    rows = table_of(STEP_RATES)
    rows = rows[rows["clip"] == CLIP]
    panels = {
        f"{NETWORKS[network]}, {SAMPLES[data]}": {
            f"{labels} labels": (own["rate"], own["growth"].tolist())
            for labels, own in cell.groupby("labels", sort=False)
        }
        for (network, data), cell in rows.groupby(["network", "data"], sort=False)
    }
    ylabel = "tr G after the step / before"
    ticks = [0.01, 0.05, 0.21, 0.5]
    return figures.plot_lines(panels, "learning rate", ylabel, ticks, level=1, bands=True)


@decides("first-step-along-law", names=["lenet"], sign="opposite")
@decides("first-step-shrinks", names=["lenet", "cnn", "mlp"], sign="shrinks")
def _(names: Sequence[str], sign: str) -> Evidence:
    """Decide by registered criteria whether the first change of networks is opposite to G₀SG₀, or
    shrinks tr G, and show that of LeNet.
    """
    rows = derivatives()
    row = rows["lenet"]
    shown = row["growth"] if sign == "shrinks" else np.clip(row["change"]["cosine"][LAW], -1, 1)
    number = max(rows[name]["num_networks"] for name in names)
    criteria = [f"{name}, {sign}" for name in names]
    return registered(FIRST_STEP, criteria, shown, num_trainings=number, **ONE_SEED)


@decides("first-step-grows")
def _():
    """Decide whether along a wave one step shrinks LeNet's tr G at a rate of .05 and enlarges it at
    .5 (registered), and show by how many per cent with right labels.
    """
    found = scored(STEP_RATES).estimates["lenet, wave, right"]["rate 0.5, clipped"]
    number = first_step_rates.NUM_NETWORKS["lenet"]
    criteria = ["lenet, wave: falls at .05", "lenet, wave: grows at .5"]
    shown = [100 * (value - 1) for value in found]
    return registered(STEP_RATES, criteria, shown, num_trainings=number, **ONE_SEED)


def first_change(second_moment: Tensor, hidden: int) -> Tensor:
    """Return the change of the second moment of a deep linear network per unit of the rate, (D, D),
    by Wick's theorem.

    Args:
        second_moment: S of the inputs, (D, D).
        hidden: number of hidden units h; weights have variances 1/h and 1/D.
    """
    h, size = hidden, len(second_moment)
    along_data = (h + 2) / (h * size) + (h + 1) / size**2
    identity = torch.eye(size, dtype=second_moment.dtype)
    return -2 * (along_data * second_moment + second_moment.trace() / size**2 * identity)


@decides("first-step-closed-form")
def _():
    """Decide whether simulations with and without labels agree with the closed form: networks
    f(x) = a W x, each of which takes one exact gradient step.
    """
    count, size, hidden, rate = 20_000, 12, 6, 1e-3
    draw: Facts = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
    factor = torch.randn(size, size, **draw)
    second_moment, signal = factor @ factor.T / size, torch.randn(size, **draw)
    expected = rate * first_change(second_moment, hidden)
    largest = []
    for labels in (0 * signal, signal):
        a = torch.randn(count, 1, hidden, **draw) / hidden**0.5
        weights = torch.randn(count, hidden, size, **draw) / size**0.5
        g = a @ weights  # (n, 1, D)
        slope = g @ second_moment - labels  # of the loss, in g
        after = (a - rate * slope @ weights.mT) @ (weights - rate * a.mT @ slope)
        change = after.mT @ after - g.mT @ g
        errors = change.std(0) / count**0.5
        largest.append(float(((change.mean(0) - expected) / errors).abs().max()))
    return evidence(max(largest) < 5, max(largest))


# What the reader trains


def relative_energy(nads: NADs, wave: tuple[int, int]) -> float:
    """Return the energy of a wave, relative to the mean over all directions."""
    energy = nads.energy(nc.fourier_direction(wave, size=32)[None])
    return float(energy / nads.eigenvalues.mean())


def plot_your_training(wave: tuple[int, int], before: NADs, after: NADs) -> Figure:
    """Draw the leading direction of a reader's networks, beside stored ones.

    Args:
        wave: (ky, kx) that the reader's networks learned.
        before: NADs of random networks.
        after: NADs of trained networks.
    """
    pictures = {}
    for step in (0, 300):
        leading = known()["lenet", "learned wave", step]["leading"][0]
        pictures[f"stored, (0, 4),\nstep {step}"] = torch.tensor(leading).view(32, 32)
    for name, nads in (("before", before), ("after", after)):
        title = f"yours, {wave}, {name}\nenergy {fixed(relative_energy(nads, wave), 1)}"
        pictures[title] = nads.directions[0, 0]
    return figures.plot_signed_images(pictures)
