"""A correction of the first-step law: the maximum gain of a direction through one small filter."""

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
    """Return the maximum gain of each direction through one filter, relative to white noise.

    The largest eigenvalue of the second moment of its patches: the squared norm of a direction that was convolved with
    a filter of norm 1, for the best of such filters. White noise has 1 behind any, a wave up to ``size**2``.

    Args:
        directions: (m, 1, H, W), of norm 1.
        size: pixels of a side of the filter; LeNet's have 5.

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
    """The first-step law with its signal-to-noise ratio z multiplied by exp(a) gain^b z^c.

    With an exponent c below zero, training compensates a part of a small ratio.

    Args:
        powers: a, b, c.
    """

    powers: tuple[float, float, float]

    @classmethod
    def fit(cls, ratios: np.ndarray, gains: np.ndarray, accuracies: np.ndarray) -> GainCorrection:
        """Fit by least squares to the logarithm of the excess over the law, where accuracies are informative.

        Args:
            ratios: z of the first-step law, (m,).
            gains: gains of `filter_gain`, (m,); all 1 for a law without them.
            accuracies: accuracies after training, (m,) in [0, 1].

        Raises:
            ValueError: if fewer than three accuracies are informative.
        """
        from scipy.special import ndtri

        mask = informative(accuracies)
        if mask.sum() < 3:
            raise ValueError(f"three accuracies between {INFORMATIVE} are needed, got {mask.sum()}")
        beyond = np.log(ndtri(accuracies[mask]) / ratios[mask])
        a, b, c = np.linalg.lstsq(_terms(ratios[mask], gains[mask]), beyond, rcond=None)[0]
        return cls((float(a), float(b), float(c)))

    def accuracies(self, ratios: np.ndarray, gains: np.ndarray) -> np.ndarray:
        """Return predicted accuracies, (m,) in [0, 1], from ratios z and gains (m,)."""
        return predicted_accuracy(ratios * np.exp(_terms(ratios, gains) @ np.array(self.powers)))


def _terms(ratios: np.ndarray, gains: np.ndarray) -> np.ndarray:
    return np.stack([np.ones(len(gains)), np.log(gains), np.log(np.maximum(ratios, 1e-6))], 1)


def measured() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what ``benchmarks/law.py`` measured: ``candidates`` and ``prediction``, and the trainings predicted."""
    return load_study("law.json"), load_study("law-trained.json")
