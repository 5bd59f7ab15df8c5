"""The atlas: small architectures that differ from another one in a single thing, as named values.

``entries.toml`` lists them. A function for each family of networks adds what follows from their
options.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

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


def _entry(family: str, name: str, factor: str, change: str, options: dict[str, Any]) -> Entry:
    """Return an entry of the table: its family says which symmetries and which stride it has."""
    base, stride, multiple = options.pop("base", family), 8, 8
    symmetries = _SQUARE
    if family == "cnn":
        # No padding leaves sides of 15 and 13 pixels, of which pooling drops an edge; strides
        # sample rows 0, 2, 4, ...
        module: Callable[..., nn.Module] = SmallCNN
        if options.get("padding") == "none" or options.get("pooling") == "strided":
            symmetries = _NO_FLIPS
        stride = 1 if options.get("pooling") == "none" else 8
    elif family == "resnet":
        module, options = resnet, {"width": 16} | options
        if options.get("pooling", "strided") == "strided":
            symmetries, multiple = _NO_FLIPS, 1
    elif family == "densenet":
        module, options = densenet, {"growth": 8, "depths": (3, 3, 3, 3)} | options
    else:
        module, options = Tokens, {"patch": 4} | options
        stride = multiple = options["patch"]
        if options.get("position") == "sine":  # fixed waves distinguish left from right
            symmetries, multiple = _NO_FLIPS[1:], 1
    architecture = Architecture(name, module, options, symmetries, multiple)
    return Entry(architecture, factor, base, change, stride)


_ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf8"))
_ENTRIES = (
    *(_entry(family, *row) for family, rows in _ROWS.items() for row in rows),
    Entry(Architecture("convnext", ConvNeXt, {}, _SQUARE, 4), "", "", "a small ConvNeXt", 4),
    Entry(Architecture("mlp", MLP), "", "", "an MLP", 1),
)
ATLAS = {entry.name: entry for entry in _ENTRIES}
