"""The poison in parts: two holes, a small number, and a number of one deviation."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from nads_book import figures, report
from nads_book.analysis.statistics import pooled_variance, student_mean
from nads_book.evidence import Estimate, Evidence, evidence
from nads_book.experiments import Results, Row, load_study, matching
from nads_book.explorer import Changes
from nads_book.studies import stored
from nads_core.data import ImageSet
from nads_core.runtime.arguments import require_choice

DEVIATION, SEEDS = "number of one deviation", (3, 4, 5)
PARTS: dict[str, tuple[str, float | None]] = {  # what is written, and its size
    "poison": ("replaced", 0.05),
    "hole at zero": ("hole", None),
    "hole at the mean": ("hole at mean", None),
    "number of .05": ("added", 0.05),
    DEVIATION: ("added", None),
}
NAMES = {
    "lenet": "LeNet, CIFAR-10",
    "fashion": "LeNet, Fashion-MNIST",
    "resnet": "narrow ResNet-18, CIFAR-10",
}
LOST = "accuracy lost (points)"
LAST_EARLY = 60  # last NAD whose number of one deviation costs LeNet accuracy: read off the results
COSTLY = 1.5  # points


@cache
def injected() -> Results:
    """Return what LeNets do with holes and numbers at twelve carriers."""
    return stored("notes-lenet", "laptop")


def untouched(images: str = "photos") -> float:
    """Return the mean accuracy after training on images without hole or number."""
    rows = matching(injected().rows, index=None, images=images)
    return float(np.mean([row["test_accuracy"] for row in rows]))


@cache
def _trained(case: str) -> tuple[list[Row], list[Row]]:
    """Return the networks with clean photos, and those with parts of the poison."""
    if case == "fashion":
        every = load_study("replications.json")["rows"]
        every = matching(every, data="fashion-mnist", network="lenet")
        clean = matching(every, map="as is")
    else:
        results = injected() if case == "lenet" else stored("notes-resnet18", "narrow")
        every = matching(results.rows, images="photos", background="kept")
        clean = matching(every, index=None)
    parts = [row for row in every if row["index"] is not None and row["background"] == "kept"]
    more = matching(load_study("poison-parts.json")["rows"], case=case)
    return clean, sorted(parts + more, key=lambda row: (row["index"], row["seed"]))


def points_lost(case: str = "lenet") -> dict[str, dict[int, list[float]]]:
    """Return the points lost by each part at each NAD, one number per seed."""
    clean, parts = _trained(case)
    before = np.mean([row["test_accuracy"] for row in clean])
    names = {written: part for part, written in PARTS.items()}
    found: dict[str, dict[int, list[float]]] = {part: {} for part in PARTS}
    for row in parts:
        part = found[names[row["written"], row["size"]]]
        part.setdefault(row["index"], []).append(100 * (before - row["test_accuracy"]))
    return found


def deviations(case: str = "lenet") -> dict[int, float]:
    """Return the deviation of the photos' coordinates at each NAD: the size of the number."""
    return {row["index"]: row["deviation"] for row in _trained(case)[1]}


def trained_on(*parts: str, case: str = "lenet") -> list[Row]:
    """Return the trainings on parts of the poison, and on clean photos."""
    clean, known = _trained(case)
    written = [PARTS[part] for part in parts]
    return clean + [row for row in known if (row["written"], row["size"]) in written]


def mean_lost(part: str, case: str = "lenet") -> dict[int, float]:
    """Return the mean of the points lost by a part, by NAD index."""
    return {index: float(np.mean(values)) for index, values in points_lost(case)[part].items()}


def sweep(part: str, case: str = "lenet") -> dict[int, Estimate]:
    """Return means over seeds of the points lost by a part, with Student's 95 % intervals."""
    return {index: student_mean(values) for index, values in points_lost(case)[part].items()}


def lost_by_resnet() -> dict[int, Estimate]:
    """Return what a number of one deviation costs the narrow ResNet-18 at each NAD, with intervals.

    Each was trained once. The seed variance is that of its other trainings, with poison and
    without.
    """
    case = "resnet"
    lost, clean = points_lost(case), trained_on(case=case)
    cells = [values for found in lost.values() for values in found.values()]
    variance = pooled_variance([*cells, [100 * row["test_accuracy"] for row in clean]])
    return {
        index: variance.around(np.mean(values), len(values), len(clean))
        for index, values in lost[DEVIATION].items()
    }


# Figures


