"""Accuracies of trained entries of the atlas against the energies of waves, and the size of
residual branches.
"""

import numpy as np


def rising_fit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the values at the points themselves of the closest curve that never falls.

    Args:
        x: places of the points.
        y: values at these points.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(x, kind="stable")
    fitted = np.empty(len(x))
    fitted[order] = isotonic_regression(y[order]).x
    return fitted


def predicted_from_others(
    group: str, groups: np.ndarray, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Return the values of one group on the rising curve of all other groups, interpolated in log
    x.

    Args:
        group: the group to predict.
        groups: the group of each point.
        x: places of the points, positive.
        y: values at these points.
    """
    other = groups != group
    order = np.argsort(x[other], kind="stable")
    fitted = rising_fit(x[other], y[other])[order]
    return np.interp(np.log(x[~other]), np.log(x[other][order]), fitted)
