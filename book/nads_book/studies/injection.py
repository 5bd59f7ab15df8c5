"""The experiment on shortcut injection (jobs ``notes-*``): which injected shortcuts a network
follows, and why.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nads_book.analysis.waves import spread
from nads_book.experiments import Context, Unit
from nads_book.experiments.presets import Size, TrainingSize
from nads_book.studies.poison_and_flip import PhotoStudy, load_photos
from nads_book.studies.shortcut_injection import (
    COMMON_DEVIATION,
    ShortcutInjection,
    gaussian_images,
    same_coordinate,
    wrong_labels,
)
from nads_core.data.images import ImageSet, normalize
from nads_core.training import Dataset, accuracy, predicted_classes

INJECTED_SIZES = (0.05, 0.2, 0.5)
_Condition = tuple[
    str, str, float | None
]  # background, mode and size, as they are stored; no size: the photos' own
_CONDITIONS: tuple[_Condition, ...] = (
    *(
        (background, "added", size)
        for background in ("emptied", "scaled")
        for size in INJECTED_SIZES
    ),
    ("kept", "replaced", 0.05),
    ("kept", "added", 0.05),
    ("kept", "added", None),
    ("kept", "hole", None),
    ("kept", "hole at mean", None),
    *((background, "none", None) for background in ("emptied", "scaled")),
)
_ON_MIXTURE: tuple[_Condition, ...] = (
    ("kept", "replaced", 0.05),
    ("emptied", "added", 0.2),
    ("emptied", "none", None),
)


@lru_cache(maxsize=2)
def _mixture(source: tuple[str, int, str | None], count: int, seed: int) -> ImageSet:
    """Draw images from the Gaussian mixture with the moments of training photos."""
    dataset, num_photos, root = source
    return gaussian_images(load_photos(dataset, True, num_photos, root), count, seed=seed)


@lru_cache(maxsize=1)
def _covariance(dataset: str, num_photos: int, root: str | None) -> Tensor:
    """Return the covariance of training photos, (D, D), plus that of rounding their pixels to 8
    bits.
    """
    covariance = torch.cov(
        load_photos(dataset, True, num_photos, root).images.flatten(1).double().T
    )
    return covariance + torch.eye(len(covariance)) * (1 / 255) ** 2 / 12


def _unit(index: int | None, images: str, condition: _Condition = ("kept", "none", None)) -> Unit:
    names = ("index", "images", "background", "written", "size")
    return dict(zip(names, (index, images, *condition), strict=True))


def followed_shares(network: nn.Module, images: Tensor, labels: Tensor) -> dict[str, float]:
    """Return the shares of normalised images classified as the injected label, and as one at its
    coordinate.

    An ablated coordinate has no sign, so that only the second share is informative about it.
    """
    predicted = predicted_classes(network, images)
    together = same_coordinate(channels=images.shape[1])
    hits = {"class": predicted == labels, "place": together[labels, predicted]}
    return {name: round(float(mask.double().mean()), 5) for name, mask in hits.items()}


class InjectionStudy(PhotoStudy):
    """Networks on photos whose coordinates along NADs are prepared and carry a shortcut to the
    class.
    """

    figure = "notes"
    unit_fields = ("index", "images", "background", "written", "size", "seed")
    about_nads = True
    same_weights = True

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        """Return all conditions at each carrier, the carriers in an even order, after images
        without a shortcut.
        """
        kinds = size.injection_conditions
        conditions = _CONDITIONS if kinds is None else [_CONDITIONS[kind] for kind in kinds]
        units = [_unit(None, "photos")] + [_unit(None, "mixture")] * bool(size.mixture_indices)
        for place in spread(np.log1p(size.injection_indices)[:, None]):
            index = size.injection_indices[place]
            units += [_unit(index, "photos", condition) for condition in conditions]
            if index in size.mixture_indices:
                units += [_unit(index, "mixture", condition) for condition in _ON_MIXTURE]
        return units

    @classmethod
    def training(cls, size: Size) -> TrainingSize:
        return size.injection or size.photos

    def settings(self, photos: str | None = None) -> dict[str, Any]:
        return super().settings(photos) | {"common_deviation": COMMON_DEVIATION}

    def dataset(self, unit: Unit, train: bool, root: str | None) -> Dataset:
        images, injection = self._images(unit, train, root), self.injection(unit, root)
        prepared = injection.prepare(images.images, unit["background"])
        if train:
            prepared = injection.inject(prepared, images.labels, unit["written"], unit["size"])
        return normalize(prepared), images.labels

    def measure(self, unit: Unit, context: Context, network: nn.Module) -> dict[str, Any]:
        """Measure how often a network follows wrong shortcuts on test images.

        A network that was trained without shortcuts is tested with those of all sizes.
        """
        root = context.root
        test, injection = self._images(unit, False, root), self.injection(unit, root)
        clean = injection.prepare(test.images, unit["background"])
        wrong = wrong_labels(test.labels, len(test.class_names))

        def followed(by: ShortcutInjection, mode: str, size: float | None) -> dict[str, float]:
            return followed_shares(network, normalize(by.inject(clean, wrong, mode, size)), wrong)

        unprepared = accuracy(network, (normalize(test.images), test.labels))
        row: dict[str, Any] = {
            "unprompted": followed(injection, "none", None),
            "unprepared_accuracy": round(unprepared, 5),
        }
        if unit["written"] != "none":
            row["followed"] = followed(injection, unit["written"], unit["size"])
        else:
            indices = [unit["index"]]
            if unit["index"] is None:
                indices = sorted({u["index"] for u in self.trainings} - {None})
            row["moved"] = {}
            for index in indices:
                other = self.injection(unit | {"index": index}, root)
                row["moved"][str(index)] = {
                    f"{size:g}": followed(other, "added", size) for size in INJECTED_SIZES
                }
        if unit["index"] is not None:
            row["mean"], row["deviation"] = (round(value, 6) for value in injection.carrier_moments)
            if unit["background"] == "kept":  # the covariance is that of images as they are
                left = injection.residual_deviation(_covariance(*self.source(root)))
                row["left"] = round(left, 6)
        return row

    def injection(self, unit: Unit, root: str | None) -> ShortcutInjection:
        """Return the injection of a unit, whose moments are those of its training images."""
        train = self._images(unit, True, root)
        return ShortcutInjection(
            train.images, self.nads, unit["index"] or 0, len(train.class_names)
        )

    def _images(self, unit: Unit, train: bool, root: str | None) -> ImageSet:
        """Return the images of a unit before they are prepared."""
        if unit["images"] == "photos":
            return self.photos(train, root)
        return _mixture(
            self.source(root), self.num_train if train else self.num_test, seed=int(train)
        )
