"""The networks of the paper, and how they are downsampled, as named values; and architectures by
name.

All are the CIFAR variants (32x32 inputs by default) with PyTorch's default initialisation; VGG-11's
convolutions alone use N(0, 2 / (k^2 * out_channels)), as the networks behind the published NADs do.
"""

import ast
import difflib
import importlib
import math
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self
from urllib.parse import parse_qsl

import torch
from torch import Tensor, nn

from nads_core.runtime.arguments import Facts, Shape, require_choice, require_integers

Factory = Callable[[], nn.Module]  # returns a newly initialised network at each call
SYMMETRIES = ("flip_rows", "flip_columns", "transpose", "channels")


def require_known_symmetries(symmetries: tuple[str, ...]) -> None:
    """Raise a ValueError unless all names are among `SYMMETRIES`."""
    if isinstance(symmetries, str):
        raise ValueError(
            f"symmetries must be a tuple of names among {SYMMETRIES}, () for none, "
            f"got {symmetries!r}"
        )
    if unknown := set(symmetries) - set(SYMMETRIES):
        raise ValueError(f"unknown symmetries {sorted(unknown)}: choose from {SYMMETRIES}")


@dataclass(frozen=True)
class Architecture:
    """A named family of networks: everything about a network but its weights, its input size and
    its class count.

    Args:
        name: short identifier, as used by `load_nads` and on the command line.
        module: factory ``module(in_channels, image_size, num_classes, **options)`` of an
            `nn.Module`.
        options: keyword arguments for ``module``, such as ``pooling``.
        symmetries: the maps of the input (of `SYMMETRIES`) that leave the distribution of networks
            at initialisation unchanged. `compute_nads` averages over the group that they generate.
        flip_multiple: flips hold for image sizes that are multiples of this alone: elsewhere
            pooling drops an edge row.

    Example:
        >>> LENET.build(1, 32, 10)(torch.zeros(2, 1, 32, 32)).shape
        torch.Size([2, 10])
    """

    name: str
    module: Callable[..., nn.Module]
    options: Facts = field(default_factory=dict, hash=False)
    symmetries: tuple[str, ...] = ()
    flip_multiple: int = 1

    def __post_init__(self) -> None:
        require_known_symmetries(self.symmetries)

    def build(self, in_channels: int = 1, image_size: int = 32, num_classes: int = 1) -> nn.Module:
        """Return a freshly initialised network.

        Args:
            in_channels: channels of the input image.
            image_size: height and width of the input image, in pixels.
            num_classes: number of logits.

        Returns:
            A module from (N, in_channels, image_size, image_size) to (N, num_classes), in training
            mode.

        Raises:
            ValueError: if a size is not positive or the image is too small for the network.
        """
        require_integers(in_channels=in_channels, image_size=image_size, num_classes=num_classes)
        return self.module(in_channels, image_size, num_classes, **self.options)

    def symmetries_at(self, image_size: int, in_channels: int = 1) -> tuple[str, ...]:
        """Return the declared symmetries that hold for images of this height and width with so many
        channels.
        """
        flips, colour = image_size % self.flip_multiple == 0, in_channels > 1
        holds = {"flip_rows": flips, "flip_columns": flips, "transpose": True, "channels": colour}
        return tuple(symmetry for symmetry in self.symmetries if holds[symmetry])

    def variant(
        self, *, name: str | None = None, symmetries: tuple[str, ...] = (), **options: object
    ) -> Self:
        """Return the architecture with other options, for example
        ``LENET.variant(pooling="average")``.

        A variant has no symmetries unless they are passed, because an option can break them.
        """
        label = name or "-".join([self.name, *(f"{value}" for value in options.values())])
        return replace(self, name=label, options={**self.options, **options}, symmetries=symmetries)


def _blurred_pooling() -> nn.Module:
    """Return 2x2 average pooling of an image blurred by the filter (1, 3, 3, 1) / 8, which is three
    such averages.

    Edge pixels are repeated, so that a flipped image is pooled to the flipped result.
    """
    return nn.Sequential(
        nn.ReplicationPad2d(1), nn.AvgPool2d(2, 1), nn.AvgPool2d(2, 1), nn.AvgPool2d(2)
    )


