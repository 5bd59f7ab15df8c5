"""The atlas: small architectures that differ from another one in a single thing, as named values.

``entries.toml`` lists them. A function for each family of networks adds what follows from their
options.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nads_book.atlas.small_networks import MLP, ConvNeXt, SmallCNN, Tokens, densenet, resnet
from nads_core.networks.architectures import Architecture

_SQUARE = ("flip_rows", "flip_columns", "transpose", "channels")
_NO_FLIPS = ("transpose", "channels")
_FAMILIES = {
    "cnn": "CNN",
    "resnet": "ResNet",
    "densenet": "DenseNet",
    "vit": "ViT",
    "mixer": "Mixer",
    "convnext": "ConvNeXt",
    "mlp": "MLP",
}


@dataclass(frozen=True)
class Entry:
    """One architecture of the atlas.

    Args:
        architecture: architecture that draws the networks.
        factor: changed property, such as "pooling"; "" for entries from which others differ.
        base: name of the entry from which it differs in this alone; "" where there is none.
        change: label of the change, such as "average pooling".
        stride: number of pixels per step at the end of the network, the product of its strides.
    """

    architecture: Architecture
    factor: str
    base: str
    change: str
    stride: int = 8

    @property
    def name(self) -> str:
        """Such as "cnn-average"."""
        return self.architecture.name

    @property
    def family(self) -> str:
        """What kind of network it is, such as "CNN"."""
        return _FAMILIES[self.name.partition("-")[0]]

    @property
    def num_networks(self) -> int:
        """How many networks were drawn for what ships, more where one costs milliseconds."""
        return 8_192 if self.architecture.module is SmallCNN else 2_048


# No padding leaves sides of 15 and 13 pixels, of which pooling drops an edge; strides sample rows
# 0, 2, 4, ...
def _cnn(
    name: str, factor: str, change: str, base: str = "cnn", *, flips: bool = True, **options: object
) -> Entry:
    stride = 1 if options.get("pooling") == "none" else 8
    symmetries = _SQUARE if flips else _NO_FLIPS
    return Entry(Architecture(name, SmallCNN, options, symmetries, 8), factor, base, change, stride)


def _resnet(name: str, factor: str, change: str, base: str = "resnet", **options: object) -> Entry:
    pooled = (
        options.get("pooling", "strided") != "strided"
    )  # strides sample rows 0, 2, 4, ...: no flips
    architecture = Architecture(
        name, resnet, {"width": 16} | options, _SQUARE if pooled else _NO_FLIPS, 8 if pooled else 1
    )
    return Entry(architecture, factor, base, change)


def _dense(name: str, factor: str, change: str, base: str = "densenet", **options: object) -> Entry:
    small = {"growth": 8, "depths": (3, 3, 3, 3)}
    return Entry(Architecture(name, densenet, small | options, _SQUARE, 8), factor, base, change)


def _tokens(
    name: str, factor: str, change: str, base: str = "vit", patch: int = 4, **options: object
) -> Entry:
    even = options.get("position") != "sine"  # fixed waves distinguish left from right
    architecture = Architecture(
        name,
        Tokens,
        {"patch": patch} | options,
        _SQUARE if even else _NO_FLIPS[1:],
        patch if even else 1,
    )
    return Entry(architecture, factor, base, change, patch)


_BUILDERS: dict[str, Callable[..., Entry]] = {
    "cnn": _cnn,
    "resnet": _resnet,
    "densenet": _dense,
    "vit": _tokens,
}
_ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf8"))
_ENTRIES = (
    *(
        _BUILDERS[family](*labels, **options)
        for family, rows in _ROWS.items()
        for *labels, options in rows
    ),
    Entry(Architecture("convnext", ConvNeXt, {}, _SQUARE, 4), "", "", "a small ConvNeXt", 4),
    Entry(Architecture("mlp", MLP), "", "", "an MLP", 1),
)
ATLAS = {entry.name: entry for entry in _ENTRIES}
