"""The shape of a model's input, and images of that shape, where the user names neither."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from nads_book.photos import DatasetNotFoundError, load_folder
from nads_book.photos.on_disk import open_folder
from nads_core.data import ImageSet
from nads_core.networks.architectures import Architecture, Factory, architecture_named

_SIDES = (32, 64, 224, 28, 128, 299)  # of images, in pixels
_LENGTHS = (1_024, 1_000, 16_000)  # of sequences
_LARGEST = 224  # side of photos, above which they are scaled down


def input_shape(model: str, folder: Path | None = None) -> tuple[int, ...]:
    """Return a shape that a model accepts: of the images, of its settings, or a usual one.

    Args:
        model: name, as `compute_nads` takes it.
        folder: folder of images.

    Raises:
        ValueError: if the model accepts none of them.
    """
    photo = (3, _LARGEST, _LARGEST)  # models of libraries keep their own number of channels
    if isinstance(factory := architecture_named(model, photo), Architecture):
        return 1, 32, 32
    try:
        candidates = [*_candidates(model, factory(), folder)]
    except TypeError as error:
        raise ValueError(
            f"{model}: {error}: name a function without arguments that returns a new network"
        ) from None
    reasons = []
    for shape in candidates:
        try:
            network = architecture_named(model, shape)()  # type: ignore[operator]  # a function
            with torch.no_grad():
                network.eval()
                network(torch.zeros(2, *shape))
            return shape
        except Exception as error:  # whatever the model's author chose to raise
            reasons.append(f"{shape}: {error}")
    raise ValueError(
        f"{model} accepts no usual input ({reasons[0]}): pass --image-shape, or a wrapper of one "
        "input"
    )


def _candidates(model: str, network: nn.Module, folder: Path | None) -> Iterator[tuple[int, ...]]:
    """Yield shapes in the order in which they are tried."""
    kinds = (nn.Conv2d, nn.Conv1d, nn.Linear)
    first = next((layer for layer in network.modules() if isinstance(layer, kinds)), None)
    settings = getattr(network, "default_cfg", None) or {}  # of timm
    trained = [224] if model.startswith("torchvision:") else settings.get("input_size", [])[-1:]
    sides = [*_side_of(folder), *trained, *_SIDES]
    channels = getattr(first, "in_channels", 3)
    if isinstance(first, nn.Conv1d):
        yield from ((channels, length) for length in _LENGTHS)
    if isinstance(first, nn.Linear):
        if folder and first.in_features == channels * sides[0] ** 2:
            yield channels, sides[0], sides[0]
        yield (first.in_features,)
    yield from ((channels, side, side) for side in sides)


def _side_of(folder: Path | None) -> list[int]:
    """Return the side of the first image, at most that of photos for trained networks."""
    if not folder:
        return []
    return [min(_LARGEST, *open_folder(images_folder(folder), None).read(0).size)]


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


def drawn_head(model: str, shape: tuple[int, ...]) -> str | Factory:
    """Return the name of a model; or, where its last linear layer begins with zeros, so that its
    output is constant, a factory whose networks draw that layer as ``nn.Linear`` does.
    """
    factory = architecture_named(model, shape)
    if isinstance(factory, Architecture) or not _zero_heads(factory()):
        return model

    @functools.wraps(factory)
    def build() -> nn.Module:
        network = factory()
        for layer in _zero_heads(network):
            layer.reset_parameters()
        return network

    return build


def _zero_heads(network: nn.Module) -> list[nn.Linear]:
    """Return the last linear layer, if its weight is zero."""
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    return [layer for layer in layers[-1:] if not layer.weight.any()]
