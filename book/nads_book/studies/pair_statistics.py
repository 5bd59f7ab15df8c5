"""The registered comparison of scores of pairs with accuracies: correlations, baselines, verdicts.

``book/preregistered/other_data.toml`` has what was expected and the criteria. Scores were computed
from random weights and committed before the first training (`pairs`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nads_book.analysis.statistics import grouped, pooled_variance, with_interval
from nads_book.evidence import all_met
from nads_book.experiments import (
    Estimate,
    Estimates,
    Met,
    Rows,
    Scored,
    load_registered,
    matching,
    without_intervals,
)

Values = np.ndarray  # (data sets, variants, architectures) of images
AS_IS, SERIES, LINEAR = "as is", "mnist1d", "logreg"
SAME = "mlp"  # no permutation of the input matters to it
# Scores whose differences are taken as they are; others of logarithms.
ACCURACIES = ("ridge", "nearest mean", "first step")
EXCHANGES = "share of exchanges of architectures that do at least as well"
NUM_DRAWS = 20_000  # an end of an interval varies with the seed by about .003


@dataclass(frozen=True)
class Table:
    """Scores, baselines and accuracies of the pairs of images, and of those of MNIST-1D.

    Args:
        data: names of the data sets of images.
        variants: names of the variants, the first "as is".
        architectures: names of the architectures.
        accuracies: (data sets, variants, architectures, seeds).
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
    def of(cls, scores: Mapping[str, Any], trained: Rows) -> Table:
        """Return the table of the content of the file of scores, and of rows of trainings."""
        rows = [row for row in scores["rows"] if row["data"] != SERIES]
        fields = ("data", "variant", "architecture")
        axes = [list(dict.fromkeys(row[field] for row in rows)) for field in fields]
        axes[1].sort(key=lambda variant: variant != AS_IS)
        shape = tuple(map(len, axes))
        predictors: dict[str, Values] = {}
        for row in rows:
            place = tuple(axis.index(row[name]) for axis, name in zip(axes, fields, strict=True))
            found = {name: value for name, (value, *_) in row["scores"].items()}
            found |= {name: row[name] for name in ("parameters", "smoothness")}
            for name, value in found.items():
                predictors.setdefault(name, np.full(shape, np.nan))[place] = value
        reached = grouped(
            (tuple(row[field] for field in fields), row["test_accuracy"])
            for row in sorted(trained, key=lambda row: row["seed"])
        )
        linear = [np.mean(reached[*cell, LINEAR]) for cell in itertools.product(*axes[:2])]
        predictors["logistic regression"] = np.repeat(linear, shape[2]).reshape(shape)
        # Whatever has local filters or patches loses something, and all of it as much.
        predictors["textbook"] = np.zeros(shape)
        predictors["textbook"][:, 1:, [name != SAME for name in axes[2]]] = -1
        accuracies = np.array([reached[pair] for pair in itertools.product(*axes)])
        own = matching(scores["rows"], data=SERIES)
        series = {key[1:]: values for key, values in reached.items() if key[0] == SERIES}
        data, variants, names = axes
        accuracies = accuracies.reshape(*shape, -1)
        return cls(data, variants, names, accuracies, predictors, own, series)

    def means(self) -> Values:
        """Return the accuracies, averaged over seeds."""
        # Rounded, so that equal numbers of right images are a tie whatever the order of the sum.
        return self.accuracies.mean(-1).round(9)

    def seed_deviation(self) -> np.ndarray:
        """Return the standard error of a mean from the deviation between seeds, pooled within each
        data set: (data sets, 1, 1).
        """
        count = self.accuracies.shape[-1]
        deviations = [
            pooled_variance(cells.reshape(-1, count)).deviation for cells in self.accuracies
        ]
        return np.array(deviations)[:, None, None] / count**0.5


def ranks(x: np.ndarray) -> np.ndarray:
    """Return midranks along the last axis with mean 0."""
    from scipy.stats import rankdata

    return rankdata(x, axis=-1) - (x.shape[-1] + 1) / 2


