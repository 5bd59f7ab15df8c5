"""Shortcuts in small: linear separability of samples, and smoothness of directions."""

import numpy as np
import torch
from torch import Tensor


def linearly_separable(samples: Tensor, labels: Tensor) -> bool:
    """Return whether a hyperplane separates two classes: whether y (w x + b) >= 1 has a solution.

    Args:
        samples: points, ``(N, D)``.
        labels: classes 0 and 1.
    """
    from scipy.optimize import linprog

    signed = (2.0 * labels - 1)[:, None] * torch.cat([samples, torch.ones(len(samples), 1)], 1)
    bounds = -signed.double().numpy(), -np.ones(len(signed))
    return bool(linprog(np.zeros(signed.shape[1]), *bounds, bounds=(None, None)).status == 0)
