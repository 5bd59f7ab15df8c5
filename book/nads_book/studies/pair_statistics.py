"""The registered comparison of scores of pairs with accuracies: correlations, baselines, verdicts.

``book/preregistered/other_data.toml`` has what was expected and the criteria. Scores were computed
from random weights and committed before the first training (`pairs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nads_book.analysis.statistics import grouped, pooled_variance, with_interval
from nads_book.experiments import Estimate, Estimates, Evidence, Met, load_registered, matching

Values = np.ndarray  # (data sets, variants, architectures) of images
AS_IS, SERIES, LINEAR = "as is", "mnist1d", "logreg"
SAME = "mlp"  # no permutation of the input matters to it
# Scores whose differences are taken as they are; others of logarithms.
ACCURACIES = ("ridge", "nearest mean", "first step")
NUM_DRAWS = 20_000  # an end of an interval varies with the seed by about .003


@dataclass(frozen=True)
class Table:
    """Scores, baselines and accuracies of the pairs of images, and of those of MNIST-1D.

    Args:
        data: names of the data sets of images.
        variants: names of the variants, the first "as is".
        architectures: names of the architectures.
        accuracies: (data sets, variants, architectures, seeds), NaN where a training is missing.
        predictors: name -> the same without seeds: scores, and baselines that no accuracy of these
            networks enters.
        series: rows of MNIST-1D's scores.
        series_accuracies: (variant, architecture) -> accuracies of MNIST-1D's networks, one for
            each seed.
    """

    data: list[str]
    variants: list[str]
    architectures: list[str]
    accuracies: np.ndarray
    predictors: dict[str, Values]
    series: list[Mapping[str, Any]]
    series_accuracies: dict[tuple[str, str], list[float]]

    @classmethod
    def of(cls, scores: Mapping[str, Any], trained: Mapping[str, Any]) -> Table:
        """Return the table of the content of both results files."""
        rows = [row for row in scores["rows"] if row["data"] != SERIES]
        fields = ("data", "variant", "architecture")
        axes = [list(dict.fromkeys(row[field] for row in rows)) for field in fields]
        axes[1].sort(key=lambda variant: variant != AS_IS)
        shape = tuple(map(len, axes))

        def place(row: Mapping[str, Any]) -> tuple[int, ...]:
            return tuple(axis.index(row[name]) for axis, name in zip(axes, fields, strict=True))

        names = (*scores["names"], "parameters", "smoothness", "logistic regression")
        predictors = {name: np.full(shape, np.nan) for name in names}
        for row in rows:
            values = {name: value for name, (value, *_) in row["scores"].items()}
            for name, value in (values | {n: row[n] for n in ("parameters", "smoothness")}).items():
                predictors[name][place(row)] = value
        # Whatever has local filters or patches loses something, and all of it as much.
        predictors["textbook"] = np.zeros(shape)
        predictors["textbook"][:, 1:, [name != SAME for name in axes[2]]] = -1
        reached = grouped(
            (tuple(row[field] for field in fields), row["test_accuracy"])
            for row in sorted(trained["rows"], key=lambda row: row["seed"])
        )
        accuracies = np.full((*shape, max([1, *map(len, reached.values())])), np.nan)
        series: dict[tuple[str, str], list[float]] = {}
        for (data, variant, architecture), values in reached.items():
            if data == SERIES:
                series[variant, architecture] = values
            elif architecture == LINEAR:
                where = axes[0].index(data), axes[1].index(variant)
                predictors["logistic regression"][where] = np.mean(values)
            else:
                index = place(dict(zip(fields, (data, variant, architecture), strict=True)))
                accuracies[index][: len(values)] = values
        own = matching(scores["rows"], data=SERIES)
        data_sets, variants, names = axes
        return cls(data_sets, variants, names, accuracies, predictors, own, series)

    def means(self) -> Values:
        """Return the accuracies, averaged over the seeds that are there."""
        counts = np.isfinite(self.accuracies).sum(-1)
        sums = np.nansum(self.accuracies, -1)
        # Rounded, so that equal numbers of right images are a tie whatever the order of the sum.
        return np.where(counts > 0, (sums / np.maximum(counts, 1)).round(9), np.nan)

    def seed_deviation(self) -> Values:
        """Return the standard error of each mean from the deviation between seeds, pooled within a
        data set.
        """
        errors = np.zeros(self.accuracies.shape[:3])
        for d in range(len(self.data)):
            cells = self.accuracies[d].reshape(-1, self.accuracies.shape[-1])
            groups = [values[np.isfinite(values)] for values in cells]
            deviation = pooled_variance([group for group in groups if len(group) > 1]).deviation
            counts = np.isfinite(self.accuracies[d]).sum(-1)
            errors[d] = np.nan_to_num(deviation) / np.sqrt(np.maximum(counts, 1))
        return errors


def ranks(x: np.ndarray) -> np.ndarray:
    """Return midranks along the last axis with mean 0; NaN where a value is missing."""
    from scipy.stats import rankdata

    return rankdata(x, axis=-1) - (x.shape[-1] + 1) / 2


def _of_ranks(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    norm = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    return np.where(norm == 0, 0.0, (x * y).sum(-1) / np.where(norm == 0, 1.0, norm))


def correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Spearman's correlations along the last axis, ties in the middle: (..., n) and (..., n)
    -> (...).

    They are 0 where one of the two is constant, and NaN where a value is missing.
    """
    return _of_ranks(ranks(a), ranks(b))


