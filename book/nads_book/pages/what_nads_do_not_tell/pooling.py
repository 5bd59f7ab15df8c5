"""Choosing the pooling for a data set: five small CNNs, six data sets."""

from functools import cache

from matplotlib.figure import Figure

from nads_book.evidence import Evidence, Facts, evidence, otherwise
from nads_book.experiments import load_study
from nads_book.figures import style
from nads_book.pages.scored_rows import registered, scored
from nads_book.studies.pooling import DATA, POOLINGS, Choices

UPRIGHT, FLIPPED = DATA.index("photos"), DATA.index("flipped photos")
NONE = [*POOLINGS].index("none")
TRAINED: Facts = {
    "size": "paper",
    "num_seeds": 2,
    "num_trainings": len(DATA) * len(POOLINGS) * 2,
}
ON_PHOTOS: Facts = {"size": "laptop", "num_seeds": 2}


@cache
def choices() -> Choices:
    """Return scores and accuracies, with those of the control."""
    content = load_study("pooling.json")
    return Choices.of(
        content["prediction"], content["rows"], load_study("pooling-control.json")["rows"]
    )


@style.styled
def plot_poolings() -> Figure:
    """Draw accuracy over the energy of the signal, for upright and for flipped photos."""
    panels = {
        "upright photos": (UPRIGHT, (1, 10, 100)),
        "flipped photos": (FLIPPED, (0.1, 0.2, 0.5)),
    }
    figure, axes = style.panel_row(
        panels,
        3.2,
        xlabel="energy of the classes, random networks",
        ylabel="test accuracy (%)",
        sharey=True,
    )
    for axis, (place, ticks) in zip(axes, panels.values(), strict=True):
        energies, accuracies = choices().scores[place], 100 * choices().accuracies[place]
        below = "average" if place == UPRIGHT else "blurred"  # where labels would overlap
        for name, *point in zip(POOLINGS, energies, accuracies, strict=True):
            colour, shift = style.colours()[name == "none"], (0, -13 if name == below else 6)
            axis.plot(*point, "o", color=colour, markersize=6)
            text = axis.annotate(name.replace("none", "no pooling"), point, shift, ha="center")
            text.set(anncoords="offset points", color=colour)
        axis.margins(x=0.25, y=0.15)
        style.log_ticks(axis, ticks)
    return figure


def energy_chooses_pooling() -> Evidence:
    """Decide by the registered rule whether energies were not shown to choose the pooling."""
    rank = scored("pooling").estimates["rank correlation"]["mean of all data sets"]
    return otherwise(registered("pooling", ["energies choose the pooling"], rank, **TRAINED))


def flipped_need_another() -> Evidence:
    """Decide whether no pooling is the best on flipped photos and the worst on upright ones."""
    upright, flipped = (choices().accuracies[place] for place in (UPRIGHT, FLIPPED))
    chosen = choices().scores[FLIPPED].argmax()
    holds = chosen == flipped.argmax() == upright.argmin() == NONE
    value = 100 * (upright.max() - upright[NONE])
    return evidence(holds, value, num_trainings=4 * len(POOLINGS), **ON_PHOTOS)
