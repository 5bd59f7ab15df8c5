"""The contest of NADs with published proxies on architecture search.

The score that ranks one half of the cells best, on CIFAR-10, was written into ``nas.toml`` and
committed; only then `score` looked at the other half, at other data sets, and at NAS-Bench-Macro.
"""

import csv
import hashlib
import io
import json
import lzma
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nads_book.analysis.statistics import (
    drawn_counts,
    rank_correlations,
    with_interval,
)
from nads_book.checkout import checkout_folder
from nads_book.experiments import Estimate, Estimates, Rows, load_study, matching

DATA = ("cifar10", "cifar100", "ImageNet16-120")
DRAWS = 5_000  # of cells, for intervals
SCORES = (
    *("between", "between, each", "between over within", "fewer directions", "more directions"),
    *("10 components", "50 components", "light tails"),
)
BASELINES = ("jacov", "synflow", "params", "flops")


def read_table(name: str) -> str:
    """Return the text of a published table."""
    return lzma.open(checkout_folder("book/results/nas_tables") / name).read().decode()


@lru_cache
def proxies() -> dict[str, dict[str, dict[str, float]]]:
    """Return the published table: data set -> digits of the cell -> proxies, parameters and
    accuracy.
    """
    tables = json.loads(read_table("zc_nasbench201.json.xz"))["nasbench201"]
    return {
        name: {"".join(filter(str.isdigit, cell)): record for cell, record in table.items()}
        for name, table in tables.items()
    }


@lru_cache
def macro() -> dict[str, dict[str, float]]:
    """Return the table of NAS-Bench-Macro: digits -> accuracy and parameters."""
    table: dict[str, dict[str, float]] = json.loads(read_table("nasbench_macro.json.xz"))
    return table


@lru_cache
def all_cells() -> dict[str, dict[str, str]]:
    """Return what is published of all 15,625 cells of NAS-Bench-201: accuracies, and the class of
    isomorphic cells.
    """
    rows = csv.DictReader(io.StringIO(read_table("nasbench201_all.csv.xz")))
    return {row["cell"].zfill(6): row for row in rows}


def chosen_on(cell: str) -> bool:
    """Whether a cell belongs to the half on which the score is chosen, as do all cells isomorphic
    to it.
    """
    return hashlib.sha256(all_cells()[cell]["class"].encode()).digest()[0] % 2 == 0


def scores(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores that compete, from the measures of a network; a network without a path has
    -inf.

    With C the second moment of random networks, of trace 1, and B and W the covariances of photos
    between and within classes: ``between`` tr(CB), the same as a median over networks, its ratio to
    tr(CW), 1 / the number of directions, tr(C^2), with either sign, the energy in the first 10 or
    50 principal components, and how evenly slopes spread over networks.
    """
    if "rejected" in row:
        return dict.fromkeys(SCORES, -math.inf)
    trace, squares = row["trace"], row["squares"] / row["trace"] ** 2
    return {
        "between": row["between"] / trace,
        "between, each": row["between_each"],
        "between over within": row["between"] / row["within"],
        "fewer directions": squares,
        "more directions": -squares,
        "10 components": row["components_10"] / trace,
        "50 components": row["components_50"] / trace,
        "light tails": -row["heaviness"],
    }


def table_of(
    data: str, cells: Sequence[str], measured: Rows | None = None
) -> dict[str, np.ndarray]:
    """Return the scores, baselines and accuracies of cells (n,) on a data set, or of networks of
    NAS-Bench-Macro.

    Args:
        data: one of `DATA`, or "macro".
        cells: digits of the cells or networks.
        measured: rows of the study; the stored ones by default.
    """
    on_macro = data == "macro"
    fields = {name: name for name in (*BASELINES, "val_accuracy")}
    if on_macro:
        fields = {"params": "params", "flops": "flops", "val_accuracy": "mean_acc"}
    published = macro() if on_macro else proxies()[data]
    every = load_study("nas.json")["rows"] if measured is None else measured
    rows = {row["key"]: row for row in matching(every, benchmark="macro" if on_macro else "201")}
    table = [
        scores(rows[cell]) | {new: published[cell][old] for new, old in fields.items()}
        for cell in cells
    ]
    return {name: np.array([row[name] for row in table]) for name in table[0]}


def ranks(values: np.ndarray) -> np.ndarray:
    """Return midranks from 0 to 1, so that sums of ranks of different scores are comparable."""
    from scipy.stats import rankdata

    return (rankdata(values) - 0.5) / len(values)


def compare(table: Mapping[str, np.ndarray], name: str) -> dict[str, Estimate]:
    """Return Spearman correlations with accuracy, with bootstrap intervals over cells.

    ``alone`` is the chosen score; each baseline; ``rank sum`` of jacov and synflow, and ``with
    NADs`` with the score added; ``upper half`` the score among the cells above the median accuracy.
    ``gain`` is the paired difference of the two sums, ``over X`` that of the score and a baseline.
    """
    accuracy = table["val_accuracy"]
    baselines = [key for key in BASELINES if key in table]
    columns = {"alone": ranks(table[name]), **{key: ranks(table[key]) for key in baselines}}
    if "jacov" in table:
        columns["rank sum"] = columns["jacov"] + columns["synflow"]
        columns["with NADs"] = columns["rank sum"] + columns["alone"]

    def drawn(mask: np.ndarray, key: str) -> np.ndarray:
        counts = drawn_counts(range(int(mask.sum())), DRAWS)
        return rank_correlations(columns[key][mask], accuracy[mask], counts)

    everything, upper = np.ones(len(accuracy), bool), accuracy >= np.median(accuracy)
    draws = {key: drawn(everything, key) for key in columns}
    leads = {f"over {key}": ("alone", key) for key in baselines}
    if "rank sum" in columns:
        leads["gain"] = ("with NADs", "rank sum")
    found = draws | {key: draws[first] - draws[second] for key, (first, second) in leads.items()}
    found |= {f"upper half, {key}": drawn(upper, key) for key in ("alone", *baselines)}
    return {key: with_interval(values) for key, values in found.items()}


def score(name: str, rows: Rows) -> Estimates:
    """Return `compare` for the second half of the cells on each data set,
    and for NAS-Bench-Macro.
    """
    cells = [cell for cell in proxies()["cifar10"] if not chosen_on(cell)]
    keys = [row["key"] for row in matching(rows, benchmark="macro")]
    chosen = dict.fromkeys(DATA, cells) | {"macro": keys}
    return {data: compare(table_of(data, some, rows), name) for data, some in chosen.items()}
