"""The page ``11_training``: what training does to NADs, with three optimisers.

The second moment of networks that train, step by step; the first step, by exact derivatives and in a
closed form; which waves are learned under three optimisers; why Adam loses accuracy on flipped
photos; which NADs a trained network uses; what the reader trains.
"""

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
from nads_book.atlas import load_atlas
from nads_book.claims import decides
from nads_book.experiments import Row, load_study, matching
from nads_book.experiments.evidence import Estimate, Evidence, Facts, above, evidence
from nads_book.experiments.formatting import fixed
from nads_book.explorer.bundle import element
from nads_book.explorer.data import compressed
from nads_book.figures.publishing import publishing
from nads_book.figures.style import (
    bar_ends,
    legend,
    log_ticks,
    panel_row,
    rule,
    shade,
    styled,
)
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.statistics import mean_and_range
from nads_book.studies import first_step_rates, forgetting, responses
from nads_book.studies.adam_flip import (
    BASES,
    EQUAL_VARIANCES,
    ONE_STEP_SIZE,
    TREATMENTS,
)
from nads_book.studies.adam_flip import effective_inputs as effective_inputs  # a cell calls it
from nads_book.studies.exact_first_step import LAW, SHOWN_STEPS
from nads_book.studies.forgetting import FACTORIAL, RATES, SEEDS, WAVES, Cell
from nads_core.directions import NADs

SIGNAL, ADAM, USED = "signal", "adam-flip", "used-nads"
FIRST_STEP, STEP_RATES = "exact-first-step", "first-step-rates"
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
LAWS = {
    SIGNAL: "signal",
    LAW: "G₀SG₀",
    "first of law": "leading eigenvector of G₀SG₀",
    "class means": "E[yx]",
    "S": "S",
    "G_0": "G₀",
}
WITHOUT_LABELS = (LAW, "first of law", "S", "G_0")
SAMPLES, CLIP = {"wave": "wave (0, 4)", "photos": "photos"}, 0.5  # clipped as in the paper
OPTIMISERS = {"sgd": "SGD", "momentum": "SGD with momentum", "adam": "Adam"}
LOWER = [cell for cell in FACTORIAL if cell.rate != RATES[cell.optimiser][-1]]
TREATMENT_LABELS = {
    "adam": "Adam",
    "sgd": "SGD",
    ONE_STEP_SIZE: "Adam, one step size per matrix",
    EQUAL_VARIANCES: "SGD, inputs of equal variance",
}
BASIS_LABELS = {
    "rotated": "random rotation",
    "flipped": "flipped",
    "nads": "NAD coordinates",
    "components": "principal components",
}
USERS = {"resnet": "ResNet-18, quarter width", "vgg11": "VGG-11"}
CONTROLS = {"wave": "waves of equal energy", "random": "random directions, equal change"}


# Step by step


@cache
def known() -> dict[tuple[str, str, Any], dict[str, Any]]:
    """Return the stored rows: (network, data, step) -> row."""
    rows = load_study("geometry.json")["rows"]
    return {(row["network"], row["data"], row["step"]): row for row in rows}


def _numbers(values: Sequence[float | None] | None) -> list[float]:
    return [np.nan if value is None else value for value in values or (None, None, None)]


def cosine(network: str, data: str, step: Any, law: str = LAW, of: str = "change") -> list[float]:
    """Return the cosine of a change, or of the moment itself, with a law, and its interval, which
    ends at −1 and 1.
    """
    values = _numbers(known()[network, data, step][of].get("cosine", {}).get(law))
    return np.clip(values, -1, 1).tolist()


def steps_of(network: str, data: str) -> list[int]:
    """Return the steps at which a condition was measured, the start included."""
    return [
        step
        for (*condition, step) in known()
        if tuple(condition) == (network, data) and step != "small"
    ]


