"""Choosing an architecture: a score from random networks, published proxies, and a count."""

import csv
import hashlib
import io
import json
import lzma
from functools import cache

import numpy as np
from scipy.stats import rankdata

from nads_book.analysis.statistics import drawn_counts, rank_correlations, with_interval
from nads_book.checkout import checkout_folder
from nads_book.evidence import Evidence, Facts, above, evidence
from nads_book.experiments import Estimate, load_study

DIRECTIONS, COUNT = "directions", "convolutions minus poolings"
DATA = ("cifar10", "cifar100", "ImageNet16-120")
EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))  # of the six digits of a cell
WEIGHTS = {"2": 1, "3": 1, "4": -1}  # digits of convolutions and of average pooling
GAIN = (-0.03, 0.02)  # in which the gain over jacov and synflow was expected
DRAWS = 5_000  # of cells, for intervals


def _table(name: str) -> str:
    """Return the text of a published table."""
    return lzma.open(checkout_folder("book/results/nas_tables") / name).read().decode()


@cache
def classes() -> dict[str, str]:
    """Return the class of isomorphic cells of each cell of NAS-Bench-201."""
    rows = csv.DictReader(io.StringIO(_table("nasbench201_all.csv.xz")))
    return {row["cell"].zfill(6): row["class"] for row in rows}


def on_paths(cell: str) -> str:
    """Return the operations of a cell (digits) on a path from its input to its output."""
    edges = [(*edge, digit) for edge, digit in zip(EDGES, cell, strict=True) if digit != "1"]
    reached, used = {0}, {3}
    for _ in range(3):  # the longest path has three edges
        reached |= {b for a, b, _ in edges if a in reached}
        used |= {a for a, b, _ in edges if b in used}
    return "".join(digit for a, b, digit in edges if a in reached and b in used)


@cache
def table_of(data: str) -> dict[str, np.ndarray]:
    """Return scores, accuracies and classes of the cells on which no score was chosen, each (n,).

    A score was chosen on the cells whose class has an even hash.
    """
    measured = {row["key"]: row for row in load_study("nas.json")["rows"]}
    published = json.loads(_table("zc_nasbench201.json.xz"))["nasbench201"][data]
    found: dict[str, list[float | str]] = {}
    for name, record in published.items():
        cell = "".join(filter(str.isdigit, name))
        if hashlib.sha256(classes()[cell].encode()).digest()[0] % 2 == 0:
            continue
        row = measured[cell]  # one without a path from input to output has no trace
        directions = -row["squares"] / row["trace"] ** 2 if "trace" in row else -np.inf
        values = {key: record[key] for key in ("jacov", "synflow", "val_accuracy")}
        values |= {DIRECTIONS: directions, "class": classes()[cell]}
        values |= {COUNT: sum(WEIGHTS.get(digit, 0) for digit in on_paths(cell))}
        for key, value in values.items():
            found.setdefault(key, []).append(value)
    table = {key: np.array(values) for key, values in found.items()}
    table["sum"] = _ranks(table["jacov"]) + _ranks(table["synflow"])
    table["with NADs"] = table["sum"] + _ranks(table[DIRECTIONS])
    return table


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return midranks from 0 to 1."""
    return np.asarray((rankdata(values) - 0.5) / len(values))


def lead(name: str, other: str, data: str = "cifar10") -> Estimate:
    """Return the lead of one score's rank correlation with accuracy over that of another.

    The interval draws classes of isomorphic cells again.

    Args:
        name: key of `table_of`.
        other: key of `table_of`.
        data: data set of the accuracies.
    """
    table = table_of(data)
    drawn = drawn_counts(table["class"], DRAWS)
    first, second = (
        rank_correlations(table[key], table["val_accuracy"], drawn) for key in (name, other)
    )
    return with_interval(first - second)


def _facts() -> Facts:
    number = len(table_of("cifar10")["class"])
    return {"size": "paper", "num_seeds": 1, "num_trainings": number}


def nas_little_gain() -> Evidence:
    """Decide whether the gain over jacov and synflow is in the registered range."""
    gains = [lead("with NADs", "sum", data) for data in DATA]
    holds = all(GAIN[0] <= value <= GAIN[1] for value, *_ in gains)
    return evidence(holds, *max(gains), **_facts())


def nas_plain_count() -> Evidence:
    """Decide whether a count of operations ranks cells better than directions do."""
    return above(lead(COUNT, DIRECTIONS), **_facts())
