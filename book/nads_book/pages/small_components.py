"""Photos with small components along the first NADs (a section of ``07_poison``)."""

import numpy as np
from matplotlib.figure import Figure

from nads_book.evidence import Evidence, otherwise
from nads_book.figures.style import legend, panel_row, styled
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.studies.responses import NUM_GROUPS, shares

STUDY = "small-components"
KINDS = {"nads": "along NADs 0 and 1", "random": "as much along random directions"}
CHANGES = {"flip": "flipped", "remove": "removed"}


@styled
def plot_groups() -> Figure:
    """Draw the share of predictions that change, by the size of the components."""
    figure, axes = panel_row(
        [f"both components {label}" for label in CHANGES.values()],
        2.8,
        xlabel="photos, by the size of their components (tenths)",
        ylabel="predictions that change (%)",
        sharey=True,
    )
    for axis, change in zip(axes, CHANGES, strict=True):
        where = np.arange(1, NUM_GROUPS + 1)
        for kind, label in KINDS.items():
            table = 100 * shares(rows_of(STUDY), kind, change)
            axis.plot(where, table.mean(0), "o-", label=label)
            axis.fill_between(where, table.min(0), table.max(0), alpha=0.2, linewidth=0)
        axis.set(xticks=[1, 4, 7, 10])
    legend(figure, axes, ncols=2)
    return figure


def share_that_changes(criterion: str, group: int) -> Evidence:
    """Decide whether a registered criterion failed, and show the share in a group when both are
    flipped.
    """
    found = scored(STUDY).estimates["nads, flip"][f"group {group}"]
    estimate = [100 * end for end in found]
    return otherwise(registered(STUDY, [criterion], estimate, rows_of(STUDY)))


CLAIMS = {
    "small-components": lambda: share_that_changes("few change where components are small", 0),
}
