"""Which numbers are followed where all photos lack the carrier, and after how many epochs."""

from functools import cache, partial

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures, report
from nads_book.analysis.statistics import mean_and_range, means, rank_correlation
from nads_book.evidence import Estimate, Evidence, evidence, exact_share, fitted_slope
from nads_book.experiments import Results, Row, matching
from nads_book.pages.poison.parts import injected, mean_lost
from nads_book.report import fixed, markdown_table
from nads_book.studies import injection_responses as responses
from nads_book.studies import poison_parts, stored
from nads_book.studies import toy_shortcuts as toys
from nads_book.studies.injection import INJECTED_SIZES
from nads_book.studies.injection_responses import Condition

LATE = 60  # first carrier at which no LeNet follows a number of 0.5 after ten epochs
PAPERS_EPOCHS = 50
# LeNets of three that follow a number of 0.5 at late carriers, as it was found and registered.
FOLLOWERS = {
    50: {60: 3, 100: 1, 200: 0, 300: 1, 1000: 0},
    100: {60: 3, 100: 3, 200: 0, 300: 1, 1000: 0},
}


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


def late_unread_10() -> Evidence:
    """Decide whether a number of 0.5 is followed up to NAD 30 only, after ten epochs."""
    each = responses.follow_shares(injected(), added(0.5))
    ignored = [index for index, values in each.items() if np.mean(values) < 0.05]
    read = [index for index in each if index not in ignored]
    heard = min(value for index in read for value in each[index])
    unheard = max(value for index in ignored for value in each[index])
    holds = heard > 0.5 > unheard and (max(read), min(ignored)) == (30, LATE)
    return evidence(holds, 100 * unheard, results=[injected()], rows=offered(injected(), 0.5))


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


def read_after(epochs: int) -> Evidence:
    """Decide at which late carriers how many LeNets follow a number of 0.5."""
    share = exact_share(np.array(late_shares(0.5, epochs)) > 0.5)
    holds = followers(epochs) == FOLLOWERS[epochs]
    results = by_epochs()[epochs]
    return evidence(holds, *share, results=[results], rows=offered(results, 0.5))


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


def seeds_decide() -> Evidence:
    """Decide whether one LeNet follows the number and another does not, at some late carrier."""
    shares = follow_shares(0.5, PAPERS_EPOCHS)
    holds = any(0 < count < 3 for count in followers(PAPERS_EPOCHS).values())
    widest = max(max(values) - min(values) for values in shares.values())
    results = by_epochs()[PAPERS_EPOCHS]
    return evidence(holds, 100 * widest, results=[results], rows=offered(results, 0.5))


def hole_cost_epochs() -> Evidence:
    """Decide whether what a hole costs depends little on the epochs."""
    both, costs = [by_epochs()[min(by_epochs())], by_epochs()[PAPERS_EPOCHS]], []
    for results in both:
        hole = responses.clean_accuracies(results, ("photos", "kept", "hole", None))
        rows = matching(results.rows, index=None, images="photos")
        clean = np.mean([row["test_accuracy"] for row in rows])
        costs.append({index: clean - np.mean(values) for index, values in hole.items()})
    moved = max(
        abs(costs[0][index] - costs[1][index]) for index in follow_shares(0.5, PAPERS_EPOCHS)
    )
    return evidence(moved < 0.05, 100 * moved, results=both)


def border_limit() -> Evidence:
    """Leave open where the border lies after more epochs than any LeNet was trained for."""
    return evidence(None, results=[by_epochs()[max(by_epochs())]])


# What following depends on


def energies() -> dict[int, float]:
    """Return the energy of each carrier, relative to that of the first NAD."""
    values = injected().experiment().nads.eigenvalues
    indices = poison_parts.deviations("lenet")
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


def follow_with_energy() -> Evidence:
    """Decide whether numbers along carriers with more energy are followed more."""
    rows = offered(injected(), *INJECTED_SIZES)
    return evidence(slope()[0] > 0, *slope(), null=0, results=[injected()], rows=rows)


def energy_or_depth() -> Evidence:
    """Decide whether energy and the photos' deviation are hard to distinguish."""
    energy, sizes = energies(), poison_parts.deviations("lenet")
    both = [np.array([one[index] for index in energy]) for one in (energy, sizes)]
    joint = rank_correlation(both[0], both[1])
    return evidence(joint > 0.8, joint, size="laptop")


# A narrow ResNet-18


@cache
def narrow() -> Results:
    """Return what a narrow ResNet-18 does with holes and numbers."""
    return stored("notes-resnet18", "narrow")


def followed_by_resnet() -> dict[int, float]:
    """Return the mean share of photos that follow a number of 0.5 in the narrow ResNet-18."""
    shares = responses.follow_shares(narrow(), added(0.5))
    return {index: float(np.mean(values)) for index, values in shares.items()}


def roughness() -> list[float]:
    """Return the correlation of neighbouring pixels of the carriers of the narrow ResNet-18."""
    basis = narrow().experiment().nads.basis
    places = [place for index in followed_by_resnet() for place in (index, index + 1)]
    return [toys.neighbouring_correlation(basis[:, place]) for place in places]


def equal_roughness() -> Evidence:
    """Decide whether the narrow ResNet-18 follows at the first carrier only."""
    first, *later = (100 * share for share in followed_by_resnet().values())
    rough = roughness()
    holds = max(rough) - min(rough) < 0.15 and first > 50 and max(later) < 5
    return evidence(holds, max(later), results=[narrow()])


# The paper's sentence on the order of NADs


def errata_poison_order() -> Evidence:
    """Decide whether following rises with energy, so that the paper's sentence holds as a trend."""
    one, deep = slope(), {index: 100 * share for index, share in followed_by_resnet().items()}
    first = min(deep)
    later = max(share for index, share in deep.items() if index != first)
    number = mean_lost(poison_parts.DEVIATION)
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


# Tables of the lab notes


def table_of_following(size: float) -> str:
    """Return the share that follows a number after each training, one value per seed."""
    every = {epochs: follow_shares(size, epochs) for epochs in by_epochs()}
    rows = [
        [index]
        + [", ".join(fixed(100 * value, 0) for value in shares[index]) for shares in every.values()]
        for index in next(iter(every.values()))
    ]
    return markdown_table(rows, ["NAD", *(f"{epochs} epochs" for epochs in every)])


CLAIMS = {
    "late-read-50": lambda: read_after(50),
    "late-read-100": lambda: read_after(100),
}
LAB_TABLES = {
    **{
        f"Test photos that follow a wrong number of {size:g}, carriers at their mean (%)": partial(
            table_of_following, size
        )
        for size in (0.5, 0.2)
    },
}
