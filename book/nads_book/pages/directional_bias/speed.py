"""How fast networks learn waves with little noise (Fig. 2)."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.analysis import frequency_maps, statistics
from nads_book.evidence import Evidence, evidence
from nads_book.pages.directional_bias.maps import Map, accuracies, sweep
from nads_book.studies.directions import LOSSES

NEVER = 1e9  # steps to a loss that is not reached: more than any training has


@cache
def steps(name: str, preset: str = "paper") -> dict[float, dict[tuple[int, int], float]]:
    """Return the steps to each loss by wave, medians over seeds, infinite where the loss is never
    reached.
    """
    counts = frequency_maps.by_frequency(sweep(name, preset, "fig2"), "iterations")
    return {loss: {k: found[i] for k, found in counts.items()} for i, loss in enumerate(LOSSES)}


def ranked(a: Map, b: Map) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of two maps where both have one, with `NEVER` for an infinity."""
    first, second = np.array(frequency_maps.common_pairs(a, b)).T
    return np.minimum(first, NEVER), np.minimum(second, NEVER)


def plot_speed() -> Figure:
    """Draw the steps until LeNet's training loss is small, for three thresholds."""
    panels = {f"loss {loss:g}": found for loss, found in steps("lenet").items()}
    return figures.plot_frequency_maps(
        {"": panels}, "steps", (30, 2_000), scale="log", over="never"
    )


def one_bias_twice() -> Evidence:
    """Decide whether waves that are slow with little noise are those that are not learned with
    much.
    """
    middle = steps("lenet")[0.1]
    same, learned = (
        [statistics.rank_correlation(*ranked(found, other)) for found in steps("lenet").values()]
        for other in (middle, accuracies("lenet"))
    )
    results = [sweep("lenet", figure="fig2"), sweep("lenet")]
    return evidence(min(same) > 0.9 and max(learned) < -0.7, max(learned), results=results)
