"""The second moment of networks that train, step by step, beside simple laws."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from IPython.display import HTML
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.evidence import Estimate, Evidence, Facts, above, evidence
from nads_book.experiments import load_study
from nads_book.explorer.bundle import element
from nads_book.explorer.data import compressed
from nads_book.publishing import publishing

LAW, SIGNAL = "G_0 S G_0", "signal"
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
LABELS = {
    SIGNAL: "signal",
    LAW: "G₀SG₀",
    "first of law": "leading eigenvector of G₀SG₀",
    "class means": "E[yx]",
    "S": "S",
    "G_0": "G₀",
}


@cache
def known() -> dict[tuple[str, str, Any], dict[str, Any]]:
    """Return the stored rows: (network, data, step) -> row."""
    rows = load_study("geometry.json")["rows"]
    return {(row["network"], row["data"], row["step"]): row for row in rows}


def _numbers(values: Sequence[float | None] | None) -> list[float]:
    return [np.nan if value is None else value for value in values or (None, None, None)]


def cosine(network: str, data: str, step: Any, law: str = LAW, of: str = "change") -> list[float]:
    """Return the cosine of a change, or of the moment itself, with a law, and its interval."""
    return _numbers(known()[network, data, step][of].get("cosine", {}).get(law))


def lead(network: str, data: str, step: Any) -> list[float]:
    """Return by how much the cosine with the signal exceeds that with G₀SG₀, in absolute values."""
    ahead = known()[network, data, step]["change"].get("law ahead", {}).get(SIGNAL)
    value, low, high = (-one for one in _numbers(ahead))
    return [value, high, low]


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
        for name, law in (("start", "G_0"), ("signal", SIGNAL)):
            found = [cosine(network, data, step, law, "moment")[0] for step in steps]
            curves[name] = [None if np.isnan(value) else round(value, 3) for value in found]
        without = {} if any(curves["signal"]) else {"signal": None}
        entries[f"{network}|{data}"] = {"steps": steps} | curves | without
        before = np.zeros((SHOWN, 1_024))
        for step in steps:
            leading = np.array(known()[network, data, step]["leading"][:SHOWN])
            opposite = (leading * before).sum(1, keepdims=True) < 0
            before = leading * np.where(
                opposite, -1, 1
            )  # as similar to the last picture as possible
            pixels.append(before.astype(np.int8))
    used = [set(names) for names in zip(*conditions, strict=True)]
    choices: dict[str, Any] = {
        "networks": {name: label for name, label in NETWORKS.items() if name in used[0]},
        "data": {name: label for name, label in DATA.items() if name in used[1]},
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
            label: (steps, cosines([network], "photos", steps, law)) for law, label in laws.items()
        }
    limits = {"ylim": (-0.1, 1.1), "xlim": (8, 1_300)}
    ticks = [10, 100, 1_000]
    return figures.plot_lines(panels, "step", "cosine", ticks, level=0, bands=True, **limits)


# Claims


def cosines(
    networks: Iterable[str], data: str, steps: Iterable[int], law: str = LAW, of: str = "change"
) -> list[list[float]]:
    """Return cosines with intervals, of networks and steps on some data: see
    `Trajectories.cosine`.
    """
    return [cosine(name, data, step, law, of) for name in networks for step in steps]


def facts(networks: Iterable[str], data: str = "photos", step: int = 0) -> Facts:
    """Return size and number of networks of a claim about networks on some data."""
    number = sum(known()[name, data, step]["num_networks"] for name in networks)
    return {"size": "paper", "num_seeds": 1, "num_trainings": number}


def bright_above_dark() -> Evidence:
    """Decide whether LeNet's leading direction becomes the upper half against the lower one."""
    halves = np.repeat([1.0, -1.0], 512) / 32
    shares = []
    for step in (0, 100):
        leading = np.array(known()["lenet", "photos", step]["leading"][0], dtype=float)
        shares.append(float((leading / np.linalg.norm(leading) @ halves) ** 2))
    holds = shares[0] < 0.1 and shares[1] > 0.4
    return evidence(holds, shares[1], **facts(["lenet"], step=100))


def smallest_lead(data: Iterable[str], steps: Iterable[int]) -> Estimate:
    """Return the smallest lead of the signal over the law, over small networks, data and steps."""
    leads = [
        lead(network, one, step)
        for network in SMALL
        for one in data
        for step in steps_of(network, one)
        if step in steps
    ]
    value, low, high = min(each for each in leads if not np.isnan(each[0]))
    return value, low, high


def signal_takes_over() -> Evidence:
    """Decide whether the change after ten steps is closer to the signal, in each network."""
    return above(smallest_lead(["photos"], [10]), **facts(SMALL))


def neither_at_the_end() -> Evidence:
    """Decide whether cosines with the signal and the law are below .2 at step 1,000 on photos."""
    found = [one for law in (LAW, SIGNAL) for one in cosines(LONG, "photos", [LAST], law)]
    holds = max(high for *_, high in found) < 0.2
    return evidence(holds, *max(found), null=0.2, **facts(LONG, step=LAST))
