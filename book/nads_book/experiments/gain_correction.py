"""What the first-step law misses: how loud a direction is behind one small filter, and what that adds to the law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nads_book.experiments.prediction import predicted_accuracy
from nads_book.experiments.stored import load_study

INFORMATIVE = (0.54, 0.995)  # accuracies that are neither chance nor perfect


def filter_gain(directions: Tensor, size: int = 5) -> np.ndarray:
    """Return how much louder than white noise a direction is behind the one filter that passes most of it.

    The largest eigenvalue of the second moment of its patches: the squared norm of a direction that was convolved with
    a filter of norm 1, for the best of such filters. White noise has 1 behind any, a wave up to ``size**2``.

    Args:
        directions: (m, 1, H, W), of norm 1.
        size: of a side of the filter; LeNet's have 5.

    Returns:
        (m,), float64.
    """
    patches = torch.nn.functional.unfold(directions.double(), size)  # (m, size^2, places)
    return torch.linalg.eigvalsh(patches @ patches.mT)[:, -1].numpy()


def informative(accuracies: np.ndarray) -> np.ndarray:
    """Whether accuracies are neither chance nor perfect."""
    return (accuracies > INFORMATIVE[0]) & (accuracies < INFORMATIVE[1])


@dataclass(frozen=True)
class GainCorrection:
    """The first-step law, its signal-to-noise ratio z multiplied by exp(a) gain^b z^c.

    An exponent c below zero says that training makes up for a part of what a small ratio lacks.

    Args:
        powers: a, b, c.
    """

    powers: tuple[float, float, float]

    @classmethod
    def fit(cls, ratios: np.ndarray, gains: np.ndarray, accuracies: np.ndarray) -> GainCorrection:
        """Fit by least squares to the logarithm of what accuracies are beyond the law, where they are informative.

        Args:
            ratios: z of the first-step law, (m,).
            gains: see `filter_gain`, (m,); all 1 for a law in which they do not count.
            accuracies: measured, (m,) in [0, 1].

        Raises:
            ValueError: if fewer than three accuracies say anything.
        """
        from scipy.special import ndtri

        kept = informative(accuracies)
        if kept.sum() < 3:
            raise ValueError(f"three accuracies between {INFORMATIVE} are needed, got {kept.sum()}")
        beyond = np.log(ndtri(accuracies[kept]) / ratios[kept])
        a, b, c = np.linalg.lstsq(_terms(ratios[kept], gains[kept]), beyond, rcond=None)[0]
        return cls((float(a), float(b), float(c)))

    def accuracies(self, ratios: np.ndarray, gains: np.ndarray) -> np.ndarray:
        """Return what is predicted, (m,) in [0, 1], from ratios z and gains (m,)."""
        return predicted_accuracy(ratios * np.exp(_terms(ratios, gains) @ np.array(self.powers)))


def _terms(ratios: np.ndarray, gains: np.ndarray) -> np.ndarray:
    return np.stack([np.ones(len(gains)), np.log(gains), np.log(np.maximum(ratios, 1e-6))], 1)


def measured() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what ``benchmarks/law.py`` found, ``candidates`` and ``prediction``, and the trainings it foretold."""
    return load_study("law.json"), load_study("law-trained.json")
