"""Which numbers are followed where all photos lack the carrier, and after how many epochs."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures, report
from nads_book.analysis.statistics import mean_and_range, means
from nads_book.evidence import Estimate, Evidence, evidence, fitted_slope
from nads_book.experiments import Results, Row
from nads_book.pages.poison.parts import DEVIATION, deviations, injected, mean_lost
from nads_book.report import fixed
from nads_book.studies import injection_responses as responses
from nads_book.studies import stored
from nads_book.studies.injection import INJECTED_SIZES
from nads_book.studies.injection_responses import Condition

LATE = 60  # first carrier at which no LeNet follows a number of 0.5 after ten epochs


def added(size: float) -> Condition:
    """Return the condition of a number that is added where all photos lack the carrier."""
    return "photos", "emptied", "added", size


def offered(results: Results, *sizes: float) -> list[Row]:
    """Return the trainings in which all photos lack the carrier, without a number or with one of
    some sizes.
    """
    return [
        row
        for row in results.rows
        if (row["images"], row["background"]) == ("photos", "emptied")
        and row["size"] in (None, *sizes)
    ]


@cache
def by_epochs() -> dict[int, Results]:
    """Return the results for each number of epochs, in ascending order.

    Raises:
        FileNotFoundError: if there are none but for one number of epochs.
    """
    found = responses.by_epochs("notes-lenet")
    if len(found) < 2:
        raise FileNotFoundError("book/results/notes-lenet.epochs50.json and others are missing")
    return found


@cache
def follow_shares(size: float, epochs: int) -> dict[int, list[float]]:
    """Return the share of photos that follow a number, by carrier and seed."""
    found = responses.follow_shares(by_epochs()[epochs], added(size))
    shared = set.intersection(
        *(
            set(responses.follow_shares(results, added(one)))
            for results in by_epochs().values()
            for one in INJECTED_SIZES[1:]
        )
    )
    return {index: found[index] for index in sorted(shared)}


def late_shares(size: float, epochs: int) -> list[float]:
    """Return the shares that follow at late carriers."""
    shares = follow_shares(size, epochs)
    return [value for index, values in shares.items() if index >= LATE for value in values]


def followers(epochs: int) -> dict[int, int]:
    """Return how many LeNets follow a number of 0.5, by more than half of the photos, at each late
    carrier.
    """
    shares = follow_shares(0.5, epochs)
    return {
        index: sum(value > 0.5 for value in values)
        for index, values in shares.items()
        if index >= LATE
    }


def plot_following() -> Figure:
    """Draw the photos that follow a number of 0.5 after each training; bars span the seeds."""
    curves = {
        f"{epochs} epochs": {
            index: mean_and_range(100 * np.array(values))
            for index, values in follow_shares(0.5, epochs).items()
        }
        for epochs in by_epochs()
    }
    label = "photos that follow a number of 0.5 (%)"
    return figures.plot_by_index({"": curves}, label, badge=report.badge(injected()))


# Claims


def small_unread() -> Evidence:
    """Decide whether a number of the poison's size is followed nowhere."""
    every = list(by_epochs().values())
    most = max(
        value
        for results in every
        for values in responses.follow_shares(results, added(0.05)).values()
        for value in values
    )
    rows = [row for results in every for row in offered(results, 0.05)]
    return evidence(most < 0.01, 100 * most, results=every, rows=rows)


def border_depends() -> Evidence:
    """Decide whether what is followed depends on epochs and size of the number, too."""
    shortest, longest = min(by_epochs()), max(by_epochs())
    counted = followers(longest)
    last = max(index for index, number in counted.items() if number)
    between = [index for index, number in counted.items() if LATE < index < last and not number]
    smaller = max(value for epochs in by_epochs() for value in late_shares(0.2, epochs))
    after = max(late_shares(0.5, shortest)) < 0.5 < max(late_shares(0.5, longest))
    results = [*by_epochs().values()]
    rows = [row for one in results for row in offered(one, 0.2, 0.5)]
    holds = bool(between) and after and smaller < 0.5
    return evidence(holds, sum(counted.values()), results=results, rows=rows)


# What following depends on


def energies() -> dict[int, float]:
    """Return the energy of each carrier, relative to that of the first NAD."""
    values = injected().experiment().nads.eigenvalues
    indices = deviations()
    return {index: float(values[index : index + 2].mean() / values[0]) for index in sorted(indices)}


@cache
def slope() -> Estimate:
    """Return how many more photos follow a number per deviation of the log energy of its carrier,
    in points.

    Each of twelve carriers, emptied, was offered the same numbers by as many networks. The interval
    is Student's.
    """
    shares = means(
        (index, value)
        for size in INJECTED_SIZES
        for index, values in responses.follow_shares(injected(), added(size)).items()
        for value in values
    )
    energy = np.log10([energies()[index] for index in shares])
    percents = 100 * np.array(list(shares.values()))
    return fitted_slope((energy - energy.mean()) / energy.std(), percents)


# A narrow ResNet-18


@cache
def narrow() -> Results:
    """Return what a narrow ResNet-18 does with holes and numbers."""
    return stored("notes-resnet18", "narrow")


def followed_by_resnet() -> dict[int, float]:
    """Return the mean share of photos that follow a number of 0.5 in the narrow ResNet-18."""
    shares = responses.follow_shares(narrow(), added(0.5))
    return {index: float(np.mean(values)) for index, values in shares.items()}


# The paper's sentence on the order of NADs


def errata_poison_order() -> Evidence:
    """Decide whether following rises with energy, so that the paper's sentence holds as a trend."""
    one, deep = slope(), {index: 100 * share for index, share in followed_by_resnet().items()}
    first = min(deep)
    later = max(share for index, share in deep.items() if index != first)
    number = mean_lost(DEVIATION)
    early = [lost for index, lost in number.items() if index <= LATE]
    late = [lost for index, lost in number.items() if index > LATE]
    text = (
        f"A number of one deviation, with nothing removed, costs LeNet {min(early):.0f} to "
        f"{max(early):.0f} points up to NAD {LATE}, and at most {max(late):.1f} from NAD 100 on. "
        f"Where all photos lack the carrier, following a number rises by {one[0]:.0f} points "
        f"({one[1]:.0f} to {one[2]:.0f}) per standard deviation of the carrier’s log energy. "
        f"A narrow ResNet-18 follows a number of 0.5 by {fixed(deep[first], 0)} points at "
        f"NAD {first}, and by {fixed(later, 0)} at most at later ones."
    )
    return evidence(one[1] > 0, sentence=text, results=[injected()])