def widget() -> HTML:
    """Return a figure whose slider shows leading directions of networks while they train."""
    entries, pixels = {}, []
    conditions = [
        (network, data)
        for network in NETWORKS
        for data in DATA
        if network not in ("linear", "resnet-nonorm") and steps_of(network, data)
    ]
    for network, data in conditions:
        steps = steps_of(network, data)
        curves = {}
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
    networks, data_sets = (set(names) for names in zip(*conditions, strict=True))
    choices: dict[str, Any] = {
        "networks": {name: label for name, label in NETWORKS.items() if name in networks},
        "data": {name: label for name, label in DATA.items() if name in data_sets},
    }
    config = compressed(
        (choices | {"entries": entries, "shown": SHOWN}, np.stack(pixels).tobytes())
    )
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
    ahead = [
        _numbers(known()[name, "photos", 10]["change"].get("law ahead", {}).get(SIGNAL))
        for name in SMALL
        if 10 in steps_of(name, "photos")
    ]
    leads = [(-value, -high, -low) for value, low, high in ahead if not np.isnan(value)]
    return above(min(leads), **facts(SMALL))


@decides("neither-at-the-end")
def _():
    """Decide whether cosines with the signal and the law are below .2 at step 1,000 on photos."""
    found = [cosine(name, "photos", LAST, law) for law in (LAW, SIGNAL) for name in LONG]
    holds = max(high for *_, high in found) < 0.2
    return evidence(holds, *max(found), null=0.2, **facts(LONG, step=LAST))


# The first step: exact derivatives, and a closed form without labels


def derivatives() -> dict[str, Any]:
    """Return the row of each network whose derivative is stored, in the order of `NETWORKS`."""
    found = {row["network"]: row for row in matching(rows_of(FIRST_STEP), measured="derivative")}
    return {name: found[name] for name in NETWORKS if name in found}


def cosines_of(row: Row) -> dict[str, list[float]]:
    """Return the cosines of a change that are known, with intervals that end at −1 and 1."""
    known = {law: ends for law, ends in row["change"]["cosine"].items() if None not in ends}
    return {law: np.clip(ends, -1, 1).tolist() for law, ends in known.items()}