# Ways to halve the resolution after a convolution. "strided" keeps every other row and column: the
# convolution and this layer together are a convolution of stride 2.
POOLINGS: dict[str, Factory] = {
    "max": partial(nn.MaxPool2d, 2),
    "average": partial(nn.AvgPool2d, 2),
    "blurred": _blurred_pooling,
    "strided": partial(nn.AvgPool2d, 1, 2),
    "none": nn.Identity,
}


def downsample(pooling: str) -> nn.Module:
    """Return a layer that halves the resolution, by one of `POOLINGS`."""
    require_choice("pooling", pooling, POOLINGS)
    return POOLINGS[pooling]()


def halved(size: int, pooling: str) -> int:
    """Return the side of an image after `downsample`."""
    return size if pooling == "none" else -(-size // 2) if pooling == "strided" else size // 2


def _require_size(size: int, image_size: int, network: str, pooling: str, least: int) -> None:
    """Raise a ValueError if an image of this size has no pixels left after all poolings."""
    if size < 1:
        raise ValueError(
            f"image_size {image_size} is too small for {network} with {pooling!r}: "
            f"use at least {least}"
        )


def _features(channels: int, size: int, flat: bool) -> tuple[nn.Module, int]:
    """Return the layer from (N, channels, size, size) to rows of features, and their number."""
    if flat:
        return nn.Flatten(), channels * size**2
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), channels


def logistic_regression(in_channels: int, image_size: int, num_classes: int) -> nn.Module:
    """Return one linear layer on the pixels."""
    linear = nn.Linear(in_channels * image_size**2, num_classes)
    return nn.Sequential(OrderedDict(flatten=nn.Flatten(), linear=linear))


class LeNet(nn.Sequential):
    """LeNet with 5x5 valid convolutions (6 and 16 channels) and 120-84 hidden units."""

    def __init__(self, in_channels: int, image_size: int, num_classes: int, pooling: str = "max"):
        size = halved(halved(image_size - 4, pooling) - 4, pooling)
        _require_size(size, image_size, "LeNet", pooling, least=16)
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            conv1=nn.Conv2d(in_channels, 6, 5),
            relu1=nn.ReLU(),
            pool1=downsample(pooling),
            conv2=nn.Conv2d(6, 16, 5),
            relu2=nn.ReLU(),
            pool2=downsample(pooling),
            flatten=nn.Flatten(),
            fc1=nn.Linear(16 * size**2, 120),
            relu3=nn.ReLU(),
            fc2=nn.Linear(120, 84),
            relu4=nn.ReLU(),
            fc3=nn.Linear(84, num_classes),
        )
        super().__init__(layers)


class VGG11Net(nn.Sequential):
    """VGG-11 with batch norm, and a classifier with two hidden layers of 512 and dropout."""

    stages = ((64,), (128,), (256, 256), (512, 512), (512, 512))  # channels between poolings

    def __init__(self, in_channels: int, image_size: int, num_classes: int, pooling: str = "max"):
        layers: list[nn.Module] = []
        channels, size = in_channels, image_size
        for stage in self.stages:
            for width in stage:
                layers += [
                    nn.Conv2d(channels, width, 3, padding=1),
                    nn.BatchNorm2d(width),
                    nn.ReLU(),
                ]
                channels = width
            layers.append(downsample(pooling))
            size = halved(size, pooling)
        _require_size(size, image_size, "VGG-11", pooling, least=32)
        classifier = nn.Sequential(
            nn.Dropout(),
            nn.Linear(channels * size**2, 512),
            nn.ReLU(),
            nn.Dropout(),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Linear(512, num_classes),
        )
        features = nn.Sequential(*layers)
        super().__init__(
            OrderedDict(features=features, flatten=nn.Flatten(), classifier=classifier)
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, 0.0, math.sqrt(2 / (9 * module.out_channels)))
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]  # all of them have a bias


