"""From random weights to test accuracy: the first-step law, and a correction of it by the gain of
one small filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nads_book.experiments import Results
from nads_core.data.fourier import Frequency
from nads_core.directions import NADs

INFORMATIVE = (0.54, 0.995)  # accuracies that are neither chance nor perfect


def accuracies_by(field: str, results: Results) -> dict[Any, list[float]]:
    """Return the test accuracies, one per seed, by frequency or NAD index."""
    found: dict[Any, list[float]] = {}
    for row in results.rows:
        key = tuple(row[field]) if field == "frequency" else row[field]
        found.setdefault(key, []).append(row["test_accuracy"])
    return found


@dataclass(frozen=True, eq=False)
class Family:
    """Directions v with measured test accuracies on D(v).

    Args:
        keys: NAD indices or frequencies in ascending order, n of them.
        directions: (n, C, H, W), unit norm.
        accuracies: (n,) in [0, 1], means over seeds.
        num_test: (n,) numbers of test samples, over all seeds.
        num_train: number of training samples of each network.
        noise_std: sigma of D(v).
    """

    keys: Sequence[int] | Sequence[Frequency]
    directions: Tensor
    accuracies: np.ndarray
    num_test: np.ndarray
    num_train: int = 10_000
    noise_std: float = 1.0

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(cls, results: Results) -> Family:
        """Collect the rows of one sweep over directions, averaged over seeds."""
        job = results.experiment()
        name = job.unit_fields[0]
        accuracies = accuracies_by(name, results)
        keys = sorted(accuracies)
        return cls(
            keys,
            torch.stack([job.direction({name: key}) for key in keys]),
            np.array([np.mean(accuracies[key]) for key in keys]),
            np.array([job.num_test * len(accuracies[key]) for key in keys]),
            job.num_train,
            job.noise_std,
        )


def signal_to_noise(nads: NADs, directions: Tensor, num_train: int, noise_std: float) -> np.ndarray:
    """Return the ratio z for which the first-step law predicts the test accuracy Phi(z) on D(v).

    A linear classifier with weights w = C (1/N) sum y x, which is what one gradient step gives a
    network whose tangent kernel is x^T C x'. Its mean over training sets scores a test sample with
    the signal v^T C v and the noise noise_std sqrt(norm(P C v)^2 + noise_std^2 norm(P C P)^2 / N),
    with P = I - v v^T. The margin of D(v) is 1.

    Args:
        nads: eigenpairs of C; its scale does not matter.
        directions: v, (m, C, H, W), unit norm.
        num_train: N.
        noise_std: sigma of D(v).

    Returns:
        (m,), float64.
    """
    values = nads.eigenvalues.double()
    shares = (
        (directions.flatten(1).float() @ nads.basis).double().square()
    )  # (m, D) @ (D, n) -> (m, n)
    energies = (shares @ values).numpy()  # v^T C v
    squares = (shares @ values.square()).numpy()  # norm(C v)^2
    skewed = np.clip(squares - energies**2, 0, None)  # norm(P C v)^2
    across = float(values.square().sum()) - 2 * squares + energies**2  # norm(P C P)^2
    return energies / (noise_std * np.sqrt(skewed + noise_std**2 / num_train * across))


def predicted_accuracy(ratios: np.ndarray) -> np.ndarray:
    """Return Phi of signal-to-noise ratios of any shape: accuracies in [0, 1]."""
    from scipy.special import ndtr

    return ndtr(np.asarray(ratios, dtype=float))


def filter_gain(directions: Tensor, size: int = 5) -> np.ndarray:
    """Return the maximum gain of each direction through one filter, relative to white noise.

    The largest eigenvalue of the second moment of its patches: the squared norm of a direction that
    was convolved with a filter of norm 1, for the best of such filters. White noise has 1 behind
    any, a wave up to ``size**2``.

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
        """Fit by least squares to the logarithm of the excess over the law, where accuracies are
        informative.

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
