"""How sensitive networks are along the difference of each pair of classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nads_book.network_report.sample import FEWEST_NETWORKS, Sample
from nads_core.data import ImageSet

PARTS = 20  # of the inputs of each class, and of the networks


@dataclass(frozen=True)
class Sensitivity:
    """Energy along a difference d of class means, relative to a random direction.

    Args:
        classes: labels of the two classes; none where all pairs are taken together.
        value: the ratio (d^T C d / d^T d) / (tr C / D).
        error: standard error, from leaving out parts of the inputs and of the networks.
        num_compared: number of pairs among which this one is chosen.
        known: whether the inputs distinguish the two means.
    """

    classes: tuple[int, ...]
    value: float
    error: float
    num_compared: int = 1
    known: bool = True

    @property
    def interval(self) -> tuple[float, float]:
        """Student's interval, 95 % for all compared pairs together (Bonferroni)."""
        half = _quantile(self.num_compared) * self.error
        return self.value - half, self.value + half


@dataclass(frozen=True, eq=False)
class ClassPairs:
    """The result of `class_pairs`.

    Args:
        overall: sensitivity along the differences of all pairs, weighted by their squared lengths.
        pairs: sensitivity of each pair, in ascending order; those whose means the inputs do not
            distinguish last.
        means: mean input of each class, (K, *shape).
    """

    overall: Sensitivity
    pairs: list[Sensitivity]
    means: Tensor

    @property
    def known(self) -> list[Sensitivity]:
        """Pairs whose means the inputs distinguish, in ascending order."""
        return [pair for pair in self.pairs if pair.known]

    @property
    def deaf(self) -> list[Sensitivity]:
        """Pairs along which networks are less sensitive than along a random direction."""
        return [pair for pair in self.known if pair.interval[1] < 1]


def class_pairs(images: ImageSet, sample: Sample) -> ClassPairs:
    """Compare the differences d of class means with the second moment C of the networks' gradients.

    Each class is divided into parts. Products of different parts estimate d^T C d and d^T d without
    the noise of the
    means: E[(x . d_p)(y . d_q)] = d^T C d for parts p != q.

    Args:
        images: labelled inputs of the networks' shape, of at least two classes with 20 inputs each.
            For networks of one channel, images are averaged over theirs.
        sample: networks.

    Raises:
        ValueError: if inputs have another shape, or classes are too small.
    """
    inputs = images.images
    if len(sample.shape) == 3 and sample.shape[0] == 1:
        inputs = inputs.mean(1, keepdim=True)
    if tuple(inputs.shape[1:]) != sample.shape:
        raise ValueError(f"inputs of shape {tuple(inputs.shape[1:])} do not fit {sample.shape}")
    counts = torch.bincount(images.labels, minlength=len(images.class_names))
    if len(counts) < 2 or int(counts.min()) < PARTS:
        sizes = dict(zip(images.class_names, counts.tolist(), strict=False))
        raise ValueError(f"at least two classes with {PARTS} inputs each are needed, got {sizes}")
    rows = [inputs[images.labels == label].flatten(1) for label in range(len(counts))]
    parts = torch.stack(  # (P, K, D)
        [torch.stack([of_class[part::PARTS].mean(0) for of_class in rows]) for part in range(PARTS)]
    )
    x, y = (half.flatten(0, 1).float() @ parts.flatten(0, 1).T for half in (sample.x, sample.y))
    x, y = (half.unflatten(1, (PARTS, -1)) for half in (x, y))  # (n R, P, K)
    traces = (sample.x * sample.y).sum(2).flatten().double()  # (n R,)
    of_inputs = _sums(parts.permute(2, 0, 1), parts.permute(2, 0, 1))
    of_networks = _sums(x, y)

    def ratios(energies: Tensor, trace: Tensor, lengths: Tensor) -> np.ndarray:
        """Return the ratio of all pairs together, and of each, from sums over networks (K, K)."""
        above, below = (_of_pairs(matrix) for matrix in (energies, lengths))
        above, below = (np.append(each.sum(), each) for each in (above, below))
        with np.errstate(invalid="ignore", divide="ignore"):
            return above / below * sample.x.shape[2] / float(trace)

    values = ratios(of_networks[0], traces.sum(), of_inputs[0])
    without_part = [
        ratios(energies, traces.sum(), lengths)
        for energies, lengths in zip(of_networks[1:], of_inputs[1:], strict=True)
    ]
    variances = (PARTS - 1) * np.var(without_part, axis=0)
    if sample.relative_error is None:
        readouts, count = sample.x.shape[1], min(PARTS, len(sample))
        groups = np.array_split(np.arange(len(x)).reshape(-1, readouts), count)
        without_group = [
            ratios(
                of_networks[0] - _sums(x[group.ravel()], y[group.ravel()])[0],
                traces.sum() - traces[group.ravel()].sum(),
                of_inputs[0],
            )
            for group in groups
        ]
        few = len(sample) < FEWEST_NETWORKS
        variances += np.inf if few else (count - 1) * np.var(without_group, axis=0)
    else:
        variances += 2 * np.square(sample.relative_error * values)  # of numerator and trace
    return _result(values, np.sqrt(variances), of_inputs, parts.mean(0).view(-1, *sample.shape))


def _result(values: np.ndarray, errors: np.ndarray, lengths: Tensor, means: Tensor) -> ClassPairs:
    """Return the sensitivities with these errors, (1 + pairs,) each, in order."""
    squares = np.stack([_of_pairs(matrix) for matrix in lengths])  # (1 + P, pairs)
    noise = np.sqrt((PARTS - 1) * squares[1:].var(0))
    count = squares.shape[1]
    known = squares[0] > _quantile(count) * noise
    labels = np.stack(np.triu_indices(len(means), 1), axis=1).tolist()
    pairs = [
        Sensitivity((a, b), float(value), float(error), count, bool(seen))
        for (a, b), value, error, seen in zip(labels, values[1:], errors[1:], known, strict=True)
    ]
    pairs.sort(key=lambda pair: (not pair.known, pair.value))
    return ClassPairs(Sensitivity((), float(values[0]), float(errors[0])), pairs, means)


def _sums(first: Tensor, second: Tensor) -> Tensor:
    """Return mean products of different parts, summed over N rows: (N, P, K) -> (1 + P, K, K).

    The first matrix is of all parts, the others are without one part each.
    """
    first, second = first.double(), second.double()
    own = torch.einsum("npk,npl->pkl", first, second)
    whole, whole_second = first.sum(1), second.sum(1)  # (N, K)
    count = first.shape[1]
    results = [(whole.T @ whole_second - own.sum(0)) / (count * (count - 1))]
    for part in range(count):
        rest = (whole - first[:, part]).T @ (whole_second - second[:, part])
        results.append((rest - own.sum(0) + own[part]) / ((count - 1) * (count - 2)))
    sums = torch.stack(results)
    return (sums + sums.mT) / 2


def _of_pairs(matrix: Tensor) -> np.ndarray:
    """Return d^T A d of the difference of each pair, from the products of all classes (K, K)."""
    own = matrix.diagonal()
    squares = (own[:, None] + own[None, :] - 2 * matrix).numpy()
    return squares[np.triu_indices(len(matrix), 1)]


def _quantile(num_compared: int) -> float:
    from scipy.stats import t

    return float(t.ppf(1 - 0.025 / num_compared, PARTS - 1))
