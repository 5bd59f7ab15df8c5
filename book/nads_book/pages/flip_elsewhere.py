"""The page ``08_flip``, other photos: does the flip cost accuracy there, too?

``book/preregistered/replications.toml`` has what was expected, and the criteria.
"""

from functools import cache

import pandas as pd
from matplotlib.figure import Figure

from nads_book.claims import decides
from nads_book.experiments import load_study
from nads_book.experiments.evidence import evidence
from nads_book.figures.style import colours, dotted, legend, name_rows, panel_row, styled
from nads_book.pages.flip import MAPS
from nads_book.statistics import pooled_variance

FASHION, DEEP = ("fashion-mnist", "lenet"), ("imagenette", "resnet")
CELLS = {
    "Fashion-MNIST, LeNet": FASHION,
    "Imagenette, LeNet": ("imagenette", "lenet"),
    "Imagenette, ResNet-18": DEEP,
}


@cache
def elsewhere(data: str, network: str) -> pd.DataFrame:
    """Return the trainings of a network on a data set, with points."""
    rows = pd.DataFrame(load_study("replications.json")["rows"])
    rows = rows[(rows["data"] == data) & (rows["network"] == network)]
    return rows.assign(points=100 * rows["test_accuracy"])


@styled
def plot_elsewhere() -> Figure:
    """Draw the test accuracy under each map, a panel for each data set and network; logistic
    regression as a line.
    """
    figure, axes = panel_row(CELLS, 2.2, xlabel="test accuracy (%)", sharey=True, grid="x")
    for axis, (data, network) in zip(axes, CELLS.values(), strict=True):
        points = elsewhere(data, network).groupby("map")["points"]
        for place, name in enumerate(MAPS):
            values = points.get_group(name)
            axis.barh(place, values.mean(), color=colours()[0], alpha=0.35, height=0.6)
            axis.plot(values, [place] * len(values), "o", color=colours()[0])
        level = elsewhere(data, "logreg").groupby("map")["points"].mean()["as is"]
        axis.axvline(level, **dotted("logistic regression", 0.3))
        axis.set_xlim(0, 100)
    name_rows(axes[0], MAPS.values())
    legend(figure, axes)
    return figure


@decides("maps-resnet")
def _():
    """Decide whether all three maps cost the ResNet-18 more than 25 points, within four points of
    each other.
    """
    means = elsewhere(*DEEP).groupby("map")["points"].mean()[list(MAPS)]
    losses = means["as is"] - means.drop("as is")
    apart = losses.max() - losses.min()
    holds = losses.min() > 25 and apart < 4
    rows = elsewhere(*DEEP).dropna(subset="map")
    return evidence(holds, apart, rows=rows, size="narrow")


@decides("flip-fashion")
def _():
    """Decide by the estimates, as registered, whether the flip costs LeNet at least three points,
    and two more than random signs.
    """
    rows = elsewhere(*FASHION)
    condition = ["map", "index", "background", "written", "size"]
    variance = pooled_variance(each for _, each in rows.groupby(condition, dropna=False)["points"])
    upright, signs, flipped = (
        rows["points"][rows["map"] == name] for name in ("as is", "random signs", "flipped")
    )
    found = variance.difference(signs, flipped)
    holds = upright.mean() - flipped.mean() >= 3 and found[0] >= 2
    return evidence(holds, *found, rows=rows, size="narrow")
