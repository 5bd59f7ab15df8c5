"""Pictures of a report as HTML: images as PNG or JPEG, curves as SVG in the colours of the page."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence

import numpy as np

from nads_book.report import readable

_DECADES = 1.5  # of the maps of energies, around their mean
_PIXELATED = 64  # pixels on a side, up to which every pixel is stored and shown as a square
_WINDOW = 256  # positions of a sequence that are drawn
_MOST_BARS = 64  # features of a row that are drawn
_WIDTH, _HEIGHT = 440, 250  # of a chart
_LEFT, _RIGHT, _BOTTOM = 44, 112, 36  # its margins
Curve = tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]  # x, y, low, high


def figures(pictures: Sequence[str], caption: str = "", size: int = 104) -> str:
    """Return pictures side by side, as many as fit, with a caption below.

    Args:
        pictures: pictures, by `picture` or `heat_map`.
        caption: caption of all, as HTML.
        size: least width of each, in pixels.
    """
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    grid = f'<div class="grid" style="--size:{size}px">{"".join(pictures)}</div>'
    return f"<figure>{grid}{below}</figure>"


def picture(values: np.ndarray, label: str, alt: str) -> str:
    """Draw a signed input: three channels in colour, others in blue and red, rows as curves.

    Args:
        values: (C, H, W), (C, L) or (F,), at any scale.
        label: text below, as HTML.
        alt: description for those who do not see it.
    """
    limit = float(np.abs(values).max()) or 1.0
    if values.ndim < 3:
        drawing = _curves(np.atleast_2d(values) / limit, alt, bars=values.ndim == 1)
    elif len(values) == 3:
        drawing = _image(0.5 + values.transpose(1, 2, 0) / (2 * limit), alt)
    else:
        drawing = _image(_coloured(0.5 + np.concatenate(values, 1) / (2 * limit), signed=True), alt)
    return f'<div class="picture">{drawing}<span>{label}</span></div>'


def photo(values: np.ndarray, label: str, alt: str) -> str:
    """Draw an input in [0, 1], (C, H, W); sequences and rows as `picture` does."""
    if values.ndim < 3:
        return picture(values, label, alt)
    pixels = np.broadcast_to(values[:3] if len(values) > 2 else values[:1], (3, *values.shape[1:]))
    drawing = _image(pixels.transpose(1, 2, 0), alt)
    return f'<div class="picture">{drawing}<span>{label}</span></div>'


def heat_map(energies: np.ndarray, name: str) -> str:
    """Draw energies of waves (H, W), relative to their mean, with frequency 0 in the middle."""
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = 0.5 + np.log10(np.fft.fftshift(energies)) / (2 * _DECADES)
    alt = f"energy of the waves in {name}"
    drawing = _image(_coloured(np.nan_to_num(levels, nan=0.0, neginf=0.0)), alt)
    return f'<div class="picture">{drawing}<span>{html.escape(name)}</span></div>'


def colour_bar() -> str:
    """Return the scale of `heat_map`."""
    stops = np.rint(255 * _coloured(np.linspace(0, 1, 9))).astype(int).tolist()
    colours = ",".join(f"rgb({','.join(map(str, stop))})" for stop in stops)
    ends = [readable(10.0**power, 1) for power in (-_DECADES, 0, _DECADES)]
    labels = "".join(f"<span>{end} ×</span>" for end in ends)
    scale = f'<i style="background:linear-gradient(90deg,{colours})"></i>'
    return f'<div class="bar">{scale}{labels}</div>'


def chart(curves: Mapping[str, Curve], xlabel: str, ylabel: str, alt: str) -> str:
    """Draw curves on a logarithmic vertical axis, each with its name at its end.

    Args:
        curves: name -> x, y and the ends of the intervals, or None without these. Values of 0 and
            below are left out.
        xlabel: label of the horizontal axis.
        ylabel: label above the vertical axis.
        alt: description for those who do not see it.
    """
    values = np.concatenate([y[y > 0] for _, y, _, _ in curves.values()])
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    low = max(low, high - 6)
    right = max(x.max() for x, *_ in curves.values())

    def place(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        level = (np.log10(np.maximum(y, 10.0**low)) - low) / max(1, high - low)
        across = _LEFT + x / right * (_WIDTH - _LEFT - _RIGHT)
        return np.stack([across, 14 + (1 - level) * (_HEIGHT - 14 - _BOTTOM)], axis=-1)

    parts = [f'<text x="{_LEFT}" y="10">{ylabel}</text>']
    for power in range(int(low), int(high) + 1):
        (x, y), end = place(np.array(0.0), np.array(10.0**power)), _WIDTH - _RIGHT
        parts.append(f'<path class="rule" d="M{x:.0f} {y:.1f}H{end}"/>')
        tick = readable(10.0**power, 1)
        parts.append(f'<text x="{x - 5:.0f}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>')
    for at in np.arange(0, right + 1e-9, 0.1 if right < 1 else max(1, right // 5)):
        x, _ = place(np.array(at), np.array(1.0))
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 20}" text-anchor="middle">{at:g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 3}" text-anchor="middle">{xlabel}</text>')
    ends: list[float] = []
    for number, (name, (x, y, lower, upper)) in reversed([*enumerate(curves.items())]):
        shown = y > 10.0**low
        if lower is not None and upper is not None:
            band = np.concatenate([place(x, upper), place(x, lower)[::-1]])
            parts.append(f'<path class="band" d="M{_path(band)}Z"/>')
        parts.append(f'<path class="curve c{number}" d="M{_path(place(x, y)[shown])}"/>')
        height = float(place(x, y)[shown][-1][1])
        while any(abs(height - other) < 14 for other in ends):
            height -= 14
        ends.append(height)
        label = html.escape(name if len(name) < 14 else f"{name[:12]}…")
        parts.append(
            f'<text class="c{number}" x="{_WIDTH - _RIGHT + 5}" y="{height + 4:.1f}">{label}</text>'
        )
    body = "".join(parts)
    box, label = f"0 0 {_WIDTH} {_HEIGHT}", html.escape(alt)
    return f'<svg class="chart" viewBox="{box}" role="img" aria-label="{label}">{body}</svg>'


def _path(points: np.ndarray) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _curves(channels: np.ndarray, alt: str, bars: bool) -> str:
    """Draw sequences (C, L) in [-1, 1] as lines or bars; of long ones where their energy is."""
    first, most = 0, _MOST_BARS if bars else _WINDOW
    if channels.shape[1] > most:
        energy = np.convolve(np.square(channels).sum(0), np.ones(most), "valid")
        first = int(energy.argmax())
        channels = channels[:, first : first + most]
    step = 200 / channels.shape[1]
    x = (np.arange(channels.shape[1]) + 0.5) * step
    paths = []
    for number, values in enumerate(channels):
        path = _path(np.stack([x, 50 - 46 * values], axis=1))
        if bars:
            path = "M".join(
                f"{at:.1f} 50V{50 - 46 * value:.1f}" for at, value in zip(x, values, strict=True)
            )
        paths.append(f'<path class="curve c{number % 4}" d="M{path}"/>')
    label = html.escape(alt)
    width = f' style="stroke-width:{0.7 * step:.1f}"' if bars else ""
    return (
        f'<svg viewBox="0 0 200 100" role="img" aria-label="{label}"{width}>'
        f'<path class="rule" d="M0 50H200"/>{"".join(paths)}</svg>'
    )


def _coloured(levels: np.ndarray, signed: bool = False) -> np.ndarray:
    from matplotlib import colormaps

    from nads_book.figures.style import DIVERGING, SEQUENTIAL

    return colormaps[DIVERGING if signed else SEQUENTIAL](np.clip(levels, 0, 1))[..., :3]


def _image(pixels: np.ndarray, alt: str) -> str:
    """Return an image (H, W, 3) in [0, 1] as an element."""
    from PIL import Image

    content = Image.fromarray(np.rint(255 * np.clip(pixels, 0, 1)).astype(np.uint8))
    file, small = io.BytesIO(), max(content.size) <= 3 * _PIXELATED
    content.save(
        file, "PNG" if small else "JPEG", **({"optimize": True} if small else {"quality": 85})
    )
    data = base64.b64encode(file.getvalue()).decode()
    kind = "png" if small else "jpeg"
    return f'<img alt="{html.escape(alt)}" src="data:image/{kind};base64,{data}">'
