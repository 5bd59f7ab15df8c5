"""The experiment on shortcut injection (jobs ``notes-*``): which injected shortcuts a network
follows, and why.
"""

import numpy as np
from torch import Tensor, nn

from nads_book.experiments import Context, Facts, Row, TrainingSize, Unit
from nads_book.published.waves import spread
from nads_book.studies.poison_and_flip import PhotoStudy
from nads_book.studies.presets import Size
from nads_book.studies.shortcut_injection import (
    COMMON_DEVIATION,
    ShortcutInjection,
    wrong_labels,
)
from nads_core.data.images import normalize
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
        clean = {"index": None, "images": "photos", "background": "kept", "written": "none"}
        units: list[Unit] = [clean | {"size": None}]
        names = ("background", "written", "size")
        for place in spread(np.log1p(size.injection_indices)[:, None]):
            carrier = {"index": size.injection_indices[place]}
            for condition in conditions:
                units.append(clean | carrier | dict(zip(names, condition, strict=True)))
        return units

    @classmethod
    def training(cls, size: Size) -> TrainingSize:
        return size.injection or size.photos

    def settings(self, photos: str | None = None) -> Facts:
        return super().settings(photos) | {"common_deviation": COMMON_DEVIATION}

    def dataset(self, unit: Unit, train: bool, root: str | None) -> Dataset:
        images, injection = self.photos(train, root), self.injection(unit, root)
        prepared = injection.prepare(images.images, unit["background"])
        if train:
            prepared = injection.inject(prepared, images.labels, unit["written"], unit["size"])
        return normalize(prepared), images.labels

    def measure(self, unit: Unit, context: Context, network: nn.Module) -> Facts:
        """Return how often a network follows wrong shortcuts on test images, and the moments of
        carriers.
        """
        test = self.photos(False, context.root)
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
        train = self.photos(True, root)
        return ShortcutInjection(train.images, self.nads, unit["index"] or 0)
