"""The shape of a model's input, and images of that shape, where the user names neither."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nads_core.data import ImageSet, load_folder
from nads_core.networks.architectures import Architecture, architecture_named
from nads_core.networks.readouts import with_reinit_readout

_SIDES = (32, 64, 224, 28, 48, 96, 128, 256, 299)  # of images, in pixels
_LENGTHS = (1_024, 1_000, 8_000, 16_000, 256, 512, 4_096)  # of sequences
_LARGEST = 224  # side of photos, above which they are scaled down


def input_shape(model: str, folder: Path | None = None) -> tuple[int, ...]:
    """Return a shape that a model accepts: of the images, of its settings, or a usual one.

    Args:
        model: name, as `compute_nads` takes it.
        folder: folder of images.

    Raises:
        ValueError: if the model accepts none of them.
    """
    if isinstance(architecture := architecture_named(model, (1, 32, 32)), Architecture):
        return 1, 32, 32
    tried, reasons = [], []
    for shape in _candidates(model, architecture, folder):
        try:
            factory = architecture_named(model, shape)
            with torch.no_grad():
                factory().eval()(torch.zeros(2, *shape))  # type: ignore[operator]  # a function
        except Exception as error:  # whatever the model's author chose to raise
            tried.append(" ".join(map(str, shape)))
            reasons.append(str(error))
        else:
            return shape
    problem = f"{model} accepts no input of shape {'; '.join(tried)} ({reasons[0]})"
    raise ValueError(f"{problem}: pass --image-shape, or a wrapper of one input")


def _candidates(model: str, factory: Any, folder: Path | None) -> Iterator[tuple[int, ...]]:
    """Yield shapes in the order in which they are tried."""
    network = factory()
    layers = (nn.Conv2d, nn.Conv1d, nn.Linear)
    first = next((layer for layer in network.modules() if isinstance(layer, layers)), None)
    sides = [_side_of(folder)] if folder else []
    settings = getattr(network, "default_cfg", None) or {}  # of timm
    if "input_size" in settings:
        sides.append(settings["input_size"][-1])
    elif model.startswith("torchvision:"):
        sides.append(_trained_side(model.partition(":")[2]))
    sides = [*dict.fromkeys((*sides, *_SIDES))]
    if isinstance(first, nn.Conv1d):
        yield from ((first.in_channels, length) for length in _LENGTHS)
    elif isinstance(first, nn.Linear):
        for channels in (3, 1):
            side = math.isqrt(first.in_features // channels)
            if folder and channels * side**2 == first.in_features:
                yield channels, side, side
        yield (first.in_features,)
    channels = first.in_channels if isinstance(first, nn.Conv2d) else 3
    yield from ((channels, side, side) for side in sides)


def _side_of(folder: Path) -> int:
    """Return the side of the first image, at most that of photos for trained networks."""
    from PIL import Image

    for path in sorted(images_folder(folder).rglob("*")):
        if path.suffix.lower() in Image.registered_extensions():
            with Image.open(path) as image:
                return min(_LARGEST, *image.size)
    return _SIDES[0]


def _trained_side(model: str) -> int:
    """Return the side of the images that a model of torchvision was trained on."""
    from torchvision.models import get_model_weights

    try:
        return int(get_model_weights(model.partition("?")[0]).DEFAULT.transforms().crop_size[0])
    except (ValueError, AttributeError):
        return _LARGEST


def images_folder(folder: Path) -> Path:
    """Return the folder with one folder per class: ``train/`` where there is one."""
    return folder / "train" if (folder / "train").is_dir() else folder


def images_of_shape(folder: Path, shape: tuple[int, ...], num_images: int) -> ImageSet:
    """Load images for inputs of this shape, in one channel or in three.

    Raises:
        ValueError: unless inputs are square images of one or three channels.
    """
    if len(shape) != 3 or shape[1] != shape[2] or shape[0] not in (1, 3):
        raise ValueError(
            f"--images needs inputs (1, H, H) or (3, H, H), got {shape}: leave it out, or pass "
            f"labelled inputs to "
            "nads_book.report_on in Python"
        )
    return load_folder(images_folder(folder), num_images, size=shape[1], name=folder.resolve().name)


def needs_reinit_readout(model: str, shape: tuple[int, ...]) -> bool:
    """Whether a model's last layer begins with zeros, so that its output is constant."""
    factory = architecture_named(model, shape)
    if isinstance(factory, Architecture):
        return False
    try:
        with_reinit_readout(partial(factory), shape)
    except Exception:  # of the model, or as it has no such layer: `compute_nads` says what is wrong
        return False
    return True
