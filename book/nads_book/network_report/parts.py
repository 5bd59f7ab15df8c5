"""The parts of a report, which ``page.html`` lays out, and their pictures.

Images are PNG or JPEG, curves SVG in the colours of the page.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cycler import cycler
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.image import imsave

from nads_book.experiments.formatting import readable
from nads_book.figures.settings import COLOURS, STYLE, drawn_with
from nads_book.figures.style import DIVERGING, SEQUENTIAL
from nads_core.directions.plot import draw_direction

_DECADES = 1.5  # of the maps of energies, above and below their mean
_SVG = STYLE | {
    **{key: 12 for key in STYLE if key.endswith("size")},
    "axes.prop_cycle": cycler(color=COLOURS),
    "svg.fonttype": "none",  # letters stay letters
    "svg.hashsalt": "nads",  # the same drawing has the same identifiers
}
_PIXELATED = 192  # pixels on a side, up to which every pixel is stored and shown as a square


@dataclass(frozen=True)
class Picture:
    """A picture, by a function of this module, with two lines below."""

    drawing: Markup
    label: str = ""
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """Pictures side by side, as many as fit.

    Args:
        pictures: pictures in their order.
        caption: text below all.
        width: least width of each, in pixels; 0 for one chart.
        bar: colour bar and the texts below it.
        narrow: whether figures stand side by side.
    """

    pictures: Sequence[Picture]
    caption: str
    width: int
    bar: Sequence[str] = ()
    narrow: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Args:
        title: heading.
        sentences: statements that the data decide.
        figures: pictures below the sentences.
        numbers: content for JSON.
        opening: sentence for the summary that opens the report; "" where nothing is decided.
    """

    title: str
    sentences: Sequence[str]
    figures: Sequence[Figure]
    numbers: dict[str, Any]
    opening: str


def picture(values: np.ndarray, label: str, note: str = "", *, signed: bool = True) -> Picture:
    """Draw an input: (C, H, W) in colours, (C, L) as curves, (F,) as bars.

    Args:
        values: signed input at any scale, or image in [0, 1].
        label: text below.
        note: second line.
        signed: whether zero is in the middle of the colours.
    """
    limit = float(np.abs(values).max()) or 1.0
    if values.ndim < 3:
        drawing = _svg(lambda axis: draw_direction(axis, values), (3.2, 1.6), label)
    elif len(values) == 3:
        pixels = 0.5 + values / (2 * limit) if signed else values.clip(0, 1)
        drawing = _image(pixels.transpose(1, 2, 0), label)
    else:
        low, high, colours = (-limit, limit, DIVERGING) if signed else (0, 1, "gray")
        drawing = _image(np.hstack([*values]), label, cmap=colours, vmin=low, vmax=high)
    return Picture(drawing, label, note)


def least_width(of_images: int, shape: tuple[int, ...]) -> int:
    """Return the least width of pictures in pixels: those with axes need more than images."""
    return of_images if len(shape) == 3 else 230


def heat_maps(maps: Mapping[str, np.ndarray], caption: str, width: int) -> Figure:
    """Draw energies of waves (H, W) relative to their mean, with frequency 0 in the middle."""
    colours = {"cmap": SEQUENTIAL, "vmin": -_DECADES, "vmax": _DECADES}
    pictures = []
    for name, energies in maps.items():
        levels = np.log10(np.maximum(np.fft.fftshift(energies / energies.mean()), 1e-9))
        pictures.append(Picture(_image(levels, f"energy of the waves in {name}", **colours), name))
    bar = _image(np.linspace(-_DECADES, _DECADES, 128)[None], "colours from low to high", **colours)
    low, mean, high = (f"{readable(10.0**power, 1)} ×" for power in (-_DECADES, 0, _DECADES))
    return Figure(pictures, caption, width, (bar, f"≤ {low}", mean, f"≥ {high}"))


def chart(curves: Mapping[str, tuple[np.ndarray, Sequence[Any]]], xlabel: str, alt: str) -> Picture:
    """Draw energies by frequency, on a logarithmic axis.

    Args:
        curves: name -> frequencies (k,) and energies, (k,) or with their intervals, (k, 3).
        xlabel: label of the horizontal axis.
        alt: description for those who do not see it.
    """

    def draw(axis: Axes) -> None:
        for name, (frequencies, energies) in curves.items():
            value, *interval = np.reshape(energies, (len(frequencies), -1)).T
            label = name.replace("$", r"\$")  # which would begin a formula
            axis.plot(frequencies, np.where(value > 0, value, np.nan), label=label)
            if interval:
                axis.fill_between(frequencies, *interval, alpha=0.2, linewidth=0)
        axis.set(yscale="log", xlim=(0, None), xlabel=xlabel, ylabel="energy of a wave / mean")
        axis.grid(axis="y", alpha=0.3)
        if len(curves) > 1:
            axis.legend()

    return Picture(_svg(draw, (5.4, 3.2), alt))


def _svg(draw: Callable[[Axes], None], size: tuple[float, float], alt: str) -> Markup:
    """Return a drawing as an element whose lines and letters have the colours of the page."""
    file = io.StringIO()

    def drawn() -> Drawing:
        figure = Drawing(figsize=size, layout="constrained")
        draw(figure.subplots())
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
        return figure

    drawn_with(_SVG, drawn)
    _, start, rest = file.getvalue().partition("<svg")  # after the declaration of XML
    element = start + rest
    for number, colour in enumerate(COLOURS[:3]):
        element = element.replace(colour, f"var(--c{number})")
    element = element.replace("#000000", "var(--ink)")
    label = Markup.escape(alt)
    return Markup(element.replace("<svg", f'<svg role="img" aria-label="{label}"', 1))


def _image(values: np.ndarray, alt: str, **colours: Any) -> Markup:
    """Return an image (H, W, 3) in [0, 1], or (H, W) in a colour map, as an element."""
    file, small = io.BytesIO(), max(values.shape[:2]) <= _PIXELATED
    kind, options = ("png", {"optimize": True}) if small else ("jpeg", {"quality": 85})
    imsave(file, values, format=kind, pil_kwargs=options, **colours)
    data = base64.b64encode(file.getvalue()).decode()
    return Markup('<img alt="{}" src="data:image/{};base64,{}">').format(alt, kind, data)
