"""NADs along which classes of labelled images differ, and the sensitivity of untrained networks
along them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from nads_core.data.images import ImageSet
from nads_core.directions import NADs
from nads_core.runtime.seeds import seed_sequence

_PARTS, _LABELLINGS = 20, 20
_STUDENT = 2.093  # the 97.5 % quantile of Student's distribution with 19 degrees of freedom


@dataclass(frozen=True)
class ClassDifferences:
    """How the classes of images differ along NADs; of NADs with one channel, in each channel of the
    images.

    Args:
        explained: (n,), the share of the variance along each NAD that the classes explain, in [0,
            1] (eta squared).
        chance: (n,), the 95th percentile of ``explained`` under random labellings of the same
            images.
        between: (n,), the variance of the classes' means along each NAD, in units of pixels
            squared, less what random labels would give; it may be negative where classes do not
            differ.
        within: (n,), the variance within the classes.
        lift: sensitivity of an untrained network along class differences, relative to a random
            direction: tr(C B) / (tr C tr B / D), with the second moments C of the network's
            gradients and B of the class means; 1 where the architecture does not matter.
        lift_interval: 95 % interval of ``lift``, by a jackknife over twentieths of the images.
        lift_within: the same ratio for differences within classes.
    """

    explained: Tensor
    chance: Tensor
    between: Tensor
    within: Tensor
    lift: float
    lift_interval: tuple[float, float]
    lift_within: float

    def leading(self, count: int) -> list[int]:
        """Return the NADs along which the class means vary most, in descending order."""
        return [int(i) for i in self.between.argsort(descending=True)[:count]]


def class_differences(images: ImageSet, nads: NADs, *, seed: int = 0) -> ClassDifferences:
    """Compare the classes of images along NADs, by an analysis of variance along each.

    Args:
        images: labelled images of at least two classes with 20 images each, of the height and width
            of the NADs.
        nads: NADs with one channel, or with those of the images; all directions of the input space.
        seed: seed of the random labellings and of the parts of the jackknife.

    Raises:
        ValueError: if NADs do not fit the images or are only a part of a basis, or if classes are
            too small.
    """
    labels = images.labels.long()  # bytes and booleans would select as masks
    counts = torch.bincount(labels, minlength=len(images.class_names))
    if len(counts) < 2 or int(counts.min()) < _PARTS:
        sizes = dict(zip(images.class_names, counts.tolist(), strict=False))
        raise ValueError(f"at least two classes with {_PARTS} images each are needed, got {sizes}")
    analysis = _Analysis(_coordinates(images, nads))
    generator = torch.Generator().manual_seed(seed_sequence(seed, 9))
    between, within, explained = analysis(labels)
    shuffled = (
        labels[torch.randperm(len(labels), generator=generator)] for _ in range(_LABELLINGS)
    )
    chance = torch.stack([analysis(other)[2] for other in shuffled]).quantile(0.95, dim=0)
    parts = _jackknife_weights(labels, generator)
    lifts = torch.tensor(
        [_lift(analysis(labels, weights)[0], nads.eigenvalues) for weights in parts]
    )
    half_width = _STUDENT * float(((_PARTS - 1) * lifts.var(correction=0)).sqrt())
    lift, lift_within = (_lift(variances, nads.eigenvalues) for variances in (between, within))
    interval = (lift - half_width, lift + half_width)
    return ClassDifferences(explained, chance, between, within, lift, interval, lift_within)


def _coordinates(images: ImageSet, nads: NADs) -> Tensor:
    """Return coordinates of images along NADs: (N, c, n) in each of c channels, or (N, 1, n) in all
    together.
    """
    inputs, shape = tuple(nads.directions.shape[1:]), tuple(images.images.shape[1:])
    channels = inputs[0]
    if shape[1:] != inputs[1:] or channels not in (1, shape[0]):
        raise ValueError(f"NADs of inputs {inputs} do not fit images {shape}")
    if len(nads) < nads.basis.shape[0]:
        raise ValueError(
            f"{len(nads)} of {nads.basis.shape[0]} directions are only a part of a basis: "
            "compute all"
        )
    if channels == 1:
        return images.images.flatten(2) @ nads.basis
    return (images.images.flatten(1) @ nads.basis)[:, None]


class _Analysis:
    """Analysis of variance of coordinates (N, c, n), summed over the c channels."""

    def __init__(self, coordinates: Tensor):
        self.shape = coordinates.shape[1:]
        self.values = (coordinates - coordinates.mean(0)).flatten(1)  # (N, c n)
        self.squares = self.values.square()

    def __call__(
        self, labels: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the variance between classes and within them, and the share that classes explain,
        (n,) each.

        Args:
            labels: (N,).
            weights: (N,), 1 for images that count and 0 for others; 1 by default.
        """
        weights = torch.ones(len(labels)) if weights is None else weights
        members = torch.zeros(int(labels.max()) + 1, len(labels))
        members[labels, torch.arange(len(labels))] = weights
        sizes, number = members.sum(1), weights.sum()
        sums = members @ self.values  # (K, c n)
        mean_squares = sums.sum(0).square() / number
        sum_between = (sums.square() / sizes[:, None]).sum(0) - mean_squares
        sum_total = weights @ self.squares - mean_squares
        within = (sum_total - sum_between) / (number - len(sizes))
        # Effective, as classes differ in size
        class_size = (number - sizes.square().sum() / number) / (len(sizes) - 1)
        between = (sum_between / (len(sizes) - 1) - within) / class_size
        sums = between, within, sum_between, sum_total  # (c n,) each
        between, within, explained, total = (value.view(self.shape).sum(0) for value in sums)
        return between, within, explained / total.clamp(min=torch.finfo(torch.float32).tiny)


def _jackknife_weights(labels: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield weights (N,), 0 for one of `_PARTS` equal parts of each class and 1 for the other
    images.
    """
    part = torch.zeros(len(labels), dtype=torch.long)
    for label in labels.unique():
        members = (labels == label).nonzero()[:, 0]
        part[members[torch.randperm(len(members), generator=generator)]] = (
            torch.arange(len(members)) % _PARTS
        )
    for index in range(_PARTS):
        yield (part != index).float()


def _lift(variances: Tensor, eigenvalues: Tensor) -> float:
    total = float(variances.sum() * eigenvalues.mean())
    return float(variances @ eigenvalues.to(variances)) / total if total else float("nan")
