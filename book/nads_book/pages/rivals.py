"""The section of ``03_nads_and_generalization`` on rival theories, and on tasks that no linear rule
solves.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import rankdata

from nads_book import figures, statistics
from nads_book.claims import decides
from nads_book.experiments.evidence import Evidence, below, otherwise
from nads_book.pages.scored_rows import registered, rows_of, scored, table_of
from nads_book.studies.nonlinear_tasks import NETWORKS, NONLINEAR

RIVALS, MEANS, TASK_STUDY = "rival-theory", "mean-kernels", "nonlinear-tasks"
THEORIES = {
    "energy": "energy of random networks",
    "gain": "energy with gain",
    "mean": "tangent kernels, mean of 20",
    "alignment": "tangent kernel, alignment",
    "kernel": "tangent kernel, regression",
    "frequency": "low frequency first",
}
CELLS = {
    "lenet, waves": "LeNet, waves",
    "lenet, designed": "LeNet, designed directions",
    "cnn, waves": "small CNN, waves",
    "cnn, designed": "small CNN, designed directions",
}
NUM_DRAWS = 2_000
TASK_LABELS = {
    "xor": "XOR",
    "ring": "ring",
    "product": "sign of a product",
    "linear": "linear (control)",
}


# A rival theory, lazy training


def plot_theories() -> Figure:
    """Draw the rank correlation of each theory with the accuracy after training."""
    found, means = scored(RIVALS).estimates, scored(MEANS).estimates
    panels: dict[str, Any] = {}
    for cell, label in CELLS.items():
        network, _, directions = label.partition(", ")
        own = {**found[cell], "mean": means[cell]["alignment"]}
        values = {text: own[name] for name, text in THEORIES.items()}
        panels.setdefault(network, {})[directions] = values
    return figures.plot_intervals(panels, ["rank correlation with accuracy"] * len(panels))


@decides("mean-kernel-orders-waves", study=MEANS)
def alignments_order(study: str) -> Evidence:
    """Decide whether alignments order LeNet's waves as well as energies by the registered rule, and
    show their lead.
    """
    found = scored(study).estimates["lenet, waves"]["alignment before energy"]
    return registered(study, ["waves, alignment not worse than energy"], found)


@decides("kernel-orders-waves")
def _():
    """Decide whether those of one network do not."""
    return otherwise(alignments_order(RIVALS))


# Tasks that are not linear along NADs


def each_seed(network: str, task: str) -> pd.DataFrame:
    """Return the test accuracies at each pair of NADs, (pairs, seeds)."""
    rows = table_of(TASK_STUDY)
    own = rows[(rows["network"] == network) & (rows["task"] == task)]
    return own.pivot_table("test_accuracy", "first", "seed")


def order_of(network: str, task: str) -> list[float]:
    """Return the rank correlation of NADs with what is learned, and its 95 % interval from drawing
    the trainings again.
    """
    reached = np.sort(each_seed(network, task))  # (pairs, trainings)
    rng, places = np.random.default_rng(0), np.arange(len(reached))
    chosen = rng.integers(reached.shape[1], size=(NUM_DRAWS, *reached.shape))
    drawn = np.take_along_axis(reached[None], chosen, 2).mean(2)
    ranks = np.corrcoef(rankdata(drawn, axis=1), places)[-1, :-1]
    value = statistics.rank_correlation(reached.mean(1), places)
    return [value, *np.percentile(ranks, [2.5, 97.5])]


@decides("nonlinear-order")
def _():
    """Decide whether accuracy falls along NADs for both networks in all three tasks, by the weakest
    of the six rank correlations.
    """
    found = [order_of(network, task) for network in NETWORKS for task in NONLINEAR]
    rows = [row for row in rows_of(TASK_STUDY) if row["task"] in NONLINEAR]
    return below(max(found), size="laptop", rows=rows)
