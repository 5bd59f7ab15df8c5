"""Results of trainings, and the errors of trainings that diverged or timed out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

WINDOW = 20  # steps of the running mean of the training loss


@dataclass(frozen=True)
class TrainingResult:
    """Result of a training; every field has a leading dimension B when B networks were trained.

    Args:
        train_accuracy: accuracy on the training set, after training, in eval mode; in [0, 1].
        test_accuracy: accuracy on the test set, or None without one.
        losses: training loss of each batch before its step, (steps,); NaN after an early stop.
        seconds: wall time per network (an equal share of it, where several networks share every
            step).
        measured: value of the ``measure`` given to `train_networks`.
    """

    train_accuracy: Tensor
    test_accuracy: Tensor | None
    losses: Tensor
    seconds: Tensor
    measured: Any = None

    def iterations_to(self, loss: float) -> Tensor:
        """Return the first step at which the mean of the last 20 losses is at most ``loss``; -1 for
        never.
        """
        window = min(WINDOW, self.losses.shape[-1])
        # (..., steps) -> (..., steps - window + 1)
        running = self.losses.unfold(-1, window, 1).mean(-1)
        reached = running <= loss
        first = reached.int().argmax(-1) + window
        return torch.where(reached.any(-1), first, -1)


class TrainingTimeout(TimeoutError):
    """Training reached its timeout; finished results have been passed to ``on_result``."""


def require_finite(losses: Sequence[Tensor], names: Sequence[str], first: int = 0) -> None:
    """Raise a ValueError that names the first step at which a loss is not finite, and its training.

    Args:
        losses: losses of B networks (B,) in step ``first`` and in the following steps.
        names: name of each training.
        first: index of the first step.
    """
    broken = ~torch.stack([*losses]).isfinite()  # (steps, B)
    if broken.any():
        step, network = broken.nonzero()[0].tolist()
        raise ValueError(
            f"{names[network]} diverged: its loss became NaN or infinite at step {first + step}: "
            "lower the learning rate"
        )


def stacked(results: Sequence[TrainingResult]) -> TrainingResult:
    """Return the results of B networks as one whose fields have the shape (B, ...)."""
    columns: Any = zip(*(vars(result).values() for result in results), strict=True)
    *tensors, measured = [None if column[0] is None else [*column] for column in columns]
    values: list[Any] = [*(column and torch.stack(column) for column in tensors), measured]
    return TrainingResult(*values)
