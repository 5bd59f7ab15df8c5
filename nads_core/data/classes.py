"""Along which NADs the classes of labelled images differ, and how much of that an untrained network is sensitive to."""

from __future__ import annotations

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
    """How the classes of images differ along NADs; of NADs with one channel, in each channel of the images.

    Args:
        explained: (n,), the share of the variance along each NAD that the classes explain, in [0, 1] (eta squared).
        chance: (n,), the 95th percentile of ``explained`` under random labellings of the same images.
        between: (n,), the variance of the classes' means along each NAD, in units of pixels squared, less what random
            labels would give; it may be negative where classes do not differ.
        within: (n,), the variance within the classes.
        lift: sensitivity of an untrained network along class differences, relative to a random direction: tr(C B) / (tr
            C tr B / D), with the second moments C of the network's gradients and B of the class means; 1 where the
            architecture does not matter.
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
        """Return the NADs along which the class means vary most, the first first."""
        return [int(i) for i in self.between.argsort(descending=True)[:count]]


def class_differences(images: ImageSet, nads: NADs, *, seed: int = 0, progress: bool = False) -> ClassDifferences:
    """Compare the classes of images along NADs, by an analysis of variance in each of them.

    Args:
        images: labelled, at least two classes with 20 images each, of the height and width of the NADs.
        nads: NADs with one channel, or with those of the images; all directions of the input space.
        seed: seed of the random labellings and of the parts of the jackknife.
        progress: whether to show a progress bar.

    Raises:
        ValueError: for NADs of other images, for NADs that are only a part of a basis, or classes that are too small.
    """
    from tqdm import tqdm

    counts = torch.bincount(images.labels, minlength=len(images.class_names))
    if len(counts) < 2 or int(counts.min()) < _PARTS:
        found = dict(zip(images.class_names, counts.tolist(), strict=False))
        raise ValueError(f"at least two classes with 20 images each are needed, got {found}")
    analysis, labels = _Analysis(_coordinates(images, nads)), images.labels
    generator = torch.Generator().manual_seed(seed_sequence(seed, 9))
    between, within, explained = analysis(labels)
    shuffled = (labels[torch.randperm(len(labels), generator=generator)] for _ in range(_LABELLINGS))
    chance = torch.stack([analysis(other)[2] for other in shuffled]).quantile(0.95, dim=0)
    rounds = tqdm(_without_a_part(labels, generator), desc="leaving images out", total=_PARTS, disable=not progress)
    lifts = torch.tensor([_lift(analysis(labels, kept)[0], nads.eigenvalues) for kept in rounds])
    error = float(((_PARTS - 1) * lifts.var(correction=0)).sqrt())
    lift, lift_within = (_lift(variances, nads.eigenvalues) for variances in (between, within))
    reach = _STUDENT * error
    return ClassDifferences(explained, chance, between, within, lift, (lift - reach, lift + reach), lift_within)


def _coordinates(images: ImageSet, nads: NADs) -> Tensor:
    """Return coordinates of images along NADs: (N, c, n), in each of c channels, or (N, 1, n) of all together."""
    channels, *size = nads.directions.shape[1:]
    if list(images.images.shape[2:]) != size or channels not in (1, images.images.shape[1]):
        raise ValueError(
            f"NADs of inputs {tuple(nads.directions.shape[1:])} do not fit images {tuple(images.images.shape[1:])}"
        )
    if len(nads) < nads.basis.shape[0]:
        raise ValueError(f"{len(nads)} of {nads.basis.shape[0]} directions are only a part of a basis: compute all")
    if channels == 1:
        return images.images.flatten(2) @ nads.basis
    return (images.images.flatten(1) @ nads.basis)[:, None]


class _Analysis:
    """The analysis of variance of coordinates (N, c, n); what channels have is added."""

    def __init__(self, coordinates: Tensor):
        self.shape = coordinates.shape[1:]
        self.values = (coordinates - coordinates.mean(0)).flatten(1)  # (N, c n)
        self.squares = self.values.square()

    def __call__(self, labels: Tensor, kept: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the variance between classes and inside them, and the share that classes explain, (n,) each.

        Args:
            labels: (N,).
            kept: (N,), 1 for images that count and 0 for others; all by default.
        """
        weights = torch.ones(len(labels)) if kept is None else kept
        members = torch.zeros(int(labels.max()) + 1, len(labels))
        members[labels, torch.arange(len(labels))] = weights
        sizes, number = members.sum(1), weights.sum()
        sums = members @ self.values  # (K, c n)
        level = sums.sum(0).square() / number
        among = (sums.square() / sizes[:, None]).sum(0) - level
        total = weights @ self.squares - level
        inside = (total - among) / (number - len(sizes))
        alike = (number - sizes.square().sum() / number) / (len(sizes) - 1)  # images a class, in the usual estimate
        between = (among / (len(sizes) - 1) - inside) / alike
        added = [value.view(self.shape).sum(0) for value in (between, inside, among, total)]
        return added[0], added[1], added[2] / added[3].clamp(min=torch.finfo(torch.float32).tiny)


def _without_a_part(labels: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield which images stay, (N,) of 0 and 1, when one of `_PARTS` equal parts of each class is left out."""
    part = torch.zeros(len(labels), dtype=torch.long)
    for label in labels.unique():
        members = (labels == label).nonzero()[:, 0]
        part[members[torch.randperm(len(members), generator=generator)]] = torch.arange(len(members)) % _PARTS
    for left_out in range(_PARTS):
        yield (part != left_out).float()


def _lift(variances: Tensor, eigenvalues: Tensor) -> float:
    total = float(variances.sum() * eigenvalues.mean())
    return float(variances @ eigenvalues.to(variances)) / total if total else float("nan")
