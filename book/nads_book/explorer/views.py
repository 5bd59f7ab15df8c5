"""`show`: the explorer as HTML, which needs no kernel."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nads_book.explorer import gallery
from nads_book.explorer.bundle import FILE, element, script
from nads_book.explorer.data import (
    LABELS,
    Packet,
    as_script,
    load_pictures,
    pack_nads,
    pack_photos,
    pack_shipped,
    require_square,
)
from nads_book.figures.publishing import publishing
from nads_core.directions import NADs

PARTS = ("direction", "curves", "fourier", "photo")


def show(*parts: str, nads: NADs | Mapping[str, NADs] | None = None, **view: object) -> Page:
    """Show the explorer, or some parts of it.

    Args:
        parts: any of "direction", "curves", "fourier", "photo"; all by default.
        nads: NADs of your own, or several as label -> NADs, of square single-channel images; by
            default the five architectures that ship with the package.
        view: initial values of ``architecture``, ``second``, ``index``, ``frequency``,
            ``photo``, ``kept``, see `Page`.

    Raises:
        ValueError: for a part, architecture or value that does not exist, or that these NADs do not
            have.
        TypeError: for a value of another name.
    """
    if isinstance(nads, NADs):
        nads = {str(nads.provenance.get("architecture") or "yours"): nads}
    return Page(parts or PARTS, nads=nads or {}, **view)  # type: ignore[arg-type]


@dataclass
class Page:
    """The explorer as HTML.

    The pages of a book load the program, and the arrays that ship with the package, from files that
    they share. In a notebook each output brings its own, packed: some hosts show every output in a
    frame of its own, and the reader may delete any of them.

    Args:
        parts: members of `PARTS`, in their order on the page.
        architecture: name of the architecture that is shown first; the first one by default.
        second: name of another one to compare with, or "".
        index: index of a NAD.
        frequency: (ky, kx), cycles per image, vertical first.
        photo: number of the image.
        kept: number of NADs that rebuild the photo; 32 by default, or all if there are fewer.
        nads: NADs by their label in place of those that ship.
        book: whether program and arrays are loaded from files that the pages of the book share.

    Raises:
        ValueError: for NADs that cannot be drawn, or not together, and for values that they do not
            have.
    """

    parts: Sequence[str] = PARTS
    architecture: str = ""
    second: str = ""
    index: int = 0
    frequency: Sequence[int] = (4, 2)
    photo: int = 0
    kept: int | None = None
    nads: Mapping[str, NADs] = field(default_factory=dict)
    book: bool = field(default_factory=publishing)

    def __post_init__(self) -> None:
        sides = {label: require_square(nads) for label, nads in self.nads.items()}
        if len(set(sides.values())) > 1:
            raise ValueError(
                f"an explorer shows NADs of one image size, got {sides}: show them one by one"
            )
        self.side = next(iter(sides.values()), 32)
        self.labels = {label: label for label in self.nads} or LABELS
        self.architecture = self.architecture or next(iter(self.labels))
        names = [self.architecture, *([self.second] if self.second else [])]
        for name in names:
            if name not in self.labels:
                raise ValueError(f"unknown architecture {name!r}: choose from {list(self.labels)}")
        if unknown := set(self.parts) - set(PARTS):
            raise ValueError(f"unknown parts {sorted(unknown)}: choose from {PARTS}")
        if len(self.frequency) != 2 or any(k % 1 for k in self.frequency):
            raise ValueError(f"frequency is {self.frequency}, expected whole numbers (ky, kx)")
        self.frequency = [int(k) for k in self.frequency]
        # Those that ship are complete
        count = max(len(self.nads[name]) if self.nads else self.side**2 for name in names)
        self.kept = min(32, count) if self.kept is None else self.kept
        most = {"index": count - 1, "kept": count, "photo": len(load_pictures()) - 1}
        for name, last in most.items():
            if (value := getattr(self, name)) not in range(last + 1):
                raise ValueError(f"{name} is {value}, expected 0 to {last}")
            setattr(self, name, int(value))

    @property
    def shared(self) -> bool:
        """Whether the arrays are in files of the book, and the view in the page's address."""
        return self.book and not self.nads

    def _in_view(self) -> list[str]:
        return [*dict.fromkeys(filter(None, (self.architecture, self.second)))]

    def packets(self) -> dict[str, Packet]:
        """Return the arrays that the output brings, by name."""
        if self.shared:
            return {}
        own = {name: pack_nads(nads, name) for name, nads in self.nads.items()}
        # Those in view alone: a Jupyter server drops outputs of more than about 3 MB
        packets = own or {name: pack_shipped(name) for name in self._in_view()}
        return packets | ({"photos": pack_photos(self.side)} if "photo" in self.parts else {})

    def _repr_html_(self) -> str:
        packets = self.packets()
        # Under names that no other explorer's have
        keys = {name: f"{name}-{zlib.crc32(content):08x}" for name, (_, content) in packets.items()}
        names = ("parts", "architecture", "second", "index", "frequency", "photo", "kept", "labels")
        config = {name: getattr(self, name) for name in (*names, "shared")} | {"keys": keys}
        if not self.shared:
            config["labels"] = {name: self.labels[name] for name in self.labels if name in packets}
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
    packets = {name: pack_shipped(name) for name in (*LABELS, "photos")}
    packets[gallery.NAME] = gallery.pack_atlas()
    for name, packet in packets.items():
        (folder / f"{name}.js").write_text(as_script(name, packet), "utf8")