def _of_ranks(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    norm = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    return np.where(norm == 0, 0.0, (x * y).sum(-1) / np.where(norm == 0, 1.0, norm))


def correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Spearman's correlations along the last axis, ties in the middle: (..., n) and (..., n)
    -> (...).

    They are 0 where one of the two is constant.
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


def as_one(values: Values) -> np.ndarray:
    """Arrange all pairs of images as one unit."""
    return values.reshape(*values.shape[:-3], 1, -1)


ARRANGED: dict[str, Callable[[Values], np.ndarray]] = {
    "cells": by_cell,
    "costs": by_costs,
    "variants": by_architecture,
    "all": as_one,
}


def correlations(statistic: str, values: Values, accuracies: Values) -> np.ndarray:
    """Return the correlation of a predictor with accuracies in each unit of a statistic."""
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
    return (accuracies.sum(-3, keepdims=True) - accuracies) / (accuracies.shape[-3] - 1)


def prepared(table: Table, name: str, statistic: str, accuracies: Values) -> Values:
    """Return a predictor as the statistic takes it."""
    if name == "other data":
        return other_data(accuracies)
    if name == "accuracy as is":
        return np.where(np.arange(len(table.variants))[:, None] == 0, accuracies, 0.0)
    values = table.predictors[name]
    logarithm = statistic == "costs" and name not in (*ACCURACIES, "textbook")
    return np.log(np.maximum(values, 1e-6)) if logarithm else values


def chosen_architectures(table: Table, statistic: str, without: Sequence[str]) -> np.ndarray:
    """Return which architectures count, (architectures,); never the MLP over variants, which are
    the same to it.
    """
    left_out = [*without, SAME] if statistic == "variants" else list(without)
    return ~np.isin(table.architectures, left_out)


def exchanged_share(table: Table, name: str, statistic: str, without: Sequence[str] = ()) -> float:
    """Return the share of all exchanges of architectures, with which a predictor does at least as
    well as it does; the exchange of none counts.

    Args:
        table: scores and accuracies.
        name: name of the predictor.
        statistic: one of `ARRANGED`, of which the mean over units is compared.
        without: architectures that are left out.
    """
    chosen, means = chosen_architectures(table, statistic, without), table.means()
    values = prepared(table, name, statistic, means)[..., chosen]
    orders = np.array([*itertools.permutations(range(values.shape[-1]))])  # (exchanges, n)
    exchanged = np.moveaxis(values[..., orders], -2, 0)  # (exchanges, data sets, variants, n)
    reached = correlations(statistic, exchanged, means[..., chosen]).mean(-1)
    return float((reached >= reached[0] - 1e-9).mean())  # equal correlations may differ by rounding


def compare(
    table: Table,
    without: tuple[str, ...] = (),
    statistics: Iterable[str] = ARRANGED,
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
        statistics: names of the statistics.
        only: predictors that are wanted; all by default.
        num_draws: number of draws; `NUM_DRAWS` by default.
    """
    num_draws = num_draws or NUM_DRAWS
    rng, means = np.random.default_rng(0), table.means()
    noise = rng.normal(size=(num_draws, *means.shape)) * table.seed_deviation()
    accuracies = np.concatenate([means[None], means + noise])  # the first ones as measured
    baselines = set().union(*BASELINES.values())
    scores = [name for name in table.predictors if name not in baselines]
    found: dict[tuple[str, str], Estimate] = {}
    for statistic in statistics:
        names = tuple(only) or (*scores, *BASELINES[statistic])
        chosen = chosen_architectures(table, statistic, without)
        predictors = [prepared(table, name, statistic, accuracies)[..., chosen] for name in names]
        units = _drawn_units(statistic, predictors, accuracies[..., chosen], rng)
        drawn = [each.mean(1) for each in units]
        for column, name in zip(drawn, names, strict=True):
            found[statistic, name] = with_interval(column)
            if name in BASELINES[statistic]:
                found[statistic, f"over {name}"] = with_interval(drawn[0] - column)
    return found


def _drawn_units(
    statistic: str, predictors: list[Values], accuracies: Values, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield, for each predictor, the correlations of units that are drawn again, (draws, n), the
    first ones in order.

    The units are the same for all predictors. Over all pairs, cells are drawn and there is one
    correlation.
    """
    if statistic == "all":
        chosen = _draw(rng, (len(accuracies), accuracies[0, ..., 0].size))
        target = ranks(_redrawn(by_cell(accuracies), chosen))
        for values in predictors:
            each = _of_ranks(ranks(_redrawn(by_cell(values), chosen)), target)
            yield each[:, None]
        return
    target = ranks(ARRANGED[statistic](accuracies))
    chosen = _draw(rng, target.shape[:2])
    for values in predictors:
        each = _of_ranks(ranks(ARRANGED[statistic](values)), target)
        yield np.take_along_axis(each, chosen, 1)


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


def verdict(enough: float, estimate: Estimate, *others: Estimate) -> bool | None:
    """Return what the registered rule says of one part: supported, falsified, or None.

    Args:
        enough: correlation below which a ranking is of no use.
        estimate: correlation of the primary score.
        others: further estimates that must be above zero if the part is to be supported.
    """
    if estimate[2] < enough:
        return False
    return min(low for _, low, _ in (estimate, *others)) > 0 or None


def verdicts(
    found: Mapping[tuple[str, str], Estimate],
    without: Mapping[tuple[str, str], Estimate],
    enough: float,
) -> Met:
    """Return what the primary score supports, see `verdict`.

    Args:
        found: result of `compare` with all architectures.
        without: the same without the MLP.
        enough: correlation below which a ranking is of no use.
    """
    primary = next(name for _, name in found)
    parts = {
        "which architecture is best on given data": verdict(
            enough, found["cells", primary], found["cells", "over parameters"]
        ),
        "which architecture loses most": verdict(
            enough, without["costs", primary], found["costs", "over textbook"]
        ),
    }
    return parts | {"NADs rank pairs of architecture and data": all_met(parts, *parts)}


def series_tests(
    rows: list[Mapping[str, Any]], accuracies: Mapping[tuple[str, str], float]
) -> dict[str, bool]:
    """Return which accuracies of MNIST-1D the primary score predicts.

    Args:
        rows: scores of MNIST-1D.
        accuracies: (variant, architecture) -> accuracy.
    """
    names = list(dict.fromkeys(row["architecture"] for row in rows))
    of = {(row["variant"], row["architecture"]): next(iter(row["scores"].values())) for row in rows}
    variants = (AS_IS, "shuffled")
    reached = np.array([[accuracies[variant, name] for name in names] for variant in variants])
    scores, errors = np.array(
        [[of[variant, name][:2] for name in names] for variant in variants]
    ).transpose(2, 0, 1)  # (variants, models) each
    fall, cost = scores[0] - scores[1], reached[0] - reached[1]
    clear = dict(zip(names, (fall > 2 * np.hypot(*errors)).tolist(), strict=True))
    local = np.isin(names, ["cnn", "gru"])

    def ordered(first: np.ndarray, second: np.ndarray) -> bool:
        return bool(correlation(first, second) > 0.7)

    return {
        "the CNN's score falls": clear["cnn"],
        "the GRU's score falls": clear["gru"],
        "the MLP's and the linear model's scores stay": bool(abs(fall[~local]).max() < 0.005),
        "local models lose more than the others": bool(fall[local].min() > fall[~local].max()),
        "order of the costs (correlation above .7)": ordered(fall, cost),
        "order of the accuracies as is (correlation above .7)": ordered(scores[0], reached[0]),
        "order of the accuracies, shuffled (correlation above .7)": ordered(scores[1], reached[1]),
    }


def judge(scores: Mapping[str, Any], trained: Rows) -> Scored:
    """Return all statistics, and apply the registered criteria.

    Args:
        scores: content of the file of scores.
        trained: rows of the trainings.
    """
    registered = load_registered("other_data")
    table = Table.of(scores, trained)
    found, fewer = compare(table), compare(table, without=(SAME,))
    estimates: Estimates = {}
    shares: dict[str, float] = {}
    for label, each, without in (("all six", found, ()), (f"without {SAME}", fewer, (SAME,))):
        for (statistic, name), estimate in each.items():
            estimates.setdefault(f"{label}, {statistic}", {})[name] = estimate
        primary = scores["names"][0]
        shares |= {
            f"{label}, {statistic}": exchanged_share(table, primary, statistic, without)
            for statistic in ARRANGED
        }
    estimates[EXCHANGES] = without_intervals(shares)
    published = {
        (variant, name): accuracy
        for variant in (AS_IS, "shuffled")
        for name, accuracy in registered["mnist1d"][variant.replace(" ", "_")].items()
    }
    tests = series_tests(table.series, published)
    met: Met = {f"MNIST-1D: {name}": holds for name, holds in tests.items()}
    met |= verdicts(found, fewer, registered["criteria"]["enough"])
    return Scored(estimates, met)
