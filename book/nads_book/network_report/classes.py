"""What classes ask for: how sensitive networks are along the difference of each pair of classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nads_book.network_report.parts import Figure, Section, least_width, picture
from nads_book.network_report.sample import Sample, differs
from nads_book.statistics import Measured
from nads_core.data import ImageSet
from nads_core.directions import SecondMoment

PARTS = 20  # of the inputs of each class
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
    energy: Measured
    known: bool


def class_energy(images: ImageSet, moment: SecondMoment) -> Measured:
    """Return the energy of networks along the differences of class means, relative to that along a
    random direction, with its 95 % interval over inputs and networks.

    Args:
        images: labelled inputs of the networks' shape, see `class_pairs`.
        moment: second moment C of the networks' gradients.

    Raises:
        ValueError: if inputs have another shape, or classes are too small.
    """
    return class_pairs(images, Sample.of_moment(moment))[0]


def classes(sample: Sample, images: ImageSet) -> Section:
    """Describe the energy along differences of classes, and the pairs where it is smallest."""
    overall, pairs, means = class_pairs(images, sample)
    named = {
        pair.classes: " – ".join(images.class_names[i] for i in pair.classes) for pair in pairs
    }
    known = [pair for pair in pairs if pair.known]
    deaf = [pair for pair in known if pair.energy.interval[1] < 1]
    sentences = []
    if differs(overall, 1):
        sentences.append(
            f"Between classes the energy is {overall} times that along a random direction (all "
            f"pairs of classes, weighted by squared distance; {len(images):,} inputs, "
            f"{images.source})."
        )
    if deaf and len(pairs) > 1:
        least = "; ".join(f"{named[pair.classes]}, {pair.energy}" for pair in deaf[:_DRAWN])
        sentences.append(
            f"Deaf: {len(deaf)} of {len(pairs)} pairs differ along directions to which the network "
            "responds less than to a random one (intervals of all pairs hold together). The "
            f"lowest: {least}."
        )
    opening = sentences[-1] if sentences else ""
    sentences.append(
        f"The inputs distinguish the means of {len(known)} of {len(pairs)} pairs, and no statement "
        "about single pairs includes others. Only class means count here, not what else "
        "distinguishes classes."
    )
    figures = []
    for pair in (
        known[:_DRAWN] if overall.interval[0] > 0 else []
    ):  # otherwise the networks are too few
        first, second = (means[i].numpy() for i in pair.classes)
        names = [images.class_names[i] for i in pair.classes]
        shown = [
            picture(mean, name, signed=False)
            for mean, name in zip((first, second), names, strict=True)
        ]
        shown.append(picture(first - second, "difference"))
        caption = f"energy {pair.energy} times that of a random direction"
        width = least_width(70, first.shape)
        figures.append(Figure(shown, caption, width, narrow=first.ndim == 3))
    numbers = [
        {"classes": named[pair.classes].split(" – "), "sensitivity": pair.energy}
        for pair in pairs[:_LISTED]
    ]
    title = "What your classes ask for"
    return Section(title, sentences, figures, {"lift": overall, "pairs": numbers}, opening)


def class_pairs(images: ImageSet, sample: Sample) -> tuple[Measured, list[Pair], Tensor]:
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
    length = _across_parts(means, means)  # (1 + P, 1 + pairs)
    halves = zip(sample.x, sample.y, strict=True)
    energy = np.stack([_across_parts(means @ x.T, means @ y.T) for x, y in halves])
    mean = sample.energies / means.shape[2]  # (n,)
    found = sample.estimate(
        np.column_stack([energy[:, 0], mean]), lambda e: e[:-1] / length[0] / e[-1]
    )
    of_inputs = _error_without_parts(energy[:, 1:].mean(0) / length[1:] / mean.mean())
    noise = _error_without_parts(length[1:])
    chosen = torch.combinations(torch.arange(means.shape[1])).tolist()

    def measured(number: int, num_compared: int = 1) -> Measured:
        of_networks = found[number]
        error = float(np.hypot(of_networks.error, of_inputs[number]))
        return Measured(of_networks.value, error, PARTS, num_compared)

    count = len(chosen)
    pairs = [
        Pair(
            (first, second),
            measured(i, count),
            Measured(length[0, i], noise[i], PARTS, count).interval[0] > 0,
        )
        for i, (first, second) in enumerate(chosen, start=1)
    ]
    pairs.sort(key=lambda pair: pair.energy.value)
    return measured(0), pairs, means.mean(0).unflatten(1, sample.shape)


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


def _across_parts(x: Tensor, y: Tensor) -> np.ndarray:
    """Return (x_pa - x_pb) . (y_qa - y_qb), averaged over parts p != q, for each pair of classes a
    and b, (P, K, R) -> (1 + P, 1 + pairs).

    The first row is of all parts, the others are without one part each. The first column is the sum
    over all pairs.
    """
    kept = torch.cat([torch.ones(1, PARTS), 1 - torch.eye(PARTS)]).double()  # (1 + P, P)
    weights = kept[:, :, None] * kept[:, None] * (1 - torch.eye(PARTS))  # p = q is left out
    weights /= weights.sum((1, 2), keepdim=True)
    products = torch.einsum("par,qbr->pqab", x.double(), y.double())
    products = torch.einsum("zpq,pqab->zab", weights, products)
    squares = products.diagonal(dim1=1, dim2=2)  # (1 + P, K)
    differences = squares[:, :, None] + squares[:, None] - products - products.mT
    first, second = torch.combinations(torch.arange(x.shape[1])).T
    pairs = differences[:, first, second]
    return torch.cat([pairs.sum(1, keepdim=True), pairs], 1).numpy()


def _error_without_parts(values: np.ndarray) -> np.ndarray:
    """Return the standard error of numbers from their values without one part each, (P, ...)."""
    return np.sqrt((PARTS - 1) * values.var(0))
