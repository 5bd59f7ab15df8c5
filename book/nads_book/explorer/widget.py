"""Sliders that call Python as a widget; importing this module needs anywidget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import traitlets


class Sliders(anywidget.AnyWidget):
    """Sliders, and a picture that Python draws anew when one of them moves; `live_sliders` makes
    one.

    Its attributes follow the reader, and the reader sees what you set: ``sliders.index = 12``.

    Args:
        draw: function from the values, by name, to the picture as a PNG and its description.
        index, kept, strength: label of each slider, its least and largest value, the step between
            values, and the first one.
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

    def __init__(self, draw: Callable[..., tuple[bytes, str]], **ranges: dict[str, Any]):
        self._draw = draw
        super().__init__(
            sliders=ranges,
            **{name: one["value"] for name, one in ranges.items()},  # draws the first picture
        )

    @traitlets.observe("index", "kept", "strength")
    def _follow(self, change: dict[str, Any]) -> None:
        """Send the new picture, and its description with it."""
        with self.hold_sync():
            self.png, self.alt = self._draw(self.index, self.kept, self.strength)
