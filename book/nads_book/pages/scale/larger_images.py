"""LeNet's NADs at 64 x 64: what one run says about its agreement with another (a section of
``16_scale``).
"""

from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book.evidence import Facts
from nads_book.experiments import load_study
from nads_book.figures.style import colours, panel_row, styled
from nads_book.report import fixed, markdown_table, show


@cache
def _stored() -> Any:
    return load_study("nads64.json")


def _forecast(run: int, num_networks: int, target: int | None = None) -> int:
    """Return how many NADs a run found to be certain, or forecast after its first networks for a
    target.
    """
    rows = _stored()["runs"][run]["forecasts"][str(num_networks)]
    wanted = target or rows[0]["num_networks"]
    return next(int(row["num_certain"]) for row in rows if row["num_networks"] == wanted)


@styled
def plot_agreement_at_64() -> Figure:
    """Draw the overlap of two runs by the number of leading NADs, and its prediction from one run
    (dashed).
    """
    figure, (axis,) = panel_row(
        [""], 3.0, xlabel="number of leading NADs", ylabel="overlap of two runs"
    )
    for row, colour in zip(_stored()["rows"], colours(), strict=False):
        keys = ("count", "overlap", "certainty")
        numbers, overlaps, certainty = np.array(
            [[one[k] for k in keys] for one in row["leading"]]
        ).T
        label = f"{row['num_networks']:,} networks each"
        axis.plot(numbers, overlaps, "o-", color=colour, label=label)
        axis.plot(numbers, certainty**2, "--", color=colour)
    axis.set(xscale="log", ylim=(0, 1.02))
    axis.legend()
    return figure


def table_of_certain_nads() -> str:
    """Return, for each number of networks, how many NADs are forecast and found to be certain, and
    the cost.
    """
    few, many = (row["num_networks"] for row in _stored()["rows"])
    runs = _stored()["runs"]
    seconds = np.mean([run["seconds"][str(many)] / (many - few) for run in runs])  # per network

    def both(*arguments: int) -> str:
        return ", ".join(str(_forecast(run, *arguments)) for run in range(len(runs)))

    rows = [
        [
            f"{number:,}",
            both(few, number),
            both(number) if number in (few, many) else "–",
            fixed(number * seconds / 60, 0),
        ]
        for number in (few, many, 65_536, 262_144)
    ]
    head = ["networks", f"forecast from the first {few:,} (two runs)", "found", "core-minutes"]
    return markdown_table(rows, head)


def show_certain_nads() -> None:
    """Display `table_of_certain_nads`."""
    show(table_of_certain_nads())


def _sizes() -> Facts:
    many = _stored()["rows"][1]["num_networks"]
    return {"size": "paper", "num_seeds": 2, "num_trainings": 2 * many}
