"""The first change of a deep linear network's second moment: a closed form without labels."""

from typing import Any

import torch
from torch import Tensor

from nads_book.evidence import Evidence, evidence


def first_change(second_moment: Tensor, hidden: int) -> Tensor:
    """Return the change of the second moment per unit of the rate, (D, D), by Wick's theorem.

    Args:
        second_moment: S of the inputs, (D, D).
        hidden: number of hidden units h; weights have variances 1/h and 1/D.
    """
    h, size = hidden, len(second_moment)
    along_data = (h + 2) / (h * size) + (h + 1) / size**2
    identity = torch.eye(size, dtype=second_moment.dtype)
    return -2 * (along_data * second_moment + second_moment.trace() / size**2 * identity)


def simulated_changes(
    second_moment: Tensor,
    signal: Tensor,
    hidden: int,
    rate: float,
    count: int,
    generator: torch.Generator,
) -> Tensor:
    """Return the changes of g g' by one exact gradient step of networks f(x) = a W x, (n, D, D).

    Args:
        second_moment: S of the inputs, (D, D).
        signal: E[y x] of the labels, (D,).
        hidden: number of hidden units.
        rate: learning rate.
        count: number of networks n.
        generator: source of the weights.
    """
    size = len(signal)
    draw: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    a = torch.randn(count, 1, hidden, **draw) / hidden**0.5
    weights = torch.randn(count, hidden, size, **draw) / size**0.5
    g = a @ weights  # (n, 1, D)
    slope = g @ second_moment - signal  # of the loss, in g
    after = (a - rate * slope @ weights.mT) @ (weights - rate * a.mT @ slope)
    return after.mT @ after - g.mT @ g


def first_step_closed_form(count: int = 20_000, seed: int = 0) -> Evidence:
    """Decide whether simulations with and without labels agree with the closed form."""
    size, hidden, rate = 12, 6, 1e-3
    generator = torch.Generator().manual_seed(seed)
    draw: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    factor = torch.randn(size, size, **draw)
    second_moment, signal = factor @ factor.T / size, torch.randn(size, **draw)
    expected = rate * first_change(second_moment, hidden)
    largest = []
    for labels in (0 * signal, signal):
        change = simulated_changes(second_moment, labels, hidden, rate, count, generator)
        errors = change.std(0) / count**0.5
        largest.append(float(((change.mean(0) - expected) / errors).abs().max()))
    return evidence(max(largest) < 5, max(largest))
