"""`show`: the explorer as a widget of a live notebook, or as HTML that needs no kernel."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nads_core.architectures import ARCHITECTURES
from nads_core.directions import NADs, load_nads
from nads_core.explorer.data import LABELS, Packet, as_script, pack_nads, pack_photos
from nads_core.images import ImageSet

if TYPE_CHECKING:
    from nads_core.explorer.widget import Explorer

PARTS = ("direction", "curves", "fourier", "mixer", "photo", "poison")
NUM_MIXED = 12
FOLDER = Path(__file__).parent


@dataclass
class View:
    """What an explorer shows at first; the reader moves all of it but the parts.

    Args:
        parts: of `PARTS`, in their order on the page.
        architecture: its name, such as "lenet".
        second: another one to compare with, or "".
        index: of a NAD, and of the poison's carrier.
        frequency: (ky, kx), cycles per image, vertical first.
        mix: weights of the first NADs in the mixer.
        photo: which of the images.
        kept: how many NADs rebuild the photo.
        strength: epsilon of the poison.
        poisoned: show the poisoned version rather than the clean one.
    """

    parts: tuple[str, ...] = PARTS
    architecture: str = "lenet"
    second: str = ""
    index: int = 0
    frequency: tuple[int, int] = (4, 2)
    mix: tuple[float, ...] = (1.0, 0.0, 0.0, 1.0, *[0.0] * (NUM_MIXED - 4))
    photo: int = 0
    kept: int = 32
    strength: float = 0.05
    poisoned: bool = False


@dataclass
class Source:
    """Where an explorer's arrays come from: the NADs that ship with the package, unless others are given."""

    nads: dict[str, NADs] = field(default_factory=dict)
    images: ImageSet | None = None

    @property
    def labels(self) -> dict[str, str]:
        """Names and labels of the architectures in the menu."""
        return {name: LABELS.get(name, name) for name in self.nads or LABELS}

    def packet(self, name: str) -> Packet:
        """Return the packet of an architecture, or of "photos"."""
        if name == "photos":
            size = next(iter(self.nads.values())).directions.shape[-1] if self.nads else 32
            return pack_photos(self.images, size)
        if self.nads:
            return pack_nads(self.nads[name], name)
        return pack_nads(load_nads(name), LABELS[name], name)


def show(
    *parts: str,
    nads: NADs | dict[str, NADs] | None = None,
    images: ImageSet | None = None,
    **view,
) -> Explorer | Page:
    """Show the explorer, or some parts of it.

    In a notebook with `anywidget` this is a widget: its attributes, such as ``index``, follow what the reader does, and
    can be set. Elsewhere, and in the pages of the book, it is HTML that does the same without Python.

    Args:
        parts: any of "direction", "curves", "fourier", "mixer", "photo", "poison"; all by default.
        nads: NADs of your own, or several as label -> NADs, of square single-channel images; by default the five
            architectures that ship with the package.
        images: labelled images (N, 3, H, W) for "photo" and "poison"; by default those of `load_pictures`.
        view: what to show at first: ``architecture``, ``second``, ``index``, ``frequency``, ``mix``, ``photo``,
            ``kept``, ``strength``, ``poisoned``.

    Raises:
        ValueError: for a part, architecture or view that does not exist.
    """
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise ValueError(f"unknown parts {sorted(unknown)}: choose from {PARTS}")
    if isinstance(nads, NADs):
        nads = {nads.provenance.get("architecture", "yours"): nads}
    source = Source(nads or {}, images)
    fields = set(View.__dataclass_fields__) - {"parts"}
    if set(view) - fields:
        raise ValueError(f"unknown {sorted(set(view) - fields)}: an explorer's view has {sorted(fields)}")
    defaults = {"architecture": next(iter(source.labels))}
    chosen = View(**(defaults | view), parts=parts or PARTS)
    for name in filter(None, (chosen.architecture, chosen.second)):
        if name not in source.labels:
            raise ValueError(f"unknown architecture {name!r}: choose from {list(source.labels)}")
    if "NADS_BOOK" in os.environ:  # book/build.py executes this chapter: the pages share their arrays
        return Page(chosen, source, shared=not nads and images is None)
    try:
        from nads_core.explorer.widget import Explorer
    except ImportError:
        return Page(chosen, source)
    return Explorer(chosen, source)


@dataclass
class Page:
    """The explorer as HTML, with its script and, unless the pages of a book share them, its arrays."""

    view: View
    source: Source
    shared: bool = False

    def _repr_html_(self) -> str:
        names = [] if self.shared else self._names()
        labels = {n: label for n, label in self.source.labels.items() if self.shared or n in names}
        config = vars(self.view) | {"labels": labels, "shared": self.shared}
        scripts = [f"<script>{as_script(name, self.source.packet(name))}</script>" for name in names]
        return (
            f'<nad-explorer view="{html.escape(json.dumps(config))}">'
            "This figure is interactive and needs JavaScript.</nad-explorer>\n"
            f'{"".join(scripts)}<script type="module">\n{module()}</script>'
        )

    def _names(self) -> list[str]:
        """What is sent along: your own NADs, or of ours only the ones in view."""
        names = list(self.source.nads) or list(dict.fromkeys(filter(None, (self.view.architecture, self.view.second))))
        return names + ["photos"] * bool({"photo", "poison"} & set(self.view.parts))


def module() -> str:
    """Return the ES module with its style sheet."""
    style = json.dumps((FOLDER / "explorer.css").read_text("utf8"))
    return f"const STYLE = {style};\n{(FOLDER / 'explorer.js').read_text('utf8')}"


def write_pages_data(folder: Path) -> None:
    """Write the scripts from which the pages of a book load their arrays, one an architecture and one for photos."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*ARCHITECTURES, "photos"):
        (folder / f"{name}.js").write_text(as_script(name, Source().packet(name)), "utf8")
