"""The playground: a network that readers build, whose NADs their browser computes and which it
trains, as HTML.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nads_book.explorer.bundle import FOLDER, element
from nads_book.figures.publishing import publishing

# The chips, and their values in the order of an address; `sources/playground/engine.js` has the
# same.
CHOICES: dict[str, tuple[Any, ...]] = {
    "layers": ("convolution", "patches", "dense"),
    "blocks": (1, 2, 3),
    "channels": (4, 8, 16),
    "kernel": (3, 5),
    "pooling": ("none", "average", "max", "stride"),
    "activation": ("relu", "tanh", "none"),
    "norm": ("none", "layer"),
    "head": ("flat", "global"),
    "skip": (False, True),
    "padding": ("zeros", "circular"),
}


def _cat() -> str:
    """Return a drawing of a cat, 16 x 16 grey values, as base64."""
    from PIL import Image

    with Image.open(FOLDER / "drawings" / "cat.png") as drawing:
        small = drawing.convert("L").resize((16, 16), Image.Resampling.BOX)
    return base64.b64encode(small.tobytes()).decode()


@dataclass
class Playground:
    """Networks for 16 x 16 images, which the page draws, differentiates and trains.

    Args:
        config: chip -> value, where the network differs from the default: two blocks of 8
            channels, 3 x 3 kernels with zeros at the border, ReLU, averages over 2 x 2 pixels, and
            a linear layer that reads all pixels.
        second: chip and value in which a second network differs, to compare; None for one network.
        chips: chips that the reader may change.
        wave: (ky, kx) under the cursor, cycles per image.
        small: whether to leave out the guided tour.
        shared: whether the state is kept in the address of the page, for one figure of it at most.
        book: whether the program is loaded from a file that the pages of the book share.

    Raises:
        ValueError: for a chip or value that does not exist.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    second: tuple[str, Any] | None = None
    chips: Sequence[str] = tuple(CHOICES)
    wave: tuple[int, int] = (4, 4)
    small: bool = True
    shared: bool = False
    book: bool = field(default_factory=publishing)

    def __post_init__(self) -> None:
        chosen = [*self.config.items(), *([self.second] if self.second else [])]
        if unknown := {*self.chips, *(chip for chip, _ in chosen)} - set(CHOICES):
            raise ValueError(f"unknown chips {sorted(unknown)}: choose from {list(CHOICES)}")
        for chip, value in chosen:
            if value not in CHOICES[chip]:
                raise ValueError(f"{chip} is {value!r}, expected one of {CHOICES[chip]}")
        if len(self.wave) != 2 or not all(-8 <= k < 8 for k in self.wave):
            raise ValueError(f"wave is {self.wave}, expected (ky, kx) from -8 to 7")

    def _repr_html_(self) -> str:
        config = {
            "config": self.config,
            "second": self.second,
            "chips": list(self.chips),
            "wave": self.wave,
            "small": self.small,
            "shared": self.shared,
            "cat": _cat(),
        }
        return element("nad-playground", config, "This figure is interactive.", self.book)
