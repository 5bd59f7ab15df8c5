"""Tasks that are not linear along NADs (a section of ``03_nads_and_generalization``)."""

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.analysis.statistics import grouped, mean_and_range, rank_correlation
from nads_book.evidence import Evidence, below
from nads_book.experiments import Row, matching
from nads_book.pages.scored_rows import rows_of
from nads_book.studies.nonlinear_tasks import NETWORKS, NONLINEAR, TASKS

STUDY = "nonlinear-tasks"
NUM_DRAWS = 2_000
LABELS = {"lenet": "LeNet", "cnn": "small CNN"}
TASK_LABELS = {
    "xor": "XOR",
    "ring": "ring",
    "product": "sign of a product",
    "linear": "linear (control)",
}


def each_seed(network: str, task: str) -> dict[int, list[float]]:
    """Return the test accuracies at each pair, one number per seed."""
    own = matching(rows_of(STUDY), network=network, task=task)
    return grouped(sorted((row["first"], row["test_accuracy"]) for row in own))


def plot_tasks() -> Figure:
    """Draw the accuracy in each task against the NADs that the label depends on; bars span the
    seeds.
    """
    panels = {
        label: {
            TASK_LABELS[task]: {
                first: mean_and_range(100 * np.array(values))
                for first, values in each_seed(network, task).items()
            }
            for task in TASKS
        }
        for network, label in LABELS.items()
    }
    label = "first of the two NADs"
    return figures.plot_by_index(panels, "accuracy (%)", xlabel=label, level=50)


def nonlinear_rows() -> list[Row]:
    """Return the trainings in the three tasks that are not linear."""
    return [row for row in rows_of(STUDY) if row["task"] in NONLINEAR]


def correlation(network: str, task: str) -> list[float]:
    """Return the rank correlation of NADs with what is learned, and its 95 % interval from drawing
    the trainings again.
    """
    accuracies = np.array([*each_seed(network, task).values()])  # (pairs, trainings)
    rng = np.random.default_rng(0)
    size = NUM_DRAWS, *accuracies.shape
    drawn = np.take_along_axis(accuracies[None], rng.integers(accuracies.shape[1], size=size), 2)
    places = np.arange(len(accuracies))
    found = [rank_correlation(means, places) for means in drawn.mean(2)]
    value = rank_correlation(accuracies.mean(1), places)
    return [value, *(float(end) for end in np.percentile(found, [2.5, 97.5]))]


def nonlinear_order() -> Evidence:
    """Decide whether accuracy falls along NADs for both networks in all three tasks, by the weakest
    of the six rank correlations.
    """
    found = [correlation(network, task) for network in NETWORKS for task in NONLINEAR]
    return below(max(found), size="laptop", rows=nonlinear_rows())
