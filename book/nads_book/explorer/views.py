"""`show`: the explorer as a widget of a live notebook, or as HTML that needs no kernel."""

from __future__ import annotations

import operator
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nads_book.explorer import gallery
from nads_book.explorer.bundle import FILE, element, script
from nads_book.explorer.data import (
    LABELS,
    Packet,
    as_script,
    load_pictures,
    pack_nads,
    pack_photos,
    require_square,
)
from nads_core.directions import NADs, load_nads

PARTS = ("direction", "curves", "fourier", "photo")


@dataclass
class View:
    """What an explorer shows at first; the reader moves all of it but the parts.

    Args:
        parts: members of `PARTS`, in their order on the page.
        architecture: name of the architecture, such as "lenet".
        second: name of another one to compare with, or "".
        index: index of a NAD.
        frequency: (ky, kx), cycles per image, vertical first.
        photo: number of the image.
        kept: number of NADs that rebuild the photo.
    """

    parts: Sequence[str] = PARTS
    architecture: str = "lenet"
    second: str = ""
    index: int = 0
    frequency: Sequence[int] = (4, 2)
    photo: int = 0
    kept: int = 32


@dataclass
class Source:
    """Where an explorer's arrays come from: the NADs that ship with the package, unless others are
    given.

    Raises:
        ValueError: for NADs that cannot be drawn, or not together.
    """

    nads: dict[str, NADs] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(isinstance(label, str) and label for label in self.nads):
            raise ValueError(
                f"the label of NADs is a text that is not empty, got {list(self.nads)}"
            )
        sides = {label: require_square(nads) for label, nads in self.nads.items()}
        if len(set(sides.values())) > 1:
            raise ValueError(
                f"an explorer shows NADs of one image size, got {sides}: show them one by one"
            )

    @property
    def side(self) -> int:
        """Side of the images, in pixels."""
        return require_square(next(iter(self.nads.values()))) if self.nads else 32

    @property
    def labels(self) -> dict[str, str]:
        """Names and labels of the architectures in the menu."""
        return {name: LABELS.get(name, name) for name in self.nads or LABELS}

    def packet(self, name: str) -> Packet:
        """Return the packet of an architecture, or of "photos"."""
        if name == "photos":
            return pack_photos(self.side)
        if self.nads:
            return pack_nads(self.nads[name], name)
        return pack_nads(load_nads(name), LABELS[name], name)

    def count(self, *names: str) -> int:
        """Number of NADs of these architectures: of the one with the most. Those that ship are
        complete.
        """
        return max(
            (len(self.nads[name]) for name in names if name in self.nads), default=self.side**2
        )


def require_drawable(key: str, value: Any, view: View, source: Source) -> object:
    """Return one value of a view, with the types of JSON, if these NADs and images have it.

    Args:
        key: field of `View`.
        value: value of the field.
        view: view with the architectures that are shown.
        source: source of the arrays.

    Raises:
        ValueError: for a value that could not be drawn.
    """
    if key in ("architecture", "second"):
        if value not in source.labels and not (key == "second" and value == ""):
            raise ValueError(f"unknown architecture {value!r}: choose from {list(source.labels)}")
        return value
    if key == "parts":
        if not value or set(value) - set(PARTS):
            raise ValueError(f"unknown parts in {list(value)}: choose from {PARTS}")
        return [*value]
    if key == "frequency":
        if len(value) != 2:
            raise ValueError(f"a frequency is (ky, kx), got {value!r}")
        return [_require_whole(key, k) for k in value]
    count = source.count(view.architecture, view.second)
    last = len(load_pictures()) - 1 if key == "photo" else count if key == "kept" else count - 1
    return _require_within(key, _require_whole(key, value), 0, last)


def names_in_view(view: View) -> list[str]:
    """Return the names of the packets that a view draws at first."""
    architectures = dict.fromkeys(filter(None, (view.architecture, view.second)))
    return [*architectures] + ["photos"] * ("photo" in view.parts)


def _require_whole(key: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{key} is {value!r}, expected a whole number") from None


def _require_within(key: str, value: float, low: float, high: float) -> float:
    if not low <= value <= high:  # nor is NaN
        raise ValueError(f"{key} is {value}, expected {low} to {high}")
    return value


@dataclass
class Page:
    """The explorer as HTML.

    The pages of a book load the program, and the arrays that ship with the package, from files that
    they share. In a notebook each output brings its own, packed: some hosts show every output in a
    frame of its own, and the reader may delete any of them.
    """

    view: View
    source: Source
    book: bool = False

    @property
    def shared(self) -> bool:
        """Whether the arrays are in files of the book, and the view in the page's address."""
        return self.book and not self.source.nads

    def _repr_html_(self) -> str:
        # The NADs to send: the reader's own, or of those that ship only those in view.
        names = (
            []
            if self.shared
            else list(dict.fromkeys([*self.source.nads, *names_in_view(self.view)]))
        )
        labels = {n: label for n, label in self.source.labels.items() if self.shared or n in names}
        packets = {
            name: self.source.packet(name) for name in names
        }  # under names that no other explorer's have
        keys = {name: f"{name}-{zlib.crc32(content):08x}" for name, (_, content) in packets.items()}
        config = vars(self.view) | {"labels": labels, "shared": self.shared, "keys": keys}
        scripts = [as_script(keys[name], packet) for name, packet in packets.items()]
        return element(
            "nad-explorer", config, "This figure is interactive.", self.book, scripts, "view"
        )


def write_pages_data(folder: Path) -> None:
    """Write what the pages of a book load: the program, and arrays of each architecture, of photos
    and of the atlas.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / Path(FILE).name).write_text(script(), "utf8")
    (folder / f"{gallery.NAME}.js").write_text(
        as_script(gallery.NAME, gallery.pack_atlas()), "utf8"
    )
    for name in (*LABELS, "photos"):
        (folder / f"{name}.js").write_text(as_script(name, Source().packet(name)), "utf8")