# Which numbers a statistic correlates: (..., data sets, variants, architectures) -> (..., units,
# numbers of a unit).


def by_cell(values: Values) -> np.ndarray:
    """Arrange architectures, for each data set and variant: which architecture is best here?"""
    return values.reshape(*values.shape[:-3], -1, values.shape[-1])


def by_costs(values: Values) -> np.ndarray:
    """Arrange losses of architectures, for each data set and changed variant: which
    one loses most?
    """
    return by_cell(values[..., :1, :] - values[..., 1:, :])


def by_architecture(values: Values) -> np.ndarray:
    """Arrange variants, for each data set and architecture: which variant is hardest for it?"""
    return by_cell(values.swapaxes(-1, -2))


ARRANGED: dict[str, Callable[[Values], np.ndarray]] = {
    "cells": by_cell,
    "costs": by_costs,
    "variants": by_architecture,
}
STATISTICS = (*ARRANGED, "all")  # the last one correlates all pairs of images, as one unit


def correlations(statistic: str, values: Values, accuracies: Values) -> np.ndarray:
    """Return the correlation of a predictor with accuracies in each unit of a
    statistic but "all".
    """
    return correlation(*map(ARRANGED[statistic], (values, accuracies)))


# "accuracy as is" and "other data" know accuracies of the same networks.
BASELINES = {
    "cells": ("parameters", "other data"),
    "costs": ("textbook", "parameters", "accuracy as is", "other data"),
    "variants": ("smoothness", "other data"),
    "all": ("parameters", "smoothness", "logistic regression"),
}


def other_data(accuracies: Values) -> Values:
    """Return the mean accuracy of an architecture on the same variant of the other data sets."""
    sums = np.nansum(accuracies, -3, keepdims=True)
    counts = np.isfinite(accuracies).sum(-3, keepdims=True)
    others = counts - np.isfinite(accuracies)
    return np.where(others > 0, (sums - np.nan_to_num(accuracies)) / np.maximum(others, 1), np.nan)


def prepared(table: Table, name: str, statistic: str, accuracies: Values) -> Values:
    """Return a predictor as the statistic takes it."""
    if name == "other data":
        return other_data(accuracies)
    if name == "accuracy as is":
        return np.where(np.arange(len(table.variants))[:, None] == 0, accuracies, 0.0)
    values = table.predictors[name]
    logarithm = statistic == "costs" and name not in (*ACCURACIES, "textbook")
    return np.log(np.maximum(values, 1e-6)) if logarithm else values