def plot_number() -> Figure:
    """Draw the points lost by a number of one deviation, with nothing removed, against its NAD."""
    curves = {NAMES[case]: sweep(DEVIATION, case) for case in ("lenet", "fashion")}
    curves[NAMES["resnet"]] = lost_by_resnet()
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
    curves = {part: sweep(part, case) for part in PARTS if part != DEVIATION}
    trained = {part: lost for part, lost in curves.items() if lost}
    return figures.plot_by_index({"": trained}, LOST, badge=NAMES[case])


def stored_beside(owner: str, index: int, strength: float) -> dict[str, list[float]]:
    """Return the accuracies of the stored LeNets with a poison, by version; {} if there are none.

    Args:
        owner: name of the NADs.
        index: NAD index of the carrier.
        strength: size of the hidden number.
    """
    _, size = PARTS["poison"]
    if (owner, strength) != (injected().settings["nads"]["name"], size):
        return {}
    if index not in points_lost()["poison"]:
        return {}
    labels = {"poison": "poisoned", "hole at zero": "hole", "number of .05": "number"}
    clean = 100 * untouched()
    found = {
        label: [(clean - lost) / 100 for lost in points_lost()[part][index]]
        for part, label in labels.items()
    }
    return {"clean": [untouched()], **found}


def widget() -> Changes:
    """Return the figure in which the reader switches hole and number on and off."""
    settings = injected().settings
    parts = {"both": "poison", "hole": "hole at zero", "number": "number of .05"}
    lost = {key: mean_lost(part) for key, part in parts.items()}
    accuracies = [
        {"clean": untouched()} | {key: untouched() - lost[key][index] / 100 for key in parts}
        for index in lost["both"]
    ]
    caption = (
        f"Accuracy of LeNets on unchanged photos ({report.badge(injected())}), after training on "
        f"photos changed like this: {settings['num_train']:,} photos, "
        f"{settings['recipe']['epochs']} epochs, mean of {len(SEEDS)} trainings."
    )
    entry = {"key": "lenet", "label": "LeNet", "caption": caption}
    return Changes("note", [entry | {"carriers": list(lost["both"]), "accuracies": accuracies}])


# Claims


def deviation_number() -> Evidence:
    """Decide whether a number of one deviation costs 20 points early, and nothing late."""
    lost = sweep(DEVIATION)
    early = min(found for index, found in lost.items() if index <= LAST_EARLY)
    late = max(found[0] for index, found in lost.items() if index > LAST_EARLY)
    rows = trained_on(DEVIATION)
    return evidence(early[0] >= 20 and late < 3, *early, results=[injected()], rows=rows)


def hole_costs_as_much() -> Evidence:
    """Decide whether poison and hole at zero cost the same where either costs accuracy."""
    both, hole = mean_lost("poison"), mean_lost("hole at zero")
    costly = [index for index in both if max(both[index], hole[index]) > COSTLY]
    apart = max(abs(both[index] - hole[index]) for index in costly)
    holds = (len(costly), len(both)) == (7, 12) and apart < COSTLY
    rows = trained_on("poison", "hole at zero")
    return evidence(holds, apart, results=[injected()], rows=rows)


def removal_is_half() -> Evidence:
    """Decide whether a hole at the mean costs a third to two thirds of the poison."""
    poison, hole = (
        np.array(list(points_lost()[part].values())).sum(0)
        for part in ("poison", "hole at the mean")
    )  # (seeds,) each, summed over carriers
    ratios = hole / poison
    share = pooled_variance([ratios]).around(hole.sum() / poison.sum(), len(ratios))
    rows = trained_on("poison", "hole at the mean")
    return evidence(1 / 3 < share[0] < 2 / 3, *share, results=[injected()], rows=rows)


def number_size() -> Evidence:
    """Decide whether the number's size orders its costs as well as NADs do, in all three cases."""
    leads = []
    for case in NAMES:
        cost = mean_lost(DEVIATION, case)
        sizes = [deviations(case)[index] for index in cost]
        by_nad, by_size = (
            spearmanr(list(cost.values()), order).statistic for order in ([-i for i in cost], sizes)
        )
        leads.append(float(by_nad - by_size))
    rows = [row for case in NAMES for row in trained_on(DEVIATION, case=case)]
    return evidence(max(leads) < 0.1, max(leads), results=[injected()], rows=rows)


def number_alone() -> Evidence:
    """Decide whether a number of the poison's size costs less than three points."""
    loss = max(mean_lost("number of .05").values())
    return evidence(loss < 3, loss, results=[injected()], rows=trained_on("number of .05"))
