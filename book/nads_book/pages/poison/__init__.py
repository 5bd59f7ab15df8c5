"""The page ``07_poison``: which NADs does a network use first? Numbers in photos tell the class.

`trial` is what the reader runs; `parts` takes the poison apart; `numbers` asks which numbers are
followed where all photos lack the carrier; `curve` has the paper's own experiment.
"""

from __future__ import annotations

from collections.abc import Callable

from nads_book import report
from nads_book.evidence import Evidence
from nads_book.pages import small_components
from nads_book.pages.poison import curve, numbers, parts
from nads_book.pages.poison.curve import (
    plot_accuracy_by_carrier,
    plot_use,
    read_classes,
    show_sentences_of_paper,
)
from nads_book.pages.poison.numbers import plot_following
from nads_book.pages.poison.parts import plot_number, plot_own_number, plot_parts, widget
from nads_book.pages.poison.trial import Trial
from nads_book.pages.small_components import plot_groups
from nads_book.report import LABELS, markdown_table

__all__ = [
    "CLAIMS",
    "LAB_TABLES",
    "Trial",
    "plot_accuracy_by_carrier",
    "plot_following",
    "plot_groups",
    "plot_number",
    "plot_own_number",
    "plot_parts",
    "plot_use",
    "read_classes",
    "show_sentences_of_paper",
    "widget",
]


def table_of_trainings() -> str:
    """Return what was trained, and where."""
    trained = {f"poisoned {LABELS[name]}": found for name, found in curve.poisoned().items()}
    trained |= {
        f"LeNet with holes or numbers, {epochs} epochs": found
        for epochs, found in numbers.by_epochs().items()
    }
    trained["narrow ResNet-18 with holes or numbers"] = numbers.narrow()
    rows = [
        [label, report.size_of_run(found), report.place_of_run(found)]
        for label, found in trained.items()
    ]
    return markdown_table(rows, ["networks", "what was trained", "where"])


CLAIMS: dict[str, Callable[[], Evidence]] = {
    **parts.CLAIMS,
    **numbers.CLAIMS,
    **curve.CLAIMS,
    **small_components.CLAIMS,
}
LAB_TABLES: dict[str, Callable[[], str]] = {
    **parts.LAB_TABLES,
    **curve.LAB_TABLES,
    **numbers.LAB_TABLES,
    **small_components.LAB_TABLES,
    "What was trained, and where": table_of_trainings,
}
