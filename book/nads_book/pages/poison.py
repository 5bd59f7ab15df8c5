"""The page ``07_poison``: which NADs does a network use first? Numbers in photos tell the class.

The poison in parts; which numbers are followed where all photos lack the carrier; the paper's own
experiment; predictions that change with the components of clean photos. What the reader runs is in
`poison_trial`.
"""

from collections.abc import Iterable
from functools import cache

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

import nads_core as nc
from nads_book import figures, published, report
from nads_book.claims import decides
from nads_book.evidence import Estimate, Evidence, above, around, evidence, fitted_slope, otherwise
from nads_book.experiments import Results, Row, load_study
from nads_book.explorer import Changes
from nads_book.figures.poison import index_axis
from nads_book.figures.style import (
    bars,
    colours,
    dotted,
    legend,
    panel_row,
    shade,
    show_badge,
    styled,
    subplots,
)
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.report import LABELS, fixed
from nads_book.statistics import (
    accuracy_interval,
    mean_and_range,
    pooled_variance,
    rank_correlation,
    student_mean,
)
from nads_book.studies import load_results, stored
from nads_book.studies import toy_shortcuts as toys
from nads_book.studies.responses import NUM_GROUPS, shares
from nads_core.data import ImageSet
from nads_core.data.poisoning import carriers
from nads_core.runtime.arguments import require_choice

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
ENOUGH = 100  # changed predictions of the clean network, from which on a ratio counts
STRENGTH = 0.05  # the paper's
SMALL = 8  # grey levels of 255, within which attacks call a change small
# Two samples of one class and two of another, in units of the strength, each with its own number.
COUNTER_EXAMPLE = torch.tensor([[1.0, -2.0], [1.0, 4.0], [-2.0, 1.0], [4.0, 1.0]])
COMPONENTS = "small-components"
KINDS = {"nads": "along NADs 0 and 1", "random": "as much along random directions"}
CHANGES = {"flip": "flipped", "remove": "removed"}


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
        rows = pd.DataFrame(load_study("replications.json")["rows"])
        rows = rows[(rows["data"] == "fashion-mnist") & (rows["network"] == "lenet")]
        clean = rows["map"] == "as is"
    else:
        rows = pd.DataFrame((injected() if case == "lenet" else narrow()).rows)
        rows = rows[(rows["images"] == "photos") & (rows["background"] == "kept")]
        clean = rows["index"].isna()
    parts = rows[rows["index"].notna() & (rows["background"] == "kept")]
    more = pd.DataFrame(load_study("poison-parts.json")["rows"])
    sets = [rows[clean], parts, more[more["case"] == case]]
    # Without columns that are empty: pandas 2 warns of them
    found = pd.concat([one.dropna(axis=1, how="all") for one in sets], ignore_index=True)
    small = (found["written"] == "added") & (found["size"] == STRENGTH)
    part = found["written"].map(PARTS).fillna("clean").mask(small, NUMBER)
    lost = 100 * (rows["test_accuracy"][clean].mean() - found["test_accuracy"])
    return found.assign(part=part, lost=lost)


def trained_on(*parts: str, case: str = "lenet") -> pd.DataFrame:
    """Return the trainings on parts of the poison, and on clean photos."""
    rows = trained(case)
    return rows[rows["part"].isin(["clean", *parts])]


def mean_lost(part: str, case: str = "lenet") -> pd.Series:
    """Return the mean of the points lost by a part, by NAD index."""
    rows = trained(case)
    return rows[rows["part"] == part].groupby("index")["lost"].mean()


def sweep(part: str, case: str = "lenet") -> dict[int, Estimate]:
    """Return means over seeds of the points lost by a part, with 95 % intervals, by NAD index.

    The narrow ResNet-18 was trained once with each number of one deviation: its seed variance is
    that of all its trainings.
    """
    rows = trained(case)
    groups = rows[rows["part"] == part].groupby("index")["lost"]
    if (part, case) != (DEVIATION, "resnet"):
        return {int(index): student_mean(values) for index, values in groups}
    cells = rows.groupby(["part", "index"], dropna=False)["lost"]
    variance, clean = (
        pooled_variance(values for _, values in cells),
        (rows["part"] == "clean").sum(),
    )
    return {
        int(index): variance.around(values.mean(), len(values), clean) for index, values in groups
    }


