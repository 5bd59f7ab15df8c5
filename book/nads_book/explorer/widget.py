"""The explorer, and sliders that call Python, as widgets; importing this module needs anywidget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import anywidget
import traitlets

from nads_book.explorer.bundle import packed_module
from nads_book.explorer.data import compressed
from nads_book.explorer.views import Source, View, names_in_view, require_drawable

KEYS = tuple(View.__dataclass_fields__)


class Explorer(anywidget.AnyWidget):
    """The explorer in a live notebook; `nads_book.explorer.show` makes one.

    Its attributes are those of the view. They follow the reader, and the reader sees what you set:
    ``explorer.index = 12``, ``ipywidgets.jslink((slider, "value"), (explorer, "index"))``. What its
    NADs and images do not have raises `traitlets.TraitError`; where other NADs are fewer, ``index``
    and ``kept`` follow.

    The state of the widget holds the arrays of the first view, compressed. So an executed notebook
    that is reopened or exported shows it without a kernel, if the notebook holds the states of its
    widgets: papermill and ``nbconvert --execute`` store them, and JupyterLab does by its setting
    *Save Widget State Automatically*.
    """

    _esm = packed_module()

    parts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    architecture = traitlets.Unicode().tag(sync=True)
    second = traitlets.Unicode().tag(sync=True)
    index = traitlets.Int().tag(sync=True)
    frequency = traitlets.List(traitlets.Int()).tag(sync=True)
    photo = traitlets.Int().tag(
        sync=True
    )  # -1 is an image of the reader's own, which stays in the browser
    kept = traitlets.Int().tag(sync=True)

    labels = traitlets.Dict().tag(sync=True)  # of the architectures in the menu, by name
    _wanted = traitlets.List(traitlets.Unicode()).tag(
        sync=True
    )  # the names whose arrays the browser has asked for
    _packets = traitlets.Dict().tag(sync=True)  # name -> header and bytes

    def __init__(self, view: View, source: Source):
        self._first, self._source = view, source
        super().__init__(labels=source.labels, **vars(view))
        self._packets = {name: compressed(source.packet(name)) for name in names_in_view(view)}

    @traitlets.validate(*KEYS)
    def _require_drawable(self, proposal: dict[str, Any]) -> object:
        key, value = proposal["trait"].name, proposal["value"]
        if key == "photo" and value == -1:
            return value
        if key == "parts" and tuple(value) != tuple(self._first.parts):
            raise traitlets.TraitError(
                "the parts of an explorer stay as they were made: call show again"
            )
        view = View(self._first.parts, self.architecture, self.second)
        try:
            return require_drawable(key, value, view, self._source)
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None

    @traitlets.observe("architecture", "second")
    def _follow(self, change: dict[str, Any]) -> None:
        """Stay within the NADs of the architectures in view."""
        count = self._source.count(self.architecture, self.second)
        self.index, self.kept = min(self.index, count - 1), min(self.kept, count)

    @traitlets.observe("_wanted")
    def _answer(self, change: dict[str, Any]) -> None:
        """Send arrays when they are first asked for."""
        new = [
            name
            for name in change["new"]
            if name not in self._packets and name in (*self.labels, "photos")
        ]
        packets = {name: self._source.packet(name) for name in new}
        self._packets = self._packets | {
            n: header | {"bytes": content} for n, (header, content) in packets.items()
        }


class Range(NamedTuple):
    """What a slider offers: its label, the least and the largest value, the step between values,
    and the first one.
    """

    label: str
    min: float
    max: float
    step: float
    value: float


class Sliders(anywidget.AnyWidget):
    """Sliders, and a picture that Python draws anew when one of them moves; `live_sliders` makes
    one.

    Its attributes follow the reader, and the reader sees what you set: ``sliders.index = 12``.

    Args:
        draw: function from the values, by name, to the picture as a PNG and its description.
        index, kept, strength: ranges of the sliders.
    """

    _esm = Path(__file__).with_name("sliders.js").read_text("utf8")
    _css = """
        .nad-sliders label {
            display: grid; grid-template-columns: 6em 1fr 3em; gap: 0.75rem; align-items: center;
        }
        .nad-sliders input { width: 100%; margin: 0.4rem 0; }
        .nad-sliders img { max-width: 100%; image-rendering: pixelated; }
    """

    index = traitlets.Int().tag(sync=True)
    kept = traitlets.Int().tag(sync=True)
    strength = traitlets.Float().tag(sync=True)
    sliders = traitlets.Dict().tag(sync=True)  # name -> range
    png = traitlets.Bytes().tag(sync=True)
    alt = traitlets.Unicode().tag(sync=True)

    def __init__(self, draw: Callable[..., tuple[bytes, str]], **ranges: Range):
        self._draw = draw
        super().__init__(
            sliders={name: one._asdict() for name, one in ranges.items()},
            **{name: one.value for name, one in ranges.items()},  # draws the first picture
        )

    @traitlets.observe("index", "kept", "strength")
    def _follow(self, change: dict[str, Any]) -> None:
        """Send the new picture, and its description with it."""
        with self.hold_sync():
            self.png, self.alt = self._draw(self.index, self.kept, self.strength)
