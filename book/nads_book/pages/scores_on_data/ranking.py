"""Do scores rank architectures on images, and what a change of the data costs them?"""

import numpy as np
from matplotlib.figure import Figure

from nads_book.evidence import Evidence, Facts, evidence
from nads_book.figures.style import panel_row, shade, styled
from nads_book.pages.scores_on_data.stored import (
    ARCHITECTURES,
    DATA,
    PRIMARY,
    WITHOUT_MLP,
    pairs,
    plan,
    primary,
)
from nads_book.studies import pair_statistics as rules
from nads_book.studies.pair_statistics import Estimate


@styled
def plot_pairs() -> Figure:
    """Draw the rank of each architecture by its score and by its accuracy, on unchanged images."""
    found = pairs()
    titles = [DATA[name].partition(",")[0] for name in found.data]
    figure, axes = panel_row(
        titles, 3.2, ylabel="rank by accuracy", xlabel="rank by score", sharey=True, grid=None
    )
    accuracies = found.means()[:, 0]  # as is: (data sets, architectures)
    before = found.predictors[PRIMARY][:, 0]
    count = len(found.architectures)
    ranks = [rules.ranks(-values) + (count + 1) / 2 for values in (before, accuracies)]
    for place, axis in enumerate(axes):
        axis.axline((1, 1), slope=1, color=shade(0.75), zorder=0)
        points = np.array([part[place] for part in ranks]).T
        axis.plot(*points.T, "o", markersize=5)
        for point, name, accuracy in zip(
            points, found.architectures, accuracies[place], strict=True
        ):
            label = f"{ARCHITECTURES[name].partition(',')[0]} {100 * accuracy:.0f} %"
            side, shift = ("right", (-6, 3)) if point[0] > count / 2 else ("left", (6, 3))
            box = {"facecolor": axis.get_facecolor(), "linewidth": 0, "pad": 1}
            where = {"xytext": shift, "textcoords": "offset points", "ha": side}
            axis.annotate(label, point, **where, fontsize=7, bbox=box)
        axis.set(xlim=(0.3, count + 0.7), ylim=(count + 0.7, 0.3))
        axis.set(xticks=range(1, count + 1), yticks=range(1, count + 1))
    return figure


def _pair_sizes(num_architectures: int) -> Facts:
    found = pairs()
    cells = len(found.data) * len(found.variants)
    return {"size": "narrow", "num_seeds": 2, "num_trainings": 2 * cells * num_architectures}


def _registered(found: Estimate) -> bool | None:
    """Return False where the registered rule falsifies, None where more than this estimate is
    needed.
    """
    return False if rules.verdict(plan()["criteria"]["enough"], found) is False else None


def pairs_best() -> Evidence:
    """Decide whether the primary score ranks architectures on given data (registered)."""
    found = primary("cells")
    return evidence(_registered(found), *found, **_pair_sizes(len(pairs().architectures)))


QUESTIONS = {
    "which architecture is best on given data?": ("cells", "parameters", ()),
    "which architecture loses most accuracy?": ("costs", "textbook", ()),
    "the same without the MLP": ("costs", "accuracy as is", WITHOUT_MLP),
    "which variant is hardest?": ("variants", "smoothness", ()),
    "all pairs": ("all", "logistic regression", ()),
}
