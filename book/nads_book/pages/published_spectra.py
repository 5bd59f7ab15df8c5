"""The authors' eigenvalues of Fig. 6 beside ours (a section of ``03_nads_and_generalization``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nads_book.figures.style import colours, legend, panel_row, styled
from nads_book.pages.outcomes import rows_of
from nads_book.report import LABELS, fixed, markdown_table

STUDY = "published-spectra"
SOURCES = {"ours": "ours", "published": "the authors'"}


def rows() -> dict[str, Any]:
    """Return the row of each architecture."""
    return {row["architecture"]: row for row in rows_of(STUDY)}


@styled
def plot_spectra() -> Figure:
    """Draw eigenvalues by NAD index, as shares of their sum."""
    labels = [LABELS[name] for name in rows()]
    figure, axes = panel_row(
        labels, 2.6, xlabel="NAD index", ylabel="share of the sum (%)", sharey=True
    )
    for axis, row in zip(axes, rows().values(), strict=True):
        for colour, (source, label) in zip(colours(), SOURCES.items(), strict=False):
            shares = np.array(row[source])
            kept = shares > 0
            where = 1 + np.array(row["key"])[kept]
            axis.plot(where, 100 * shares[kept], color=colour, linewidth=1.3, label=label)
        ticks = [0, 10, 100, 1000]
        axis.set(xscale="log", yscale="log", ylim=(1e-5, 100))
        axis.set(xticks=[tick + 1 for tick in ticks], xticklabels=ticks)
        axis.minorticks_off()
    legend(figure, axes, ncols=2)
    return figure


def table_spectra() -> str:
    """Return how many NADs hold half of the sum, and how far our directions are the authors'."""
    lines = []
    for name, row in rows().items():
        held = [f"{row[f'{source} hold'][0]}, {row[f'{source} hold'][1]}" for source in SOURCES]
        overlaps = row.get("overlaps") or {}
        found = [fixed(overlaps[k], 2) if k in overlaps else "–" for k in ("5", "10", "20", "50")]
        lines.append([LABELS[name], *held, *found])
    head = [f"NADs with half and nine tenths of the sum, {label}" for label in SOURCES.values()]
    return markdown_table(
        lines, ["", *head, *(f"overlap of the first {k}" for k in (5, 10, 20, 50))]
    )


LAB_TABLES: dict[str, Callable[[], str]] = {
    "Eigenvalues of Fig. 6 and ours, and overlaps of directions": table_spectra,
}