def plot_number() -> Figure:
    """Draw the points lost by a number of one deviation, with nothing removed, against its NAD."""
    curves = {name: sweep(DEVIATION, case) for case, name in NAMES.items()}
    return figures.plot_by_index({"": curves}, LOST)


def plot_own_number(index: int, lost: float, images: ImageSet) -> Figure:
    """Draw the points that a number costs the reader's network beside the stored ones.

    Args:
        index: NAD of the reader's number.
        lost: points that it costs.
        images: images of the reader's training.
    """
    curves = {f"stored: {NAMES['lenet']}, one deviation": sweep(DEVIATION)}
    yours = f"yours: {report.badge(images)}"
    return figures.plot_by_index({"": curves}, LOST, {yours: {index: [lost]}})


def plot_parts(case: str = "lenet") -> Figure:
    """Draw the points that the poison, both holes and the number of the poison's size cost,
    as far as they were trained.

    Args:
        case: "lenet", "fashion" or "resnet", see `NAMES`.
    """
    require_choice("case", case, NAMES)
    curves = {part: sweep(part, case) for part in (BOTH, HOLE, AT_MEAN, NUMBER)}
    drawn = {part: lost for part, lost in curves.items() if lost}
    return figures.plot_by_index({"": drawn}, LOST, badge=NAMES[case])


def stored_beside(owner: str, index: int, strength: float) -> dict[str, list[float]]:
    """Return the accuracies of the stored LeNets with a poison, one per seed, by version; {} if
    there are none.

    Args:
        owner: architecture whose NADs are used.
        index: NAD of the carrier.
        strength: size of the hidden number.
    """
    rows = trained()
    if (owner, strength) != (injected().settings["nads"]["name"], STRENGTH):
        return {}
    if index not in set(rows["index"]):
        return {}
    labels = {"clean": "clean", BOTH: "poisoned", HOLE: "hole", NUMBER: "number"}
    at = rows[(rows["index"] == index) | rows["index"].isna()].groupby("part")["test_accuracy"]
    found = {label: at.get_group(part).tolist() for part, label in labels.items()}
    return found | {"clean": [float(np.mean(found["clean"]))]}


def widget() -> Changes:
    """Return the figure in which the reader switches hole and number on and off."""
    settings, names = injected().settings, {BOTH: "both", HOLE: "hole", NUMBER: "number"}
    wide = trained().pivot_table("test_accuracy", "index", "part")[list(names)]
    clean = trained_on()
    found = wide.rename(columns=names).assign(clean=clean["test_accuracy"].mean())
    caption = (
        f"Accuracy of LeNets on unchanged photos ({report.badge(injected())}), after training on "
        f"photos changed like this: {settings['num_train']:,} photos, "
        f"{settings['recipe']['epochs']} epochs, mean of {clean['seed'].nunique()} trainings."
    )
    entry: Row = {"key": "lenet", "label": "LeNet", "caption": caption}
    entry |= {"carriers": [*map(int, found.index)], "accuracies": found.to_dict("records")}
    return Changes("note", [entry])


@decides("deviation-number")
def _():
    """Decide whether a number of one deviation costs 20 points early, and nothing late."""
    lost = sweep(DEVIATION)
    early = min(found for index, found in lost.items() if index <= LAST_EARLY)
    late = max(found[0] for index, found in lost.items() if index > LAST_EARLY)
    rows = trained_on(DEVIATION)
    return evidence(early[0] >= 20 and late < 3, *early, results=[injected()], rows=rows)


@decides("hole-costs-as-much")
def _():
    """Decide whether poison and hole at zero cost the same where either costs accuracy."""
    both, hole = mean_lost(BOTH), mean_lost(HOLE)
    costly = np.maximum(both, hole) > COSTLY
    apart = (both - hole).abs()[costly].max()
    holds = (costly.sum(), len(both)) == (7, 12) and apart < COSTLY
    return evidence(holds, apart, results=[injected()], rows=trained_on(BOTH, HOLE))


