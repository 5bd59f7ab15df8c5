"""The page ``07_poison``: which NADs does a network use first? Numbers in photos tell the class.

The poison in parts, and which numbers are followed where all photos lack the carrier. What the
reader runs is in `poison_trial`, the paper's own experiment in `poison_full`.
"""

from collections.abc import Collection, Mapping
from functools import cache

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.claims import decides
from nads_book.experiments import Results, Row, formatting, table_of
from nads_book.experiments.evidence import (
    Estimate,
    Evidence,
    above,
    around,
    evidence,
    fitted_slope,
)
from nads_book.explorer import Changes
from nads_book.statistics import (
    pooled_variance,
    resampled_correlations,
    student_mean,
    with_interval,
)
from nads_book.studies import stored
from nads_core.data import ImageSet

BOTH, HOLE, NUMBER = "poison", "hole at zero", "number of .05"
AT_MEAN, DEVIATION = "hole at the mean", "number of one deviation"
PARTS = {"replaced": BOTH, "hole": HOLE, "hole at mean": AT_MEAN, "added": DEVIATION}
NAMES = {
    "lenet": "LeNet, CIFAR-10",
    "fashion": "LeNet, Fashion-MNIST",
    "resnet": "narrow ResNet-18, CIFAR-10",
}
LOST = "accuracy lost (points)"
LAST_EARLY = 60  # last NAD whose number of one deviation costs LeNet accuracy: read off the results
LATE = 60  # first carrier at which no LeNet follows a number of 0.5 after ten epochs
COSTLY = 1.5  # points
STRENGTH = 0.05  # the paper's
SPAN = ["mean", "min", "max"]  # of single networks


# The poison in parts


@cache
def injected(epochs: int = 10) -> Results:
    """Return what LeNets do with holes and numbers at twelve carriers, or fewer after more than ten
    epochs.
    """
    return stored("notes-lenet", "laptop" if epochs == 10 else f"epochs{epochs}")


@cache
def narrow() -> Results:
    """Return what a narrow ResNet-18 does with holes and numbers."""
    return stored("notes-resnet18", "narrow")


@cache
def trained(case: str = "lenet") -> pd.DataFrame:
    """Return the trainings on clean photos and on parts of the poison, with the points that each
    loses.
    """
    if case == "fashion":
        rows = table_of("replications")
        rows = rows[(rows["data"] == "fashion-mnist") & (rows["network"] == "lenet")]
        rows = rows[(rows["map"] == "as is") | (rows["background"] == "kept")]
    else:
        rows = pd.DataFrame((injected() if case == "lenet" else narrow()).rows)
        rows = rows[(rows["images"] == "photos") & (rows["background"] == "kept")]
    more = table_of("poison-parts")
    # Without columns that are empty: pandas 2 warns of them
    sets = [one.dropna(axis=1, how="all") for one in (rows, more[more["case"] == case])]
    found = pd.concat(sets, ignore_index=True)
    small = (found["written"] == "added") & (found["size"] == STRENGTH)
    part = found["written"].map(PARTS).fillna("clean").mask(small, NUMBER)
    clean = found["test_accuracy"][part == "clean"].mean()
    return found.assign(part=part, lost=100 * (clean - found["test_accuracy"]))


def trained_on(*parts: str, case: str = "lenet") -> pd.DataFrame:
    """Return the trainings on parts of the poison, and on clean photos."""
    rows = trained(case)
    return rows[rows["part"].isin(["clean", *parts])]


def sweep(part: str, case: str = "lenet") -> pd.DataFrame:
    """Return means over seeds of the points lost by a part, with 95 % intervals, by NAD index."""
    rows = trained(case)
    groups = rows[rows["part"] == part].groupby("index")["lost"]
    return pd.DataFrame({int(index): student_mean(values) for index, values in groups}).T


def plot_number(yours: Mapping[int, float] | None = None, images: ImageSet | None = None) -> Figure:
    """Draw the points lost by a number of one deviation, with nothing removed, against its NAD.

    Args:
        yours: points that a number costs the reader's network, by its NAD.
        images: images of the reader's training.
    """
    curves = {name: sweep(DEVIATION, case) for case, name in NAMES.items()}
    own = {}
    if yours and images:
        label = f"yours: {formatting.badge(images)}"
        own = {label: pd.Series(yours)}
    return figures.plot_by_index(curves, LOST, own)


