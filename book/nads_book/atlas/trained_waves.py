"""Accuracies of trained entries of the atlas against the energies of waves, and the size of
residual branches.
"""

from typing import Any

import numpy as np
import torch

from nads_book.atlas.entries import ATLAS


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


def branch_ratios(name: str, num_networks: int = 3) -> list[float]:
    """Return the root mean square of each residual branch over that of its shortcut, on noise, in
    random networks.

    Args:
        name: a ResNet of the atlas.
        num_networks: number of networks to draw.
    """
    torch.manual_seed(0)
    ratios = []
    for _ in range(num_networks):
        network: Any = ATLAS[name].architecture.build(1, 32, 1).eval()
        with torch.no_grad():
            x = network.activation(network.bn1(network.conv1(torch.randn(64, 1, 32, 32))))
            for block in network.blocks:
                branch = block.bn2(block.conv2(block.activation(block.bn1(block.conv1(x)))))
                ratios.append(
                    float((branch.square().mean() / block.shortcut(x).square().mean()).sqrt())
                )
                x = block(x)
    return ratios
