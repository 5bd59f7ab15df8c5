"""What classes ask for: how sensitive networks are along the difference of each pair of classes."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nads_book.network_report.parts import Figure, Section, least_width, picture
from nads_book.network_report.sample import Estimate, Sample
from nads_core.data import ImageSet

PARTS = 20  # of the inputs of each class
_KEPT = np.vstack([np.ones(PARTS), 1 - np.eye(PARTS)])  # all parts, and all but one: (1 + P, P)
_DRAWN, _LISTED = 3, 200  # pairs that are drawn or named, and pairs among the numbers


class Pair(NamedTuple):
    """Two classes.

    Args:
        classes: labels of the two classes.
        energy: energy along the difference d of their means, relative to that along a random
            direction, (d^T C d / d^T d) / (tr C / D). Intervals hold for all pairs together.
        known: whether inputs distinguish the two means.
    """

    classes: tuple[int, int]
    energy: Estimate
    known: bool


def classes(sample: Sample, images: ImageSet) -> Section:
    """Describe the energy along differences of classes, and the pairs where it is smallest."""
    overall, pairs, means = class_pairs(images, sample)
    named = [" – ".join(images.class_names[i] for i in pair.classes) for pair in pairs]
    known = [pair for pair in pairs if pair.known]
    deaf = [pair for pair in known if pair.energy.high < 1]
    sentences = []
    if overall.differs_from(1):
        sentences.append(
            f"Between classes the energy is {overall} times that along a random direction (all "
            f"pairs of classes, weighted by squared distance; {len(images):,} inputs, "
            f"{images.source})."
        )
    if deaf and len(pairs) > 1:
        least = [f"{named[pairs.index(pair)]}, {pair.energy}" for pair in deaf[:_DRAWN]]
        sentences.append(
            f"Deaf: {len(deaf)} of {len(pairs)} pairs differ along directions to which the network "
            "responds less than to a random one (intervals of all pairs hold together). The "
            f"lowest: {'; '.join(least)}."
        )
    opening = sentences[-1] if sentences else ""
    sentences.append(
        f"The inputs distinguish the means of {len(known)} of {len(pairs)} pairs, and no statement "
        "about single pairs includes others. Only class means count here, not what else "
        "distinguishes classes."
    )
    figures = []
    for pair in known[:_DRAWN] if overall.low > 0 else []:  # otherwise the networks are too few
        shown = [
            picture(means[i].numpy(), images.class_names[i], signed=False) for i in pair.classes
        ]
        first, second = (means[i].numpy() for i in pair.classes)
        shown.append(picture(first - second, "difference"))
        caption = f"energy {pair.energy} times that of a random direction"
        width = least_width(70, tuple(first.shape))
        figures.append(Figure(shown, caption, width, narrow=means.dim() == 4))
    numbers = [
        {"classes": name.split(" – "), "sensitivity": pair.energy}
        for name, pair in zip(named[:_LISTED], pairs, strict=False)
    ]
    title = "What your classes ask for"
    return Section(title, sentences, figures, {"lift": overall, "pairs": numbers}, opening)


def class_pairs(images: ImageSet, sample: Sample) -> tuple[Estimate, list[Pair], Tensor]:
    """Compare the differences d of class means with the second moment C of the networks' gradients.

    Each class is divided into parts. Products of different parts estimate d^T C d and d^T d without
    the noise of the means: E[(x . d_p)(y . d_q)] = d^T C d for parts p != q. Errors are from
    leaving out each part of the inputs, and each group of networks (jackknife).

    Args:
        images: labelled inputs of the networks' shape, of at least two classes with 20 inputs each.
            For networks of one channel, images are averaged over theirs.
        sample: groups of networks.

    Returns:
        The energy along the differences of all pairs, weighted by their squared lengths; the pairs,
        in ascending order of energy; and the mean input of each class, (K, *shape).

    Raises:
        ValueError: if inputs have another shape, or classes are too small.
    """
    means = means_of_parts(images, sample.shape)  # (P, K, D)
    x, y = (half @ means.flatten(0, 1).T for half in (sample.x, sample.y))
    x, y = (half.unflatten(2, means.shape[:2]).double().numpy() for half in (x, y))  # (n, R, P, K)
    chosen = list(combinations(range(means.shape[1]), 2))
    lengths, energies = [], []  # of each pair: (1 + P,) and (n, 1 + P)
    for a, b in chosen:
        difference = (means[:, a] - means[:, b]).double().numpy().T  # (D, P)
        lengths.append(_across_parts(difference, difference).sum(0))
        energies.append(_across_parts(x[..., a] - x[..., b], y[..., a] - y[..., b]).sum(1))
    # The sum over all pairs goes first: (..., 1 + pairs)
    length, energy = (np.stack([sum(each), *each], axis=-1) for each in (lengths, energies))
    mean = sample.energies / means.shape[2]  # (n,)
    values, of_networks = sample.errors(
        np.column_stack([energy[:, 0], mean]), lambda e: e[..., :-1] / length[0] / e[..., -1:]
    )
    of_inputs = _error_without_parts(energy[:, 1:].mean(0) / length[1:] / mean.mean())
    errors, noise = np.hypot(of_networks, of_inputs), _error_without_parts(length[1:])

    def interval(number: int, values: np.ndarray, errors: np.ndarray) -> Estimate:
        return Estimate.student(values[number], errors[number], PARTS, len(chosen) if number else 1)

    pairs = [
        Pair(of, interval(i, values, errors), interval(i, length[0], noise).low > 0)
        for i, of in enumerate(chosen, start=1)
    ]
    pairs.sort(key=lambda pair: pair.energy.value)
    return interval(0, values, errors), pairs, means.mean(0).unflatten(1, sample.shape)


def means_of_parts(images: ImageSet, shape: tuple[int, ...]) -> Tensor:
    """Return the mean input of each part of each class, (P, K, D).

    Raises:
        ValueError: if inputs have another shape, or classes are too small.
    """
    inputs, names = images.images, images.class_names
    if len(shape) == 3 and shape[0] == 1:
        inputs = inputs.mean(1, keepdim=True)
    if tuple(inputs.shape[1:]) != shape:
        raise ValueError(f"inputs of shape {tuple(inputs.shape[1:])} do not fit {shape}")
    classes = [inputs[images.labels == label].flatten(1) for label in range(len(names))]
    sizes = [len(rows) for rows in classes]
    if len(names) < 2 or min(sizes) < PARTS:
        got = dict(zip(names, sizes, strict=True))
        raise ValueError(f"at least two classes with {PARTS} inputs each are needed, got {got}")
    means = [rows[part::PARTS].mean(0) for part in range(PARTS) for rows in classes]
    return torch.stack(means).unflatten(0, (PARTS, -1))


def _across_parts(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the mean of x_p y_q over parts p != q, (..., P) -> (..., 1 + P).

    The first is of all parts, the others are without one part each.
    """
    same, counts = (x * y) @ _KEPT.T, _KEPT.sum(1)  # p = q is left out
    return ((x @ _KEPT.T) * (y @ _KEPT.T) - same) / (counts * (counts - 1))


def _error_without_parts(values: np.ndarray) -> np.ndarray:
    """Return the standard error of numbers from their values without one part each, (P, ...)."""
    return np.sqrt((PARTS - 1) * values.var(0))