def plot_parts(case: str = "lenet") -> Figure:
    """Draw the points that the poison, both holes and the number of the poison's size cost,
    as far as they were trained.

    Args:
        case: "lenet", "fashion" or "resnet", see `NAMES`.
    """
    curves = {part: sweep(part, case) for part in (BOTH, HOLE, AT_MEAN, NUMBER)}
    drawn = {part: lost for part, lost in curves.items() if len(lost)}
    return figures.plot_by_index(drawn, LOST, badge=NAMES[case])


def widget() -> Changes:
    """Return the figure in which the reader switches hole and number on and off."""
    settings, names = injected().settings, {BOTH: "both", HOLE: "hole", NUMBER: "number"}
    wide = trained().pivot_table("test_accuracy", "index", "part")[list(names)]
    clean = trained_on()
    found = wide.rename(columns=names).assign(clean=clean["test_accuracy"].mean())
    caption = (
        f"Accuracy of LeNets on unchanged photos ({formatting.badge(injected())}), after training "
        f"on photos changed like this: {settings['num_train']:,} photos, "
        f"{settings['recipe']['epochs']} epochs, mean of {clean['seed'].nunique()} trainings."
    )
    entry: Row = {"key": "lenet", "label": "LeNet", "caption": caption}
    entry |= {"carriers": [*map(int, found.index)], "accuracies": found.to_dict("records")}
    return Changes("note", [entry])


@decides("deviation-number")
def _():
    """Decide whether a number of one deviation costs accuracy early, and hardly any late."""
    lost = sweep(DEVIATION)
    early = min(lost[lost.index <= LAST_EARLY].itertuples(index=False))
    late = lost[0][lost.index > LAST_EARLY].max()
    rows = trained_on(DEVIATION)
    return evidence(early[1] > 0 and late < 3, *early, results=[injected()], rows=rows)


@decides("hole-costs-as-much")
def _():
    """Decide whether poison and hole at zero cost the same where either costs accuracy, by the
    largest difference of trainings with one seed.
    """
    rows = trained_on(BOTH, HOLE)
    costs = rows.pivot_table("lost", "index", ["part", "seed"])
    costly = np.maximum(sweep(BOTH)[0], sweep(HOLE)[0]) > COSTLY
    apart = (costs[BOTH] - costs[HOLE])[costly].to_numpy()  # (NADs, seeds)
    half = pooled_variance(apart).half_width(apart.shape[1])
    found = around(max(apart.mean(1), key=abs), half)
    holds = costly.sum() == 7 and max(map(abs, found)) < COSTLY
    return evidence(holds, *found, results=[injected()], rows=rows)


def relative_cost(part: str, case: str = "lenet") -> Estimate:
    """Return what a part costs over all NADs, relative to the poison, with Student's interval over
    seeds.
    """
    sums = trained_on(BOTH, part, case=case).pivot_table("lost", "seed", "part", "sum")
    return student_mean(sums[part] / sums[BOTH])


@decides("removal-is-half")
def _():
    """Decide whether a hole at the mean costs a third to two thirds of the poison."""
    share, rows = relative_cost(AT_MEAN), trained_on(BOTH, AT_MEAN)
    return evidence(1 / 3 < share[1] and share[2] < 2 / 3, *share, results=[injected()], rows=rows)


@decides("number-size")
def _():
    """Decide whether in no case NADs were shown to order the costs of a number better than its
    size does, by intervals that draw NADs again.
    """
    leads = []
    for case in NAMES:
        rows = trained(case)
        cost = rows[rows["part"] == DEVIATION].groupby("index")[["lost", "deviation"]].mean()
        lost, size = cost.to_numpy().T
        orders = resampled_correlations(-cost.index, lost) - resampled_correlations(size, lost)
        leads.append(with_interval(orders))
    rows = pd.concat([trained_on(DEVIATION, case=case) for case in NAMES])
    return evidence(
        max(low for _, low, _ in leads) <= 0, *max(leads), results=[injected()], rows=rows
    )


