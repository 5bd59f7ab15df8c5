"""Experiments on the photos of CIFAR-10: Fig. 7 (poison) and Fig. 8 (flip)."""

from functools import lru_cache

import numpy as np
from torch import nn

from nads_book.experiments import Context, Facts, TrainingSize, Unit, factorial, rounded
from nads_book.photos import DatasetNotFoundError, load_images
from nads_book.published.waves import spread
from nads_book.studies.presets import Size
from nads_book.studies.responses import changed_shares
from nads_book.studies.trainings import TrainingStudy
from nads_core.data.images import ImageSet, normalize
from nads_core.data.poisoning import flip, poison
from nads_core.training import Dataset

USE_INDICES = (0, 1, 2, 3, 5, 8, 12, 20, 30, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1000)
FACTORS = {"remove": 1, "flip": 2}  # multiples of a component that are subtracted


@lru_cache(maxsize=2)
def load_photos(dataset: str, train: bool, count: int, root: str | None) -> ImageSet:
    """Return the first photos of a dataset, see `load_images`."""
    return load_images(dataset, train=train, num_images=count, root=root, progress=False)


class PhotoStudy(TrainingStudy):
    """Networks on CIFAR-10, prepared in another way for each unit."""

    on_photos = True
    image_shape = (3, 32, 32)
    num_classes = 10

    @classmethod
    def training(cls, size: Size) -> TrainingSize:
        return size.photos

    def dataset(self, unit: Unit, train: bool, root: str | None) -> Dataset:
        """Return the normalised training or test images of a unit, and their labels."""
        raise NotImplementedError

    def data(self, unit: Unit, train: bool, context: Context) -> Dataset:
        source = self.photos(train, context.root).source
        if source != context.source:  # a worker may have been started with another environment
            raise ValueError(f"these images are {source}, but the results name {context.source}")
        return self.dataset(unit, train, context.root)

    def settings(self, photos: str | None = None) -> Facts:
        return super().settings() | {"photos": photos}

    def source(self, root: str | None) -> tuple[str, int, str | None]:
        """Return dataset, number and folder of the training photos; the smallest presets may have
        generated images.
        """
        return "auto" if self.preset in ("smoke", "demo") else "cifar10", self.num_train, root

    def photo_source(self, root: str | None) -> str | None:
        """Return `ImageSet.source` of the training images."""
        return self.photos(False, root).source

    def photos(self, train: bool, root: str | None) -> ImageSet:
        """Load a part of CIFAR-10; at the smallest presets generated images where there are no
        photos.
        """
        (dataset, _, _), count = self.source(root), self.num_train if train else self.num_test
        try:
            photos = load_photos(dataset, train, count, root)
        except DatasetNotFoundError as error:
            raise DatasetNotFoundError(
                f"{self.name} at preset {self.preset} needs the photos: {error}"
            ) from error
        if len(photos) != count:
            raise ValueError(
                f"{self.name} needs {count:,} images, but {photos.source} has {len(photos):,} "
                "(NADS_DATA)"
            )
        return photos


class Fig7(PhotoStudy):
    """Fig. 7, the cost of a poison along each NAD: `plot_accuracy_by_carrier`, in
    `07_poison`.
    """

    figure = "fig7"
    about_nads = True

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        indices = [size.poison_indices[i] for i in spread(np.log1p(size.poison_indices)[:, None])]
        return factorial(index=[None, *indices])  # the first without poison

    def dataset(self, unit: Unit, train: bool, root: str | None) -> Dataset:
        photos = self.photos(train, root)
        images, labels = photos.images, photos.labels
        if train and unit["index"] is not None:
            images = poison(images, labels, self.nads, unit["index"])
        return normalize(images), labels

    def measure(self, unit: Unit, context: Context, network: nn.Module) -> Facts:
        """Return the shares of clean test photos whose prediction changes without a NAD component,
        or with its sign.
        """
        images = normalize(self.photos(False, context.root).images[:2_000]).to(context.device)
        indices = [index for index in USE_INDICES if index < len(self.nads)]
        directions = self.nads.directions.flatten(1).to(images)
        shares = [
            changed_shares(network, images, directions[[i]], directions[[i]], FACTORS)
            for i in indices
        ]
        use: Facts = {"indices": indices, "num_images": len(images)}
        for change in FACTORS:
            use[change] = rounded([one[change] for one in shares], 4)
        return {"use": use}


class Fig8(PhotoStudy):
    """Fig. 8, the cost of reversing the order of the NAD components:
    `figures.plot_accuracies`, in `08_flip`.
    """

    figure = "fig8"
    about_nads = True

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        return factorial(flipped=[False, True])

    def dataset(self, unit: Unit, train: bool, root: str | None) -> Dataset:
        photos = self.photos(train, root)
        images = flip(photos.images, self.nads) if unit["flipped"] else photos.images
        return normalize(images), photos.labels
