"""Shortcuts injected along NADs, and ablation of what images have there: the poison of section 4.2,
taken apart.

The poison *replaces* a coordinate of an image by a number that depends on its class. So from one
NAD to another two things change: the place in the order, and how much is removed. Here they are
varied one by one: `ShortcutInjection.prepare` changes what all images have along the carriers, and
`ShortcutInjection.inject` adds or replaces what depends on the class.
"""

import torch
from torch import Tensor

from nads_core.data.poisoning import carriers
from nads_core.directions import NADs

CARRIERS = torch.tensor(carriers(10, 0))  # NAD, channel and sign of each class
COMMON_DEVIATION = 0.2  # of scaled coordinates; photos have 2.2 at NAD 0 and .06 at the last


class ShortcutInjection:
    """Shortcuts along the NADs from ``index`` on.

    Args:
        images: (N, 3, H, W) in [0, 1], on which the mean and the deviation of each coordinate are
            measured.
        nads: NADs of single-channel images of the same size.
        index: NAD index of the first carrier.
    """

    def __init__(self, images: Tensor, nads: NADs, index: int):
        nad, self.channel, self.sign = CARRIERS.unbind(1)  # (classes,) each
        self.nad = nad
        self.directions = nads.directions[index : index + int(nad.max()) + 1, 0]  # (K, H, W)
        coordinates = self.coordinates(images)
        self.mean = coordinates.mean(0)  # (C, K)
        self.deviation = coordinates.std(0, unbiased=False)

    def coordinates(self, images: Tensor) -> Tensor:
        """Return the coordinates (N, C, K) of images along the carriers."""
        return torch.einsum("nchw,khw->nck", images, self.directions.to(images))

    @property
    def carrier_moments(self) -> tuple[float, float]:
        """Mean and deviation of the coordinate that carries a class, root mean squares over
        classes.
        """
        mean, deviation = (
            float(values[self.channel, self.nad].square().mean().sqrt())
            for values in (self.mean, self.deviation)
        )
        return mean, deviation

    def prepare(self, images: Tensor, background: str) -> Tensor:
        """Change what images have along the carriers, in all channels, whatever their class.

        Args:
            images: (N, C, H, W).
            background: "kept"; "emptied", every coordinate at its mean; or "scaled" to
                `COMMON_DEVIATION`.
        """
        if background == "kept":
            return images
        centred = self.coordinates(images) - self.mean
        factor = -1.0 if background == "emptied" else COMMON_DEVIATION / self.deviation - 1
        return images + torch.einsum("nck,khw->nchw", factor * centred, self.directions.to(images))

    def inject(
        self, images: Tensor, labels: Tensor, mode: str, size: float | None = None
    ) -> Tensor:
        """Inject the shortcut of a class into each image.

        Args:
            images: (N, C, H, W), prepared or not.
            labels: (N,), class whose shortcut is injected into each image.
            mode: "none"; "added", plus or minus ``size``; "replaced" by that, as in the paper;
                "hole", replaced by 0; or "hole at mean", replaced by the mean.
            size: absolute value of the injected coordinate; by default the deviation of the
                coordinate.
        """
        if mode == "none":
            return images
        rows, nad, channel = torch.arange(len(images)), self.nad[labels], self.channel[labels]
        value = self.sign[labels] * (self.deviation[channel, nad] if size is None else size)
        present = self.coordinates(images)[rows, channel, nad]
        target = {
            "added": present + value,
            "replaced": value,
            "hole": 0 * present,
            "hole at mean": self.mean[channel, nad],
        }
        change = (target[mode] - present)[:, None, None]
        injected = images.clone()
        injected[rows, channel] += change * self.directions[nad].to(images)
        return injected


def wrong_labels(labels: Tensor) -> Tensor:
    """Return for each label (N,) a random class whose shortcut is at another coordinate."""
    places = CARRIERS[:, :2]  # whatever their signs
    other = (places[:, None] != places).any(2).double()  # (classes, classes)
    return other[labels].multinomial(1, generator=torch.Generator().manual_seed(0))[:, 0]