def compare(
    table: Table,
    without: tuple[str, ...] = (),
    seed: int = 0,
    statistics: Sequence[str] = STATISTICS,
    only: Sequence[str] = (),
    num_draws: int | None = None,
) -> dict[tuple[str, str], Estimate]:
    """Return all statistics of all predictors, and paired differences of the primary score to
    baselines.

    Keys are (statistic, predictor), and (statistic, "over NAME"). Intervals draw units again, each
    with all of its architectures or variants, and add the variance between trainings to their
    accuracies. The architectures and the data sets are those of the design: nothing is said about
    others.

    Args:
        table: scores and accuracies.
        without: architectures that are left out.
        seed: seed of the bootstrap.
        statistics: names of the statistics.
        only: predictors that are wanted; all by default.
        num_draws: number of draws; `NUM_DRAWS` by default.
    """
    num_draws = num_draws or NUM_DRAWS
    rng, means = np.random.default_rng(seed), table.means()
    noise = rng.normal(size=(num_draws, *means.shape)) * table.seed_deviation()
    accuracies = np.concatenate([means[None], means + noise])  # the first ones as measured
    names_of_all = np.array(table.architectures)
    baselines = set().union(*BASELINES.values())
    scores = [name for name in table.predictors if name not in baselines]
    found: dict[tuple[str, str], Estimate] = {}
    for statistic in statistics:
        names = tuple(only) or (*scores, *BASELINES[statistic])
        left_out = [*without, SAME] if statistic == "variants" else list(without)
        chosen = ~np.isin(names_of_all, left_out)
        predictors = [prepared(table, name, statistic, accuracies)[..., chosen] for name in names]
        units = _drawn_units(statistic, predictors, accuracies[..., chosen], rng)
        drawn = [each.mean(1).filled(np.nan) for each in units]
        for column, name in zip(drawn, names, strict=True):
            found[statistic, name] = with_interval(column)
            if name in BASELINES[statistic]:
                found[statistic, f"over {name}"] = with_interval(drawn[0] - column)
    return found


def _drawn_units(
    statistic: str, predictors: list[Values], accuracies: Values, rng: np.random.Generator
) -> Iterator[np.ma.MaskedArray]:
    """Yield, for each predictor, the correlations of units that are drawn again, (draws, n), the
    first ones in order.

    The units are the same for all predictors; missing ones are masked. Over all pairs, cells are
    drawn and there is one correlation.
    """
    if statistic == "all":
        chosen = _draw(rng, (len(accuracies), accuracies[0, ..., 0].size))
        target = ranks(_redrawn(by_cell(accuracies), chosen))
        for values in predictors:
            each = _of_ranks(ranks(_redrawn(by_cell(values), chosen)), target)
            yield np.ma.masked_invalid(each[:, None])
        return
    target = ranks(ARRANGED[statistic](accuracies))
    chosen = _draw(rng, target.shape[:2])
    for values in predictors:
        each = _of_ranks(ranks(ARRANGED[statistic](values)), target)
        yield np.ma.masked_invalid(np.take_along_axis(each, chosen, 1))