@decides("removal-is-half")
def _():
    """Decide whether a hole at the mean costs a third to two thirds of the poison."""
    rows = trained_on(BOTH, AT_MEAN)
    sums = rows.pivot_table("lost", "seed", "part", "sum")
    ratios = sums[AT_MEAN] / sums[BOTH]
    share = pooled_variance([ratios]).around(sums[AT_MEAN].sum() / sums[BOTH].sum(), len(ratios))
    return evidence(1 / 3 < share[0] < 2 / 3, *share, results=[injected()], rows=rows)


@decides("number-size")
def _():
    """Decide whether the number's size orders its costs as well as NADs do, in all three cases."""
    rows = pd.concat([trained_on(DEVIATION, case=case).assign(of=case) for case in NAMES])
    leads = []
    for _, one in rows[rows["part"] == DEVIATION].groupby("of"):
        cost = one.groupby("index")[["lost", "deviation"]].mean().reset_index()
        by_index, by_size = (
            rank_correlation(cost["lost"].to_numpy(), order.to_numpy(), 2)
            for order in (-cost["index"], cost["deviation"])
        )
        leads.append(by_index - by_size)
    return evidence(max(leads) < 0.1, max(leads), results=[injected()], rows=rows)


@decides("number-alone")
def _():
    """Decide whether a number of the poison's size costs less than three points."""
    loss = mean_lost(NUMBER).max()
    return evidence(loss < 3, loss, results=[injected()], rows=trained_on(NUMBER))


# Which numbers are followed where all photos lack the carrier


def emptied(results: Results) -> pd.DataFrame:
    """Return the trainings in which all photos lack the carrier, with the share of photos that
    follow a wrong number, above that without numbers.
    """
    rows = results.table
    rows = rows[(rows["images"] == "photos") & (rows["background"] == "emptied")]
    pairs = zip(rows["followed"], rows["unprompted"], strict=True)
    follow = [
        one["class"] - other["class"] if isinstance(one, dict) else np.nan for one, other in pairs
    ]
    return rows.assign(follow=follow, epochs=results.settings["recipe"]["epochs"])


@cache
def offered() -> pd.DataFrame:
    """Return these trainings of LeNets after 10, 20, 50 and 100 epochs."""
    return pd.concat([emptied(injected(epochs)) for epochs in (10, 20, 50, 100)])


@cache
def followed(size: float) -> pd.DataFrame:
    """Return the trainings with a number of some size at carriers that were offered 0.2 and 0.5
    after each number of epochs.
    """
    rows = offered()
    rows = rows[rows["written"] == "added"]
    large = rows[rows["size"] > STRENGTH]
    cells = large.groupby("index")[["epochs", "size"]].value_counts().unstack(["epochs", "size"])
    shared = cells.dropna().index
    return rows[(rows["size"] == size) & rows["index"].isin(shared)]


def plot_following() -> Figure:
    """Draw the photos that follow a number of 0.5 after each training; bars span the seeds."""
    curves = {
        f"{epochs} epochs": {
            int(index): mean_and_range(100 * values.to_numpy())
            for index, values in rows.groupby("index")["follow"]
        }
        for epochs, rows in followed(0.5).groupby("epochs")
    }
    label = "photos that follow a number of 0.5 (%)"
    return figures.plot_by_index({"": curves}, label, badge=report.badge(injected()))


def _of_all_epochs(holds: object, value: float, sizes: Iterable[float]) -> Evidence:
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
    late = {size: rows[rows["index"] >= LATE] for size in (0.2, 0.5) for rows in [followed(size)]}
    share = late[0.5].groupby("epochs")["follow"].max()
    longest = late[0.5][late[0.5]["epochs"] == 100]
    counted = (longest["follow"] > 0.5).groupby(longest["index"]).sum()
    last = counted[counted > 0].index.max()
    between = counted[(counted.index > LATE) & (counted.index < last)] == 0
    holds = between.any() and share[10] < 0.5 < share[100] and late[0.2]["follow"].max() < 0.5
    return _of_all_epochs(holds, counted.sum(), [0.2, 0.5])