class _ResidualBlock(nn.Module):
    def __init__(self, channels: int, width: int, stride: int, pooling: str, skip: bool):
        super().__init__()
        conv_stride = stride if pooling == "strided" else 1
        self.pool = downsample(pooling) if conv_stride < stride else nn.Identity()
        self.conv1 = nn.Conv2d(channels, width, 3, conv_stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.activation = nn.ReLU()
        self.shortcut: nn.Module | None = nn.Identity() if skip else None
        if skip and (stride > 1 or channels != width):
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, width, 1, conv_stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(x)
        h = self.bn2(self.conv2(self.activation(self.bn1(self.conv1(x)))))
        return self.activation(h if self.shortcut is None else h + self.shortcut(x))


class ResNet18Net(nn.Sequential):
    """ResNet-18 with a 3x3 stride-1 stem and no pooling before the last; it downsamples by strided
    convolutions.

    ``pooling="none"`` also drops the global average, so that the last layer reads every pixel of
    every channel; so does ``head="flat"``.
    """

    skip = True  # whether blocks have a connection around them

    def __init__(
        self,
        in_channels: int,
        image_size: int,
        num_classes: int,
        pooling: str = "strided",
        width: int = 64,
        head: str = "global",
    ):
        stem = {
            "conv1": nn.Conv2d(in_channels, width, 3, padding=1, bias=False),
            "bn1": nn.BatchNorm2d(width),
        }
        blocks, channels, size = [], width, image_size
        for times, stride in ((1, 1), (1, 1), (2, 2), (2, 1), (4, 2), (4, 1), (8, 2), (8, 1)):
            blocks.append(_ResidualBlock(channels, times * width, stride, pooling, self.skip))
            channels = times * width
            size = halved(size, pooling) if stride > 1 else size
        _require_size(size, image_size, "ResNet-18", pooling, least=8)
        last, num_features = _features(channels, size, flat=head == "flat" or pooling == "none")
        body = {**stem, "activation": nn.ReLU(), "blocks": nn.Sequential(*blocks), "head": last}
        super().__init__(OrderedDict(body, linear=nn.Linear(num_features, num_classes)))


class PlainNet18(ResNet18Net):
    """ResNet-18 without skip connections."""

    skip = False


class _DenseLayer(nn.Sequential):
    def __init__(self, channels: int, growth: int):
        super().__init__(
            OrderedDict(
                bn1=nn.BatchNorm2d(channels),
                relu1=nn.ReLU(),
                conv1=nn.Conv2d(channels, 4 * growth, 1, bias=False),
                bn2=nn.BatchNorm2d(4 * growth),
                relu2=nn.ReLU(),
                conv2=nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([super().forward(x), x], 1)  # type: ignore[no-untyped-call]


class DenseNet121Net(nn.Sequential):
    """DenseNet-121 with growth 32, a 3x3 stem of 64 channels, and pooled transitions that halve the
    channels.

    Other depths and another growth, with a stem of twice as many channels, make a smaller one of
    the same kind.
    """

    def __init__(
        self,
        in_channels: int,
        image_size: int,
        num_classes: int,
        pooling: str = "average",
        growth: int = 32,
        depths: tuple[int, ...] = (6, 12, 24, 16),
    ):
        channels, size = 2 * growth, image_size
        layers: list[nn.Module] = [nn.Conv2d(in_channels, channels, 3, padding=1, bias=False)]
        for index, depth in enumerate(depths):
            if index > 0:  # a transition
                layers += [
                    nn.BatchNorm2d(channels),
                    nn.ReLU(),
                    nn.Conv2d(channels, channels // 2, 1, bias=False),
                    downsample(pooling),
                ]
                channels, size = channels // 2, halved(size, pooling)
            for _ in range(depth):
                layers.append(_DenseLayer(channels, growth))
                channels += growth
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
        _require_size(size, image_size, "DenseNet-121", pooling, least=8)
        head, num_features = _features(channels, size, flat=pooling == "none")
        linear = nn.Linear(num_features, num_classes)
        super().__init__(OrderedDict(features=nn.Sequential(*layers), head=head, linear=linear))


# The weights of the first layer are independent and symmetric about zero, so that channels have one
# distribution
LOGREG = Architecture("logreg", logistic_regression)  # all of its directions are equivalent
LENET = Architecture("lenet", LeNet, symmetries=SYMMETRIES, flip_multiple=4)
# A strided 3x3 convolution with padding samples rows 0, 2, 4, ...: mirrored, it would sample 1, 3,
# 5, ...
RESNET18 = Architecture("resnet18", ResNet18Net, symmetries=("transpose", "channels"))
VGG11 = Architecture("vgg11", VGG11Net, symmetries=SYMMETRIES, flip_multiple=32)
DENSENET121 = Architecture("densenet121", DenseNet121Net, symmetries=SYMMETRIES, flip_multiple=8)
ARCHITECTURES = {value.name: value for value in (LOGREG, LENET, VGG11, RESNET18, DENSENET121)}


def architecture_named(
    name: str, image_shape: Shape, num_classes: int | None = None
) -> Architecture | Factory:
    """Return what a name stands for.

    Args:
        name: one of ours, such as "lenet"; "torchvision:" or "timm:" and the name of one of their
            models, without trained weights, which can have options:
            "timm:vit_tiny_patch16_224?img_size=32&num_classes=1"; or "module:function", a factory
            in a module that can be imported from here.
        image_shape: shape of the inputs. A vision transformer of torchvision, which accepts square
            images of one size, is built for that size, and a model of timm for that number of
            channels.
        num_classes: number of outputs of a library's model whose name states none; by default the
            library's own.

    Raises:
        ImportError: if torchvision or timm is not installed.
        ValueError: if nothing has that name (the message has the nearest ones), an option is no
            "key=value", or a vision transformer cannot take the shape.
    """
    if name in ARCHITECTURES:
        return ARCHITECTURES[name]
    module, _, attribute = name.partition(":")
    if not attribute:
        choices = f"{', '.join(ARCHITECTURES)}, or torchvision:model, timm:model or module:factory"
        raise ValueError(f"unknown architecture {name!r}: choose from {choices}")
    if module in ("torchvision", "timm"):
        return _of_library(module, attribute, image_shape, num_classes)
    return imported(name)


def imported(name: str) -> Any:
    """Return what "module:attribute" stands for, in a module that can be imported from the working
    directory.

    Raises:
        ValueError: if there is no such module or attribute.
    """
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        close = difflib.get_close_matches(module, ("torchvision", "timm"), 1)
        meant = [module.removesuffix(".py")] if module.endswith(".py") else close
        hint = f": did you mean {meant[0]}:{attribute}?" if meant else ""
        raise ValueError(f"cannot load {name!r}: {error}{hint}") from error
    finally:
        sys.path.remove("")


def _of_library(library: str, text: str, image_shape: Shape, num_classes: int | None) -> Factory:
    """Return a factory of one of a library's models, with options as in
    "vit_tiny_patch16_224?img_size=32".
    """
    model, _, query = text.partition("?")
    options = {key: _literal(value) for key, value in parse_qsl(query, strict_parsing=bool(query))}
    if num_classes is not None:
        options.setdefault("num_classes", num_classes)
    try:
        models = importlib.import_module(
            "torchvision.models" if library == "torchvision" else library
        )
    except ImportError as error:
        raise ImportError(f"{library}:{model} needs {library}: pip install {library}") from error
    if library == "timm":
        create, names, weights = models.create_model, models.list_models(), {"pretrained": False}
        if len(image_shape) == 3 and image_shape[0] != 3:
            options.setdefault("in_chans", image_shape[0])
    else:
        create, weights = models.get_model, {"weights": None}
        names = models.list_models(module=models)  # others fetch trained parts, or return no tensor
        if model.startswith("vit_"):  # its position embeddings have the length of the image
            if len(image_shape) != 3 or image_shape[1] != image_shape[2]:
                raise ValueError(
                    f"{model} needs square images (C, H, H), got image_shape {image_shape}"
                )
            options.setdefault("image_size", image_shape[-1])
    if given := weights.keys() & options.keys():
        raise ValueError(
            f"trained weights of {library}:{model} are never loaded: leave out {', '.join(given)}"
        )
    if model not in names:
        close = difflib.get_close_matches(model, names, n=5, cutoff=0.4)
        raise ValueError(
            f"{library} has no classifier {model!r}: did you mean {', '.join(close) or 'another'}?"
        )
    factory = with_drawn_head(partial(create, model, **weights, **options))
    factory.__qualname__ = text
    return factory


def with_drawn_head(factory: Factory) -> Factory:
    """Return a factory that draws a last linear layer of zeros as ``nn.Linear`` does.

    Vision transformers, among others, begin with one: their output does not depend on the input.
    """

    def draw() -> nn.Module:
        network = factory()
        linear = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
        if linear and not linear[-1].weight.any():
            nn.Linear.reset_parameters(linear[-1])  # a subclass may reset its weights to zeros
        return network

    return draw


def _literal(text: str) -> object:
    """Return the number, tuple, boolean or None that a text stands for, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
