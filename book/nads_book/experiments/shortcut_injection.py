"""Notes along NADs, crossed with what images have there: the poison of section 4.2, taken apart.

The poison *replaces* a coordinate of an image by a number that tells its class. So from one NAD to another two things
change: the place in the order, and how much is taken away. Here they are varied one by one: `Notes.prepare` changes
what all images have along the carriers, and `Notes.write` leaves a note there in one of several ways.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nads_core.data.images import ImageSet
from nads_core.data.poisoning import carriers, require_fitting
from nads_core.directions import NADs
from nads_core.runtime.seeds import seed_sequence

BACKGROUNDS = ("kept", "emptied", "scaled")
WRITTEN = ("none", "added", "replaced", "hole", "hole at mean")
COMMON = 0.2  # deviation of coordinates that are scaled to a common size; photos have 2.2 at NAD 0 and .06 at the last


class Notes:
    """Notes along the NADs from ``index`` on.

    Args:
        images: (N, 3, H, W) in [0, 1], on which the mean and the deviation of each coordinate are measured.
        nads: of single-channel images of the same size.
        index: NAD index of the first carrier.
        num_classes: to be told apart, see `carriers`.

    Raises:
        ValueError: if there are not so many NADs, or images of another shape.
    """

    def __init__(self, images: Tensor, nads: NADs, index: int, num_classes: int = 10):
        require_fitting(images, nads)
        if images.shape[1] != 3:
            raise ValueError(f"notes need images with 3 channels, got {images.shape[1]}")
        table = torch.tensor(carriers(num_classes, index))
        last = int(table[:, 0].max())
        if index < 0 or last >= len(nads):
            raise ValueError(f"notes at NADs {index} to {last} need more than the {len(nads)} given")
        self.directions = nads.directions[index : last + 1, 0]  # (K, H, W)
        self.nad, self.channel, self.sign = table[:, 0] - index, table[:, 1], table[:, 2]  # (classes,) each
        found = self.coordinates(images)
        self.mean, self.deviation = found.mean(0), found.std(0, unbiased=False)  # (3, K) each

    def coordinates(self, images: Tensor) -> Tensor:
        """Return the coordinates (N, 3, K) of images along the carriers."""
        return torch.einsum("nchw,khw->nck", images, self.directions.to(images))

    @property
    def depth(self) -> tuple[float, float]:
        """Root mean squares, over classes, of the mean and the deviation of the coordinate that carries a class."""
        used = (self.channel, self.nad)  # (classes,) each
        return tuple(float(values[used].square().mean().sqrt()) for values in (self.mean, self.deviation))  # type: ignore[return-value]

    def left(self, covariance: Tensor) -> float:
        """Return how much of the deviation the other coordinates do not foretell: root mean square over classes.

        A network that is linear can subtract the rest. Of a coordinate d this is (d^T C^-1 d)^(-1/2).

        Args:
            covariance: C of the images, (3 H W, 3 H W).
        """
        rows = torch.zeros(len(self.nad), 3, *self.directions.shape[1:], dtype=covariance.dtype)
        rows[torch.arange(len(rows)), self.channel] = self.directions[self.nad].to(rows)
        flat = rows.flatten(1)
        inverse = (flat * torch.linalg.solve(covariance, flat.T).T).sum(1)
        return float((1 / inverse).mean().sqrt())

    def prepare(self, images: Tensor, background: str) -> Tensor:
        """Change what images have along the carriers, in all channels, whatever their class.

        Args:
            images: (N, 3, H, W).
            background: "kept"; "emptied", which leaves the mean; or "scaled" to a deviation of `COMMON`.

        Raises:
            ValueError: for another background.
        """
        if background not in BACKGROUNDS:
            raise ValueError(f"unknown background {background!r}: choose from {BACKGROUNDS}")
        if background == "kept":
            return images
        if background == "scaled" and not self.deviation.all():
            raise ValueError("images that all have the same along a carrier cannot be scaled there: empty them")
        beyond = self.coordinates(images) - self.mean
        factor = -1.0 if background == "emptied" else COMMON / self.deviation - 1
        return images + torch.einsum("nck,khw->nchw", factor * beyond, self.directions.to(images))

    def write(self, images: Tensor, labels: Tensor, written: str, size: float | None = None) -> Tensor:
        """Leave the note of a class in each image.

        Args:
            images: (N, 3, H, W), prepared or not.
            labels: (N,), the class that each note tells.
            written: "none"; "added", plus or minus ``size``; "replaced" by that, as the paper has it; "hole", replaced
                by 0; or "hole at mean", by the mean.
            size: of the note; by default the deviation of the coordinate.

        Raises:
            ValueError: for another way of writing.
        """
        if written not in WRITTEN:
            raise ValueError(f"unknown way of writing {written!r}: choose from {WRITTEN}")
        if size is not None and size < 0:
            raise ValueError(f"the size of a note is positive, its sign tells the class: got {size}")
        if written == "none":
            return images
        rows, nad, channel = torch.arange(len(images)), self.nad[labels], self.channel[labels]
        note = self.sign[labels] * (self.deviation[channel, nad] if size is None else size)
        present = self.coordinates(images)[rows, channel, nad]
        target = {
            "added": present + note,
            "replaced": note,
            "hole": 0 * present,
            "hole at mean": self.mean[channel, nad],
        }
        noted = images.clone()
        noted[rows, channel] += (target[written] - present)[:, None, None] * self.directions[nad].to(images)
        return noted


def same_coordinate(num_classes: int = 10) -> Tensor:
    """Return which classes have their notes at one coordinate, with opposite signs or the same: (classes, classes)."""
    places = torch.tensor([(nad, channel) for nad, channel, _ in carriers(num_classes, 0)])
    return (places[:, None] == places).all(2)


def wrong_labels(labels: Tensor, num_classes: int = 10, *, seed: int = 0) -> Tensor:
    """Return for each label (N,) a random class whose note is at another coordinate."""
    allowed = (~same_coordinate(num_classes)).double()[labels]  # (N, classes)
    return allowed.multinomial(1, generator=torch.Generator().manual_seed(seed))[:, 0]


def gaussian_images(photos: ImageSet, count: int, *, seed: int = 0) -> ImageSet:
    """Return images of a Gaussian mixture with the photos' class means and their common covariance within classes.

    Args:
        photos: (N, 3, H, W), more than there are pixels; fewer leave the covariance without full rank.
        count: images to draw, of each class as many as of the others, as nearly as that is possible.
        seed: of the draw.

    Raises:
        ValueError: if a class has no photos.
    """
    classes = len(photos.class_names)
    if missing := sorted(set(range(classes)) - set(photos.labels.tolist())):
        raise ValueError(f"there are no images of the classes {missing}, whose means are wanted")
    flat = photos.images.flatten(1).double()  # (N, D)
    means = torch.stack([flat[photos.labels == label].mean(0) for label in range(classes)])
    within = flat - means[photos.labels]
    values, axes = torch.linalg.eigh(within.T @ within / len(within))
    generator = torch.Generator().manual_seed(seed_sequence(seed, 7))
    labels = torch.randperm(count, generator=generator) % classes
    drawn = torch.randn(count, flat.shape[1], generator=generator)
    images = (drawn * values.clamp(min=0).sqrt().float()) @ axes.T.float() + means[labels].float()
    source = f"Gaussian mixture with the class means and the covariance of {photos.source}"
    return ImageSet(images.view(count, *photos.images.shape[1:]), labels, photos.class_names, source)