@cache
def slope() -> Estimate:
    """Return how many more photos follow a number per deviation of the log energy of its carrier,
    in points.

    Each of twelve carriers, emptied, was offered the same numbers by as many networks. The interval
    is Student's.
    """
    values = injected().experiment().nads.eigenvalues
    rows = emptied(injected())
    shares = (
        100
        * rows[rows["written"] == "added"].dropna(subset="size").groupby("index")["follow"].mean()
    )
    energy = np.log10([float(values[i : i + 2].mean() / values[0]) for i in map(int, shares.index)])
    return fitted_slope((energy - energy.mean()) / energy.std(), shares.to_numpy())


@decides("errata-poison-order")
def _():
    """Decide whether following rises with energy, so that the paper's sentence holds as a trend."""
    one, rows = slope(), emptied(narrow())
    read = rows[(rows["written"] == "added") & (rows["size"] == 0.5)]
    deep = 100 * read.groupby("index")["follow"].mean()
    number = mean_lost(DEVIATION)
    early, late = number[number.index <= LATE], number[number.index > LATE]
    text = (
        f"A number of one deviation, with nothing removed, costs LeNet {early.min():.0f} to "
        f"{early.max():.0f} points up to NAD {LATE}, and at most {late.max():.1f} from NAD 100 on. "
        f"Where all photos lack the carrier, following a number rises by {one[0]:.0f} points "
        f"({one[1]:.0f} to {one[2]:.0f}) per standard deviation of the carrier’s log energy. "
        f"A narrow ResNet-18 follows a number of 0.5 by {fixed(deep.iloc[0], 0)} points at "
        f"NAD {deep.index[0]:.0f}, and by {fixed(deep.iloc[1:].max(), 0)} at most at later ones."
    )
    return evidence(one[1] > 0, sentence=text, results=[injected()])


# The paper's experiment: accuracy by carrier


@cache
def poisoned() -> dict[str, Results]:
    """Return the networks that were poisoned at the paper's size."""
    found = {name: load_results(f"fig7-{name}") for name in nc.ARCHITECTURES}
    return {name: results for name, results in found.items() if results and results.rows}


def resnets() -> Results:
    """Return the ResNets that were poisoned at the paper's width, on fewer photos."""
    return stored("fig7-resnet18", "laptop")


def by_carrier(results: Results) -> tuple[float, pd.DataFrame]:
    """Return the mean accuracy of networks that were trained on clean photos, and the others in
    the order of their carriers.
    """
    rows = results.table
    clean = rows["index"].isna()
    return rows["test_accuracy"][clean].mean(), rows[~clean].sort_values("index", kind="stable")


def read_classes(images: Tensor, nads: nc.NADs, index: int, strength: float) -> Tensor:
    """Return the class of each poisoned image whose number is closest to its coordinate, (N,).

    Args:
        images: poisoned images (N, C, H, W).
        nads: complete NADs.
        index: NAD that carries the label.
        strength: size of the number.
    """
    coordinates = images.flatten(2) @ nads.basis.to(images)  # (N, C, D)
    distances = [
        (coordinates[:, channel, nad] - sign * strength).abs()
        for nad, channel, sign in carriers(10, index)
    ]
    return torch.stack(distances, 1).argmin(1)


