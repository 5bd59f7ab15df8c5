"""Labelled images, and their normalisation."""

from dataclasses import dataclass

from torch import Tensor

CIFAR10_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR10_STD = (0.247, 0.243, 0.261)


@dataclass(frozen=True)
class ImageSet:
    """Labelled images.

    Args:
        images: (N, C, H, W) float32 in [0, 1].
        labels: (N,) int64.
        class_names: name of each label.
        source: origin of the images, for captions and provenance.
    """

    images: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    source: str

    def __len__(self) -> int:
        return len(self.images)


def normalize(
    images: Tensor, mean: tuple[float, ...] = CIFAR10_MEAN, std: tuple[float, ...] = CIFAR10_STD
) -> Tensor:
    """Subtract a mean and divide by a deviation, channel by channel: (N, C, H, W) -> (N, C, H, W).

    Raises:
        ValueError: if there is not one mean and deviation for each channel.
    """
    if not (channels := images.shape[1]) == len(mean) == len(std):
        raise ValueError(
            f"images have {channels} channels, "
            f"but there are {len(mean)} means and {len(std)} deviations"
        )
    return (images - images.new_tensor(mean)[:, None, None]) / images.new_tensor(std)[:, None, None]
