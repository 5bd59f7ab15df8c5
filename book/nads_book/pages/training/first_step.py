"""The first step of training by exact derivatives (a section of ``11_training``)."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from nads_book import figures
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.experiments import matching
from nads_book.pages.scored_rows import registered, rows_of
from nads_book.pages.training.trajectories import LABELS, NETWORKS
from nads_book.report import estimate, markdown_table
from nads_book.studies.exact_first_step import LAW, SHOWN_STEPS, signal_lead

STUDY = "exact-first-step"
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


def table_first_step() -> str:
    """Return the first change's cosines with laws, and by how much the trace shrinks."""
    rows = []
    for name, row in derivatives().items():
        cosines = [written(row["change"]["cosine"][law]) for law in LAWS]
        rows.append(
            [NETWORKS[name], f"{row['num_networks']:,}", *cosines, written(row["growth"], 3)]
        )
    head = ["", "networks", *(f"cosine with {law}" for law in LAWS.values())]
    return markdown_table(rows, [*head, "d log tr G per unit of the rate"])


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


def table_balanced() -> str:
    """Return the cosines of the change with signal and rivals, as many animals as vehicles."""
    rows = [
        [f"{NETWORKS[name]}, step {step}", row["num_networks"]]
        + [written(row["change"]["cosine"][law]) for law in LABELS]
        for (name, step), row in balanced().items()
    ]
    return markdown_table(rows, ["", "networks", *LABELS.values()])


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


def signal_balanced() -> Evidence:
    """Decide whether the signal leads all rivals in LeNet and the small CNN, classes balanced
    (registered).
    """
    leads = [signal_lead(row) for row in balanced().values()]
    names = ("lenet", "cnn")
    criteria = [f"{name}, signal" for name in names]
    return by_criteria(criteria, [min(leads)], names, "balanced")


def first_step_or_eigenvector() -> Evidence:
    """Decide whether the changes of LeNet and the small CNN are along more than one eigenvector."""
    leads = [
        derivatives()[name]["change"]["law ahead"]["first of law"] for name in ("lenet", "cnn")
    ]
    holds = all(low > 0 or high < 0 for _, low, high in leads)
    number = derivatives()["lenet"]["num_networks"]
    return evidence(holds, *leads[0], null=0, num_trainings=number, **FACTS)


def first_step_elsewhere() -> Evidence:
    """Decide whether the small CNN's and the MLP's first changes are opposite to G₀SG₀
    (registered).
    """
    cosine = derivatives()["cnn"]["change"]["cosine"][LAW]
    return by_criteria(["cnn, opposite", "mlp, opposite"], cosine, ["cnn", "mlp"])


LAB_TABLES = {
    "The first step by exact derivatives": table_first_step,
    "Steps 10 and 30 with as many photos of both classes": table_balanced,
}