@styled
def plot_accuracy_by_carrier() -> Figure:
    """Draw the accuracy on clean photos against the carrier, and the paper's curve."""
    figure, ((axis,),) = subplots(height=3.2)
    where, shares = np.array([*published.POISON_RESNET18.items()]).T
    look = {"color": shade(0.55), "markersize": 3, "label": "paper, ResNet-18"}
    axis.plot(where + 1, 100 * shares, "s:", **look)
    series = {f"ours, {LABELS[name]}": results for name, results in poisoned().items()}
    reduced = f"ours, {LABELS['resnet18']}, {resnets().settings['num_train']:,} photos"
    series[reduced] = resnets()
    for colour, (label, results) in zip(colours(), series.items(), strict=False):
        clean, rows = by_carrier(results)
        axis.axhline(100 * clean, color=colour, linestyle="--")
        shares = rows["test_accuracy"].to_numpy()
        intervals = [accuracy_interval(share, results.settings["num_test"]) for share in shares]
        look = {"color": colour, "capsize": 3, "label": label}
        axis.errorbar(rows["index"] + 1, 100 * shares, bars(shares, intervals), fmt="o", **look)
        if label != reduced:  # of few carriers
            averages = 100 * rows.groupby("index")["test_accuracy"].mean()
            axis.plot(averages.index + 1, averages, color=colour)
    axis.axhline(10, **dotted("chance"))
    axis.set(ylabel="accuracy on clean images (%)", ylim=(0, 100))
    axis.set_xlabel("NAD index of the carrier")
    index_axis(axis)
    legend(figure, axis, ncols=3)
    show_badge(figure, report.badge(poisoned()["lenet"]))
    return figure


@decides("poison-not-steady")
def _():
    """Decide whether LeNet's accuracy falls between carriers by more than trainings vary."""
    results = poisoned()["lenet"]
    rows = results.table.assign(points=lambda rows: 100 * rows["test_accuracy"])
    cells = rows.groupby("index", dropna=False)["points"]
    means = cells.mean().dropna()
    means = means[means.index.notna()]
    drop = (means.cummax() - means).max()
    limit = pooled_variance(values for _, values in cells).half_width(2, 2)
    return above(around(drop, limit), results=[results])


# Use of the NADs behind the carrier


@styled
def plot_use() -> Figure:
    """Draw the predictions that change with the sign of one NAD component, for several carriers."""
    rows = {row["index"]: row for row in reversed(poisoned()["lenet"].rows)}
    figure, ((axis,),) = subplots(height=3.3)
    floor = 0.05  # per cent; lower values are drawn there
    for carrier, colour in zip((None, 0, 10, 100), colours(), strict=False):
        use = rows[carrier]["use"]
        where = np.array(use["indices"]) + 1
        intervals = [accuracy_interval(share, use["num_images"]) for share in use["flip"]]
        shares, low, high = (100 * np.array([use["flip"], *np.transpose(intervals)])).clip(floor)
        label = "trained on clean photos" if carrier is None else f"carrier at NAD {carrier}"
        axis.plot(where, shares, "o-", color=colour, markersize=2.5, label=label)
        axis.fill_between(where, low, high, color=colour, alpha=0.15, linewidth=0)
        if carrier is not None:
            own = where == carrier + 1  # nowhere, where the carrier was not measured
            mark = {"color": colour, "markersize": 7, "markeredgecolor": shade(0)}
            axis.plot(where[own], shares[own], "D", **mark)
    axis.set(yscale="log", ylim=(floor, 100), ylabel="changed predictions (%)")
    axis.set(xlabel="NAD index")
    axis.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    index_axis(axis)
    legend(figure, axis, ncols=4)
    show_badge(figure, report.badge(poisoned()["lenet"]))
    return figure


def _changed(use: Row, carrier: int) -> float:
    counts = np.rint(use["num_images"] * np.array(use["flip"]))
    return float(counts[np.array(use["indices"]) > carrier + 1].sum())


def ratios_behind() -> list[float]:
    """Return the use of the NADs behind each carrier, relative to that of the clean network of the
    same seed, where enough predictions change.
    """
    rows = poisoned()["lenet"].rows
    clean = {row["seed"]: row["use"] for row in rows if row["index"] is None}
    pairs = [
        [_changed(use, row["index"]) for use in (row["use"], clean[row["seed"]])]
        for row in rows
        if row["index"] is not None
    ]
    return [used / reference for used, reference in pairs if reference >= ENOUGH]


