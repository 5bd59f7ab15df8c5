"""Do scores rank architectures on images, and what a change of the data costs them?"""

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis.statistics import student_mean
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.figures.style import panel_row, shade, styled
from nads_book.pages.scores_on_data.stored import (
    ARCHITECTURES,
    DATA,
    PRIMARY,
    WITHOUT_MLP,
    compared,
    pairs,
    plan,
    primary,
    scores,
)
from nads_book.report import estimate, fixed, markdown_table, percent
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


def pairs_loss() -> Evidence:
    """Decide whether the primary score ranks what a change of the data costs (registered, without
    the MLP).
    """
    found = primary("costs", WITHOUT_MLP)
    return evidence(_registered(found), *found, **_pair_sizes(len(pairs().architectures) - 1))


def _in_units(statistic: str, name: str, without_mlp: bool) -> np.ndarray:
    """Return a predictor's correlation in each unit of a statistic, (data sets, units of one)."""
    found = pairs()
    means = found.means()
    values = rules.prepared(found, name, statistic, means)
    used = ~(without_mlp & (np.array(found.architectures) == "mlp"))
    each = rules.correlations(statistic, values[..., used], means[..., used])
    return each.reshape(len(found.data), -1)


def lead_over_smoothness() -> dict[str, float]:
    """Return by how much the score's rank correlation over variants exceeds that of smoothness:
    data set -> mean.
    """
    score, smooth = (_in_units("variants", name, True) for name in (PRIMARY, "smoothness"))
    return dict(zip(pairs().data, (score - smooth).mean(1).tolist(), strict=True))


def pairs_smoothness() -> Evidence:
    """Decide whether smoothness ranks variants better than the score; the units are the three data
    sets.

    Architectures share the order of smoothness of a data set, so that they are no units of their
    own.
    """
    lead = student_mean([*lead_over_smoothness().values()])
    sizes = _pair_sizes(len(pairs().architectures) - 1)
    return evidence(lead[0] < 0, *lead, null=0, **sizes)


QUESTIONS = {
    "which architecture is best on given data?": ("cells", "parameters", ()),
    "which architecture loses most accuracy?": ("costs", "textbook", ()),
    "the same without the MLP": ("costs", "accuracy as is", WITHOUT_MLP),
    "which variant is hardest?": ("variants", "smoothness", ()),
    "all pairs": ("all", "logistic regression", ()),
}


def table_of_questions() -> str:
    """Return the mean rank correlation of the primary score and of a baseline, for each
    question.
    """
    rows = []
    for question, (statistic, baseline, without) in QUESTIONS.items():
        found = compared(without)
        values = [estimate(found[statistic, name]) for name in (PRIMARY, baseline)]
        units = "–"
        if statistic != "all":
            without_mlp = bool(without) or statistic == "variants"
            units = estimate(student_mean(_in_units(statistic, PRIMARY, without_mlp).ravel()))
        share = rules.exchanged_share(pairs(), PRIMARY, statistic, without)
        rows.append([question, values[0], units, percent(share), f"{baseline}: {values[1]}"])
    head = [
        "question",
        "score (registered bootstrap)",
        "score (Student over units)",
        "exchanges of architectures that do at least as well",
        "baseline",
    ]
    return markdown_table(rows, head)


def table_of_scores() -> str:
    """Return both registered correlations of all five scores."""
    rows = [
        [name, estimate(compared()["cells", name]), estimate(compared(WITHOUT_MLP)["costs", name])]
        for name in scores()["names"]
    ]
    return markdown_table(rows, ["score", "best architecture", "loss, without the MLP"])


def table_of_accuracies() -> str:
    """Return the mean test accuracy in percent of each pair of images, and its score."""
    found = pairs()
    accuracies, scores = 100 * found.means(), 100 * found.predictors[PRIMARY]
    rows = [
        [DATA[data], variant]
        + [f"{fixed(y)} ({fixed(x)})" for x, y in zip(scores[d, v], accuracies[d, v], strict=True)]
        for d, data in enumerate(found.data)
        for v, variant in enumerate(found.variants)
    ]
    return markdown_table(rows, ["data", "variant", *map(ARCHITECTURES.get, found.architectures)])


LAB_TABLES = {
    "Rank correlations of the primary score and of baselines": table_of_questions,
    "All five registered scores": table_of_scores,
    "Accuracies and scores of all pairs (%)": table_of_accuracies,
}
