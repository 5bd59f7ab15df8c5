"""Intervals of means over a table of directions and settings, from drawing both again."""

from __future__ import annotations

import numpy as np


def resampled_crossed_mean(
    values: np.ndarray, rows: np.ndarray, columns: np.ndarray, chosen: np.ndarray, num_resamples: int, seed: int
) -> tuple[float, float]:
    """Return the 95 % interval of the mean of chosen values, where rows and columns are drawn again independently.

    Args:
        values: one number per measured cell of the table, ``(N,)``.
        rows: label of the row of each, such as a direction, ``(N,)``.
        columns: numbers that identify the column of each, such as a setting, ``(N, P)``.
        chosen: mask of the cells that count, ``(N,)``.
        num_resamples: number of draws.
        seed: seed of the draws.
    """
    rng = np.random.default_rng(seed)
    names, kinds = list(dict.fromkeys(rows.tolist())), np.unique(columns, axis=0)
    row_of = np.array([names.index(name) for name in rows.tolist()])
    column_of = (columns[:, None] == kinds).all(2).argmax(1)
    means = []
    for _ in range(num_resamples):
        row_counts, column_counts = (
            np.bincount(rng.integers(count, size=count), minlength=count) for count in (len(names), len(kinds))
        )
        weights = row_counts[row_of] * column_counts[column_of] * chosen
        if weights.sum():
            means.append((weights * values).sum() / weights.sum())
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
