"""The experiment on shortcut injection (jobs ``notes-*``): which injected shortcuts a network
follows, and why.
"""

from functools import lru_cache

import numpy as np
from torch import Tensor, nn

from nads_book.experiments import Context, Facts, Row, TrainingSize, Unit
from nads_book.published.waves import spread
from nads_book.studies.poison_and_flip import PhotoStudy, load_photos
from nads_book.studies.presets import Size
from nads_book.studies.shortcut_injection import (
    COMMON_DEVIATION,
    ShortcutInjection,
    gaussian_images,
    wrong_labels,
)
from nads_core.data.images import ImageSet, normalize
from nads_core.training import Dataset, predicted_classes

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


def _unit(index: int | None, images: str, condition: _Condition = ("kept", "none", None)) -> Unit:
    names = ("index", "images", "background", "written", "size")
    return dict(zip(names, (index, images, *condition), strict=True))


class InjectionStudy(PhotoStudy):
    """Networks on photos whose coordinates along NADs are prepared and carry a shortcut to the
    class.
    """

    figure = "notes"
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

    def settings(self, photos: str | None = None) -> Facts:
        return super().settings(photos) | {"common_deviation": COMMON_DEVIATION}

    def dataset(self, unit: Unit, train: bool, root: str | None) -> Dataset:
        images, injection = self._images(unit, train, root), self.injection(unit, root)
        prepared = injection.prepare(images.images, unit["background"])
        if train:
            prepared = injection.inject(prepared, images.labels, unit["written"], unit["size"])
        return normalize(prepared), images.labels

    def measure(self, unit: Unit, context: Context, network: nn.Module) -> Facts:
        """Return how often a network follows wrong shortcuts on test images, and the moments of
        carriers.
        """
        test = self._images(unit, False, context.root)
        injection, wrong = self.injection(unit, context.root), wrong_labels(test.labels)
        clean = injection.prepare(test.images, unit["background"])

        def followed(images: Tensor) -> dict[str, float]:
            share = (predicted_classes(network, normalize(images)) == wrong).double().mean()
            return {"class": round(float(share), 5)}

        row: Row = {"unprompted": followed(clean)}
        if unit["written"] != "none":
            row["followed"] = followed(
                injection.inject(clean, wrong, unit["written"], unit["size"])
            )
        if unit["index"] is not None:
            row["mean"], row["deviation"] = (round(x, 6) for x in injection.carrier_moments)
        return row

    def injection(self, unit: Unit, root: str | None) -> ShortcutInjection:
        """Return the injection of a unit, whose moments are those of its training images."""
        train = self._images(unit, True, root)
        return ShortcutInjection(train.images, self.nads, unit["index"] or 0)

    def _images(self, unit: Unit, train: bool, root: str | None) -> ImageSet:
        """Return the images of a unit before they are prepared."""
        if unit["images"] == "photos":
            return self.photos(train, root)
        return _mixture(
            self.source(root), self.num_train if train else self.num_test, seed=int(train)
        )