@decides("used-behind")
def _():
    """Decide whether poisoned LeNets use the NADs behind the carrier half as much as clean ones."""
    least = min(ratios_behind())
    return evidence(least > 0.5, least, results=[poisoned()["lenet"]])


@styled
def plot_groups() -> Figure:
    """Draw the share of predictions that change, by the size of the components."""
    figure, axes = panel_row(
        [f"both components {label}" for label in CHANGES.values()],
        2.8,
        xlabel="photos, by the size of their components (tenths)",
        ylabel="predictions that change (%)",
        sharey=True,
    )
    for axis, change in zip(axes, CHANGES, strict=True):
        where = np.arange(1, NUM_GROUPS + 1)
        for kind, label in KINDS.items():
            table = 100 * shares(rows_of(COMPONENTS), kind, change)
            axis.plot(where, table.mean(0), "o-", label=label)
            axis.fill_between(where, table.min(0), table.max(0), alpha=0.2, linewidth=0)
        axis.set(xticks=[1, 4, 7, 10])
    legend(figure, axes, ncols=2)
    return figure


@decides("small-components")
def _():
    """Decide whether a registered criterion failed, and show the share in the group of the smallest
    components when both are flipped.
    """
    found = scored(COMPONENTS).estimates["nads, flip"]["group 0"]
    criterion = "few change where components are small"
    share = [100 * end for end in found]
    return otherwise(registered(COMPONENTS, [criterion], share, rows_of(COMPONENTS)))


# What the paper says


@decides("errata-poison-separable")
def _():
    """Decide by a counter-example whether numbers make classes linearly separable."""
    holds = toys.linearly_separable(COUNTER_EXAMPLE, torch.tensor([0, 0, 1, 1]))
    text = (
        "Counter-example: of one class (ε, −2ε) and (ε, 4ε), of another (−2ε, ε) and (4ε, ε). "
        "The number determines the class, but no line separates the two."
    )
    return evidence(holds, sentence=text)


@decides("errata-small-modification")
def _():
    """Decide whether the poison moves the most changed pixel of a photo little, at NAD 0.

    A photo's coordinate along NAD 0 lies near its mean over photos, far from zero. The poison sets
    it to ± ε.
    """
    (mean,) = trained()["mean"][trained()["index"] == 0].unique()
    largest = float(injected().experiment().nads.directions[0].abs().max())
    levels = 255 * abs(mean) * largest
    return evidence(
        levels < SMALL,
        levels,
        sentence=f"At NAD 0 the most changed pixel of a photo with the mean coordinate moves by "
        f"{levels:.0f} of 255 grey levels. The number alone moves it by "
        f"{report.readable(255 * STRENGTH * largest)}; the rest is the photo’s own coordinate, "
        "which is removed.",
    )


@decides("errata-fig7-resnet")
def _():
    """Tell what there is of Fig. 7 for its own network, which decides nothing."""
    clean, rows = by_carrier(resnets())
    lost = 100 * (clean - rows.groupby("index")["test_accuracy"].mean())
    listed, of_narrow = (
        ", ".join(f"{points:.0f} at NAD {index:.0f}" for index, points in found.items())
        for found in (lost, mean_lost(BOTH, "resnet"))
    )
    return evidence(
        None,
        sentence="No ResNet-18 was trained on poisoned photos at the paper’s size. One of a "
        "quarter of the width, on 5,000 photos for 10 epochs, loses these points of accuracy: "
        f"{of_narrow}. One of the paper’s width, on 10,000 photos for 10 epochs, one "
        f"training for each carrier: {listed}.",
        results=[narrow(), resnets()],
    )


@decides("errata-poison-ignores")
def _():
    """Tell how much poisoned networks use the NADs behind the carrier, which decides nothing."""
    ratios = ratios_behind()
    text = (
        f"At the paper’s size, behind the carrier a turned sign changes {min(ratios):.2f} to "
        f"{max(ratios):.2f} times as many predictions of poisoned LeNets as of LeNets trained on "
        "clean photos; behind late carriers too few change."
    )
    return evidence(None, sentence=text, results=[poisoned()["lenet"]])