def _redrawn(cells: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the values of the chosen cells of each draw, (draws, values); cells may be the same
    for all draws.
    """
    cells = np.broadcast_to(cells, (len(chosen), *cells.shape[-2:]))
    return np.take_along_axis(cells, chosen[..., None], 1).reshape(len(chosen), -1)


def _draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    units = rng.integers(shape[1], size=shape)
    units[0] = np.arange(shape[1])
    return units


def verdict(enough: float, estimate: Estimate, *others: Estimate) -> str:
    """Return what the registered rule says of one part.

    Args:
        enough: correlation below which a ranking is of no use.
        estimate: correlation of the primary score.
        others: further estimates that must be above zero if the part is to be supported.
    """
    if estimate[2] < enough:
        return "falsified"
    return "supported" if min(low for _, low, _ in (estimate, *others)) > 0 else "inconclusive"


def verdicts(
    found: Mapping[tuple[str, str], Estimate],
    without: Mapping[tuple[str, str], Estimate],
    enough: float,
) -> dict[str, str]:
    """Return what the primary score supports.

    Args:
        found: result of `compare` with all architectures.
        without: the same without the MLP.
        enough: correlation below which a ranking is of no use.
    """
    primary = next(name for _, name in found)
    costs = found["costs", primary], found["costs", "over textbook"]
    parts = {
        "which architecture is best on given data": verdict(
            enough, found["cells", primary], found["cells", "over parameters"]
        ),
        "which architecture loses most": verdict(enough, without["costs", primary], *costs),
    }
    outcomes = set(parts.values())
    whole = outcomes.pop() if len(outcomes) == 1 else "inconclusive"
    if "falsified" in parts.values():
        whole = "falsified"
    return parts | {"NADs rank pairs of architecture and data": whole}


def series_tests(
    rows: list[Mapping[str, Any]], accuracies: Mapping[tuple[str, str], float]
) -> dict[str, bool]:
    """Return which accuracies of MNIST-1D the primary score predicts.

    Args:
        rows: scores of MNIST-1D.
        accuracies: (variant, architecture) -> accuracy.
    """
    names = list(dict.fromkeys(row["architecture"] for row in rows))
    score = {
        (row["variant"], row["architecture"]): next(iter(row["scores"].values())) for row in rows
    }

    def fall(name: str) -> tuple[float, float]:
        """Return the fall of the score from as is to shuffled, and its standard error."""
        (a, a_error, *_), (b, b_error, *_) = score[AS_IS, name], score["shuffled", name]
        return a - b, float(np.hypot(a_error, b_error))

    falls = {name: fall(name)[0] for name in names}
    costs = {name: accuracies[AS_IS, name] - accuracies["shuffled", name] for name in names}

    def order(first: Mapping[str, float], second: Mapping[str, float]) -> bool:
        columns = (np.array([values[name] for name in names]) for values in (first, second))
        return bool(correlation(*columns) > 0.7)

    orders = [
        order({n: score[v, n][0] for n in names}, {n: accuracies[v, n] for n in names})
        for v in (AS_IS, "shuffled")
    ]
    local, others = (falls["cnn"], falls["gru"]), (falls[SAME], falls["linear"])
    return {
        "the CNN's score falls": falls["cnn"] > 2 * fall("cnn")[1],
        "the GRU's score falls": falls["gru"] > 2 * fall("gru")[1],
        "the MLP's and the linear model's scores stay": max(map(abs, others)) < 0.005,
        "local models lose more than the others": min(local) > max(others),
        "order of the costs (correlation above .7)": order(falls, costs),
        "order of the accuracies as is (correlation above .7)": orders[0],
        "order of the accuracies, shuffled (correlation above .7)": orders[1],
    }


def judge(scores: Mapping[str, Any], trained: Mapping[str, Any]) -> Evidence:
    """Apply the registered criteria, and compare estimates with the predicted ranges.

    Args:
        scores: content of the file of scores.
        trained: content of the file of trainings.

    Raises:
        ValueError: if a design is not complete, or the networks were trained beside other scores.
    """
    registered = load_registered("other_data")
    for content in (scores, trained):
        if missing := content["num_units"] - len(content["rows"]):
            raise ValueError(
                f"{missing} of {content['num_units']} units are missing: complete the design first"
            )
    if trained["scores"] != registered["sealed"]["scores"]:
        raise ValueError(
            "the networks were trained beside other scores than those that were sealed: restore "
            "them"
        )
    table = Table.of(scores, trained)
    published = {
        (variant, name): accuracy
        for variant in (AS_IS, "shuffled")
        for name, accuracy in registered["mnist1d"][variant.replace(" ", "_")].items()
    }
    own = {key: 100 * float(np.mean(values)) for key, values in table.series_accuracies.items()}
    met: Met = {}
    for label, accuracies in (("published", published), ("our trainings", own)):
        tests = series_tests(table.series, accuracies)
        met |= {f"MNIST-1D, {label}: {name}": holds for name, holds in tests.items()}
    found, fewer = compare(table), compare(table, without=(SAME,))
    estimates: Estimates = {}
    for label, each in (("all six", found), (f"without {SAME}", fewer)):
        ranges = registered["predicted"][label]
        for (statistic, name), estimate in each.items():
            estimates.setdefault(f"{label}, {statistic}", {})[name] = estimate
            if expected := ranges.get(statistic, {}).get(name):
                met[f"{label}, {statistic}, {name} as predicted"] = bool(
                    expected[0] <= estimate[0] <= expected[1]
                )
    decided = {"supported": True, "falsified": False, "inconclusive": None}
    for name, verdict in verdicts(found, fewer, registered["criteria"]["enough"]).items():
        met[name] = decided[verdict]
    return Evidence(estimates, met)
