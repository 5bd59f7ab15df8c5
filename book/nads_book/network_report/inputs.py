"""The shape of a model's input, and images of that shape, where the user names neither."""

from __future__ import annotations

import functools
from pathlib import Path

from torch import nn

from nads_book.photos import DatasetNotFoundError, load_folder
from nads_book.photos.on_disk import open_folder
from nads_core.data import ImageSet
from nads_core.networks.architectures import (
    ARCHITECTURES,
    Architecture,
    Factory,
    architecture_named,
    imported,
    with_drawn_head,
)

_LARGEST = 224  # side of photos, above which they are scaled down


def input_shape(model: str, folder: Path | None = None) -> tuple[int, ...]:
    """Return the shape of the images of a folder, or of those that a model of a library takes.

    Args:
        model: name, as `compute_nads` takes it.
        folder: folder of images.

    Raises:
        ValueError: if neither is known.
    """
    # Models of libraries keep their own number of channels
    factory = architecture_named(model, (3, _LARGEST, _LARGEST))
    if isinstance(factory, Architecture):
        return 1, 32, 32
    network = factory()
    first = next((layer for layer in network.modules() if isinstance(layer, nn.Conv2d)), None)
    if folder:
        side = min(_LARGEST, *open_folder(images_folder(folder), None).read(0).size)
    elif model.startswith("torchvision:"):
        side = _LARGEST
    elif settings := getattr(network, "default_cfg", None):  # of timm
        side = settings["input_size"][-1]
    else:
        raise ValueError(f"the shape of the inputs of {model} is not known: pass --image-shape")
    return getattr(first, "in_channels", 3), side, side


def images_folder(folder: Path) -> Path:
    """Return the folder with one folder per class: ``train/`` where there is one.

    Raises:
        DatasetNotFoundError: if there is no such folder.
    """
    if not folder.is_dir():
        raise DatasetNotFoundError(f"there is no folder {folder}")
    return folder / "train" if (folder / "train").is_dir() else folder


def images_of_shape(folder: Path, shape: tuple[int, ...], num_images: int) -> ImageSet:
    """Load images for inputs of this shape, in one channel or in three.

    Raises:
        ValueError: unless inputs are square images of one or three channels.
    """
    if len(shape) != 3 or shape[1] != shape[2] or shape[0] not in (1, 3):
        raise ValueError(
            f"--images needs inputs (1, H, H) or (3, H, H), got {shape}: leave it out, or pass "
            "labelled inputs to nads_book.report_on in Python"
        )
    return load_folder(images_folder(folder), num_images, size=shape[1], name=folder.resolve().name)


def drawn_head(model: str) -> str | Factory:
    """Return the name of a model; or, of a factory in a module, a factory that draws a last linear
    layer of zeros, so that the output depends on the input.
    """
    if model in ARCHITECTURES or model.startswith(("torchvision:", "timm:")):
        return model
    factory = imported(model)
    return functools.wraps(factory)(with_drawn_head(factory))