@decides("number-alone")
def _():
    """Decide whether a number of the poison's size costs less than three points."""
    loss = sweep(NUMBER)[0].max()
    return evidence(loss < 3, loss, results=[injected()], rows=trained_on(NUMBER))


@decides("hole-fashion")
def _():
    """Decide as registered whether a hole costs .8 to 1.2 times what the poison costs, and the
    number of .05 less than two points.
    """
    poison, number = (sweep(part, "fashion")[0].max() for part in (BOTH, NUMBER))
    ratio = relative_cost(HOLE, "fashion")
    holds = poison >= 5 and 0.8 <= ratio[0] <= 1.2 and number < 2
    rows = trained_on(BOTH, HOLE, NUMBER, case="fashion")
    return evidence(holds, *ratio, rows=rows, size="narrow")


# Which numbers are followed where all photos lack the carrier


def emptied(results: Results) -> pd.DataFrame:
    """Return the trainings in which all photos lack the carrier, with the share of photos that
    follow a wrong number, above that without numbers.
    """
    rows = results.table
    rows = rows[(rows["images"] == "photos") & (rows["background"] == "emptied")]
    shares = [pd.json_normalize(rows[key])["class"] for key in ("followed", "unprompted")]
    follow = (shares[0] - shares[1]).to_numpy()
    return rows.assign(follow=follow, epochs=results.settings["recipe"]["epochs"])


@cache
def offered() -> pd.DataFrame:
    """Return these trainings of LeNets after 10, 20, 50 and 100 epochs."""
    return pd.concat([emptied(injected(epochs)) for epochs in (10, 20, 50, 100)])


def followed(size: float) -> pd.DataFrame:
    """Return the trainings with a number of some size, at carriers that were tried after each
    number of epochs.
    """
    rows = offered()
    shared = rows["index"][rows["epochs"] == 100]
    return rows[(rows["size"] == size) & rows["index"].isin(shared)]


def plot_following() -> Figure:
    """Draw the photos that follow a number of 0.5 after each training; bars span the networks."""
    rows = followed(0.5)
    shares = (100 * rows["follow"]).groupby([rows["epochs"], rows["index"]])
    by_epochs = shares.agg(SPAN).groupby(level="epochs")
    curves = {f"{epochs} epochs": each.droplevel("epochs") for epochs, each in by_epochs}
    badge = f"{formatting.badge(injected())}, {injected().settings['num_train']:,} photos"
    return figures.plot_by_index(curves, "photos that follow 0.5 (%)", badge=badge)


def _of_all_epochs(holds: object, value: float, sizes: Collection[float]) -> Evidence:
    """Return evidence from trainings without a number, and with numbers of some sizes."""
    rows = offered()
    return evidence(holds, value, rows=rows[rows["size"].isna() | rows["size"].isin(sizes)])


@decides("small-unread")
def _():
    """Decide whether a number of the poison's size is followed nowhere."""
    rows = offered()
    most = rows["follow"][(rows["written"] == "added") & (rows["size"] == STRENGTH)].max()
    return _of_all_epochs(most < 0.01, 100 * most, [STRENGTH])


@decides("border-depends")
def _():
    """Decide whether what is followed depends on epochs and size of the number, too."""
    rows = pd.concat([followed(size) for size in (0.2, 0.5)])
    late = rows[rows["index"] >= LATE]
    most = late.pivot_table("follow", "epochs", "size", "max")
    holds = most[0.5][10] < 0.5 < most[0.5][100] and most[0.2].max() < 0.5
    count = (late["follow"][(late["epochs"] == 100) & (late["size"] == 0.5)] > 0.5).sum()
    return _of_all_epochs(holds, count, [0.2, 0.5])


@decides("errata-poison-order")
def _():
    """Decide whether following rises with energy, so that the paper's sentence holds as a trend.

    Each of twelve carriers, emptied, was offered the same numbers by as many networks: points per
    standard deviation of the carrier's log energy.
    """
    rows, values = emptied(injected()), injected().experiment().nads.eigenvalues
    groups = rows[rows["size"].notna()].groupby("index")["follow"]
    energy = np.log10([float(values[i : i + 2].mean()) for i in map(int, groups.groups)])
    slope = fitted_slope((energy - energy.mean()) / energy.std(), 100 * groups.mean().to_numpy())
    return above(slope, results=[injected()])
