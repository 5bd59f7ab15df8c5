"""Curves of the chapter on scale: what grows with the number of pixels, measured and by a cost model."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nads_book.benchmarks.roofline import Limits

Curve = tuple[str, Sequence[float] | np.ndarray, Sequence[float]]


def eigenvector_operations(dimension: float, num_vectors: int, kind: str) -> float:
    """Return the operations of the eigenvectors, of a D × D matrix ("dense") or of the networks' vectors ("gram")."""
    return 30 * dimension**3 if kind == "dense" else 2 * (2 * num_vectors) ** 2 * dimension


def eigenvector_bytes(dimension: float, num_vectors: int, kind: str) -> float:
    """Return the memory that the eigenvectors need, in bytes: see `eigenvector_operations`."""
    if kind == "dense":
        return 8 * 8 * dimension**2
    return 8 * num_vectors * dimension + 40 * (2 * num_vectors) ** 2


def _pixels(costs: Sequence[Mapping[str, Any]]) -> list[float]:
    return [math.prod(cost["image_shape"]) for cost in costs]


def scaling_panels(
    measured: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, dict[str, Curve]]:
    """Return the curves of time and memory against the number of pixels.

    Args:
        measured: costs of networks at several image sizes, by where they were measured ("live", "shipped").

    Returns:
        For each panel, curves by label: kind, numbers of pixels and values.
    """
    panels: dict[str, dict[str, Curve]] = {
        "seconds per network": {},
        "seconds, eigenvectors": {},
        "memory, GB": {},
    }
    for kind, costs in measured.items():
        panel = panels["seconds per network"]
        panel[kind] = kind, _pixels(costs), [cost["seconds_per_network"] for cost in costs]
        model = [costs[0]["parts"]["draw"] + max(cost["limit_seconds"].values()) for cost in costs]
        panel[f"{kind}, model"] = "model", _pixels(costs), model
        for side, most in (("dense", 9_000), ("gram", 150_528)):
            solved = [cost for cost in costs if cost["eigenvectors"]["kind"] == side]
            if not solved:
                continue
            num_vectors = solved[0]["eigenvectors"]["num_vectors"]
            label = "D × D" if side == "dense" else f"{num_vectors} networks"
            dimensions = np.geomspace(_pixels(solved)[0], most, 20)
            rate = Limits(**solved[0]["limits"]).rates["float64"]
            seconds = [eigenvector_operations(d, num_vectors, side) / rate for d in dimensions]
            gigabytes = [eigenvector_bytes(d, num_vectors, side) / 1e9 for d in dimensions]
            for title, values, modelled in (
                (
                    "seconds, eigenvectors",
                    [cost["eigenvectors"]["seconds"] for cost in solved],
                    seconds,
                ),
                (
                    "memory, GB",
                    [(cost["eigenvectors"]["bytes"] or np.nan) / 1e9 for cost in solved],
                    gigabytes,
                ),
            ):
                panels[title][f"{label}, {kind}"] = kind, _pixels(solved), values
                panels[title][f"{label}, {kind} model"] = "model", dimensions, modelled
    return panels
