"""Stored networks on flipped photos and on photos under other maps."""

from collections.abc import Sequence
from functools import cache

import numpy as np

import nads_core as nc
from nads_book.evidence import Estimate
from nads_book.experiments import Results, Row, matching
from nads_book.report import LABELS
from nads_book.studies import load_results, stored
from nads_book.studies.transform_summaries import difference_of

SIZES = {"lenet": "laptop", "resnet18": "narrow"}  # of networks that were trained on mapped photos
NAMES = LABELS | {"resnet18": "ResNet-18, quarter width"}


@cache
def flips() -> dict[str, Results]:
    """Return what each network scores on upright and on flipped photos, at the largest size that
    there is.
    """
    found = {name: load_results(f"fig8-{name}") for name in nc.ARCHITECTURES}
    for name in ("vgg11", "resnet18"):
        found[name] = found[name] or load_results(f"fig8-{name}", "laptop")
    return {name: results for name, results in found.items() if results and results.rows}


@cache
def maps(name: str) -> Results:
    """Return what a network scores on mapped photos."""
    return stored(f"maps-{name}", SIZES[name])


def sides_of(results: Results) -> dict[str, list[Row]]:
    """Return the networks on upright and those on flipped photos."""
    return {
        label: matching(results.rows, flipped=flipped)
        for label, flipped in (("as is", False), ("flipped", True))
    }


def own(name: str, order: str, signs: bool = False) -> Row:
    """Return the fields of networks whose photos have coordinates along the network's own NADs in
    some order.
    """
    return {"source": name, "target": name, "order": order, "signs": signs}


def components(target: str, order: str) -> Row:
    """Return the fields of networks whose photos have their principal components on the directions
    of a basis.
    """
    return {"source": "pca", "target": target, "order": order}


def three_ways(name: str) -> dict[str, list[Row]]:
    """Return the networks on photos as they are, with random signs of their coordinates, and
    flipped.
    """
    wanted = {
        "as is": own(name, "kept"),
        "random signs": own(name, "kept", signs=True),
        "flipped": own(name, "reversed"),
    }
    return {label: matching(maps(name).rows, **fields) for label, fields in wanted.items()}


def mean(rows: Sequence[Row], key: str = "test_accuracy") -> float:
    """Return the mean of one field."""
    return float(np.mean([row[key] for row in rows]))


def difference(name: str, one: Row, other: Row) -> Estimate:
    """Return by how many points one kind of photos beats another, with its interval."""
    sides = [matching(maps(name).rows, **fields) for fields in (one, other)]
    return difference_of(maps(name), *sides)