def plot_first_step() -> Figure:
    """Draw the direction of the first change of the second moment, and how fast it shrinks."""
    direction: dict[str, dict[str, Any]] = {LAWS[law]: {} for law in WITHOUT_LABELS}
    size: dict[str, Any] = {}
    for name, row in derivatives().items():
        for law, values in cosines_of(row).items():
            if law in WITHOUT_LABELS:
                direction[LAWS[law]][NETWORKS[name]] = values
        value, low, high = row["growth"]
        size[NETWORKS[name]] = -value, -high, -low
    return figures.plot_intervals(
        {"direction": direction, "size": {LAWS[LAW]: size}},
        ["cosine of the first change", "fall of log tr G per unit of the rate"],
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
                own = matching(rows_of(STEP_RATES), clip=CLIP, **cell)
                growth = [row["growth"] for row in own]
                lines[f"{labels} labels"] = [row["rate"] for row in own], growth
    ylabel = "tr G after the step / before"
    ticks = [0.01, 0.05, 0.21, 0.5]
    return figures.plot_lines(panels, "learning rate", ylabel, ticks, level=1, bands=True)


def plot_balanced() -> Figure:
    """Draw the cosines of the change with signal and rivals at later steps, classes balanced."""
    panels: dict[str, Any] = {f"step {step}": {} for step in SHOWN_STEPS}
    for row in rows_of(FIRST_STEP):
        if (panel := panels.get(f"step {row.get('step')}")) is not None:
            found = cosines_of(row)
            cosines = {label: found[law] for law, label in LAWS.items() if law in found}
            panel[NETWORKS[row["network"]]] = cosines
    return figures.plot_intervals(panels, ["cosine of the change"] * len(panels))


def by_derivatives(criteria: Sequence[str], estimate: Sequence[float], *names: str) -> Evidence:
    """Decide by registered criteria of the first step, and show an estimate of some networks."""
    number = max(derivatives()[name]["num_networks"] for name in names)
    facts: Facts = {"size": "paper", "num_seeds": 1, "num_trainings": number, "null": 0}
    return registered(FIRST_STEP, criteria, estimate, **facts)


@decides("first-step-along-law")
def _():
    """Decide whether LeNet's first change is opposite to G₀SG₀ (registered)."""
    cosine = cosines_of(derivatives()["lenet"])[LAW]
    return by_derivatives(["lenet, opposite"], cosine, "lenet")


@decides("first-step-shrinks")
def _():
    """Decide whether the first step shrinks tr G in LeNet, the small CNN and the MLP
    (registered).
    """
    names = ("lenet", "cnn", "mlp")
    criteria = [f"{name}, shrinks" for name in names]
    return by_derivatives(criteria, derivatives()["lenet"]["growth"], *names)


@decides("first-step-grows")
def _():
    """Decide whether along a wave one step shrinks LeNet's tr G at a rate of .05 and enlarges it at
    .5 (registered), and show by how many per cent with right labels.
    """
    found = scored(STEP_RATES).estimates["lenet, wave, right"]["rate 0.5, clipped"]
    number = first_step_rates.NUM_NETWORKS["lenet"]
    facts: Facts = {"size": "paper", "num_seeds": 1, "num_trainings": number, "null": 0}
    criteria = ["lenet, wave: falls at .05", "lenet, wave: grows at .5"]
    return registered(STEP_RATES, criteria, [100 * (value - 1) for value in found], **facts)


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
def first_step_closed_form(count: int = 20_000) -> Evidence:
    """Decide whether simulations with and without labels agree with the closed form.

    Args:
        count: number of networks f(x) = a W x, each of which takes one exact gradient step.
    """
    size, hidden, rate = 12, 6, 1e-3
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


# Which waves are learned under three optimisers


@cache
def tables() -> dict[Cell, np.ndarray]:
    """Return the test accuracies of each treatment, (seeds, waves)."""
    return forgetting.accuracies(rows_of("forgetting"))


def plot_optimisers() -> Figure:
    """Draw accuracy over energy at the start: a panel for each optimiser, a line for each rate;
    bands span the seeds.
    """
    energies = forgetting.wave_energies()
    sizes = ("lowest rate", "middle rate", "largest rate")
    panels: dict[str, Any] = {}
    for optimiser, title in OPTIMISERS.items():
        cells = [Cell(optimiser=optimiser, rate=rate) for rate in RATES[optimiser]]
        reached = [mean_and_range(100 * tables()[cell]) for cell in cells]
        panels[title] = {
            label: (energies, found) for label, found in zip(sizes, reached, strict=True)
        }
    labels = ("energy at the start", "test accuracy (%)")
    return figures.plot_lines(panels, *labels, [0.01, 0.1], level=50, bands=True, ylim=(45, 101))


COUNTS: Facts = {
    "size": "paper",
    "num_seeds": len(SEEDS),
    "num_trainings": len(SEEDS) * WAVES * len(FACTORIAL),
}


@decides("whatever-the-optimiser")
def _():
    """Decide by the registered rule whether a treatment refutes that energies order what is learned
    in each.
    """
    found, energies = forgetting.refuting(tables()), forgetting.wave_energies()
    areas = [
        [forgetting.orders(energies, tables()[cell][[seed]])["area"] for seed in SEEDS]
        for cell in found
    ]
    return evidence(bool(found), min(map(max, areas)), null=0.8, **COUNTS)


@decides("lower-rates-keep-order")
def _():
    """Decide whether energies order more than 90 % of the pairs at the two lower rates."""
    orders = forgetting.by_energy(tables())
    least = min(orders[cell]["area"] for cell in LOWER)
    return evidence(least > 0.9, least, null=0.9, **COUNTS)


@decides("optimisers-not-frequency")
def _():
    """Decide whether accuracies follow energy more closely than frequency at these rates."""
    coarse = -np.array([np.hypot(*wave) for wave in forgetting.waves()])
    leads = [
        forgetting.orders(forgetting.wave_energies(), tables()[cell])["correlation"]
        - forgetting.orders(coarse, tables()[cell])["correlation"]
        for cell in LOWER
    ]
    return evidence(min(leads) > 0, min(leads), null=0, **COUNTS)


@decides("order-elsewhere")
def _():
    """Decide whether energies order more than 90 % of the pairs in a small CNN, and in LeNet on
    classes that overlap, if two waves are learned.
    """
    atlas = load_atlas()
    own = atlas.waves[[*atlas.entries].index("cnn")]
    energies = {
        "cnn": np.array([own[wave] for wave in forgetting.waves()]),
        "lenet": forgetting.wave_energies(),
    }
    others = [cell for cell in tables() if cell not in FACTORIAL]
    orders = [forgetting.orders(energies[one.architecture], tables()[one]) for one in others]
    areas = [found["area"] for found in orders if found["learned"] >= 2]
    facts = COUNTS | {"num_trainings": len(others) * WAVES * len(SEEDS)}
    return evidence(min(areas) > 0.9, min(areas), null=0.9, **facts)


# Why Adam loses accuracy on flipped photos


@styled
def plot_bases() -> Figure:
    """Draw the points lost in each basis against the number of inputs that share the variance."""
    figure, (axis,) = panel_row(
        [""], 3.2, xlabel="effective number of inputs", ylabel="accuracy lost (points)"
    )
    where = {row["basis"]: row["effective_inputs"] for row in rows_of(ADAM)}
    for treatment in TREATMENTS:
        found = scored(ADAM).estimates[treatment]
        order = sorted(found, key=where.__getitem__)
        values, lengths = bar_ends([found[basis] for basis in order])
        places = [where[basis] for basis in order]
        look = {"fmt": "o-", "capsize": 2, "label": TREATMENT_LABELS[treatment]}
        axis.errorbar(places, values, lengths, **look)
    rule(axis)
    axis.set_xscale("log")
    top = axis.get_ylim()[1]
    for basis in BASES[1:]:
        label = BASIS_LABELS[basis].replace(" ", "\n")
        axis.text(where[basis], top, label, ha="center", va="bottom", color=shade(0.3))
    legend(figure, axis, loc="outside lower center", ncols=2)
    return figure


@decides(
    "adam-uneven",
    treatment="adam",
    criteria=["uneven bases cost with Adam", "an even basis costs nothing with Adam"],
)
@decides("adam-step-sizes", treatment=ONE_STEP_SIZE, criteria=["no basis costs with one step size"])
def _(treatment: str, criteria: Sequence[str]) -> Evidence:
    """Decide by registered criteria, and show what the flip costs with a treatment."""
    rows = matching(rows_of(ADAM), treatment=treatment)
    return registered(ADAM, criteria, scored(ADAM).estimates[treatment]["flipped"], rows)


# Which NADs a trained network uses: predictions that change when a component's sign is turned


@styled
def plot_used() -> Figure:
    """Draw how many more predictions change along a NAD than along its controls."""
    label = "energy of photos along the NAD"
    share = {"sharex": True, "sharey": True}
    figure, axes = panel_row(USERS.values(), 3.2, xlabel=label, ylabel="ratio", **share)
    looks = {"wave": ("o", "full"), "random": ("s", "none")}
    for axis, network in zip(axes, USERS, strict=True):
        own = matching(rows_of(USED), network=network)
        directions = [one for row in own for one in row["directions"]]
        energies = [one["energy"] for one in directions]
        for control, (marker, fill) in looks.items():
            found = [one["nad"]["turn"] / one[control]["turn"] for one in directions]
            label = f"NAD over {CONTROLS[control]}"
            axis.plot(energies, found, marker, fillstyle=fill, label=label)
        rule(axis, 1)
        axis.set_yscale("log")
        axis.set_yticks([0.25, 0.5, 1, 2], ["¼", "½", "1", "2"])
        log_ticks(axis, [0.2, 1, 5, 20])
    legend(figure, axes, ncols=2)
    return figure


SEEDS_USED = len(responses.SEEDS)
USED_FACTS: Facts = {"size": "narrow", "num_seeds": SEEDS_USED, "num_trainings": SEEDS_USED}


def over_waves(network: str) -> Estimate:
    """Return the geometric mean of the ratio over seeds and NADs 0 to 40, with Student's interval
    over NADs.
    """
    return scored(USED).estimates[network]["wave"]


@decides("trained-follow-data")
def _():
    """Decide by the registered limits whether the ResNet-18 uses early NADs no more than waves."""
    criterion = "resnet: does not use NADs more"
    return registered(USED, [criterion], over_waves("resnet"), **USED_FACTS)


@decides("vgg-more-than-waves", networks=["vgg11"])
@decides("errata-characterize", networks=USERS)
def _(networks: Iterable[str]) -> Evidence:
    """Decide whether networks use NADs more than waves of equal energy."""
    return above(min(map(over_waves, networks)), 1, **USED_FACTS)


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
