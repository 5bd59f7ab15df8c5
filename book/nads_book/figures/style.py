"""The look of the book's figures: colours, sizes, and the axes that several of them share."""

import functools
from collections.abc import Callable, Iterable, Sequence
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.figures.publishing import draws_variants
from nads_book.figures.settings import LOOK, drawn_with
from nads_book.figures.variants import Variants

WIDTH = LOOK["figure.figsize"][0]
TURNED = {"width_ratios": "height_ratios"}
LONGEST = 6
DIVERGING, SEQUENTIAL = "RdBu_r", "magma"


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in the book's style without a change to the reader's settings; in the book, the output
    has all variants.

    The function gets one more keyword argument, ``badge``: what the data are, such as "CIFAR-10",
    drawn in the corner.
    """

    @functools.wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Figure:
        with_badge = functools.partial(
            _with_badge, str(kwargs.pop("badge", "")), draw, *args, **kwargs
        )
        if not draws_variants():
            return drawn_with(LOOK, with_badge)
        variants = Variants(with_badge)
        variants.light._repr_mimebundle_ = variants.bundle  # type: ignore[attr-defined]
        return variants.light

    return drawn


def _with_badge(badge: str, draw: Callable[..., Figure], *args: Any, **kwargs: Any) -> Figure:
    figure = draw(*args, **kwargs)
    if badge:
        show_badge(figure, badge)
    return figure


def show_badge(figure: Figure, badge: str) -> None:
    """Draw what the data are, such as "CIFAR-10", in the corner of a figure."""
    box = {"boxstyle": "round,pad=0.3", "facecolor": "none", "edgecolor": shade(0.5)}
    figure.supxlabel(badge, x=0.99, ha="right", fontsize=7, color=shade(0.3), bbox=box)


def colours() -> tuple[str, ...]:
    """Return the colours of up to seven series on the ground that a figure is drawn on, the last
    one in ink.
    """
    return (*rcParams["axes.prop_cycle"].by_key()["color"], shade(0))


def shade(level: float) -> str:
    """Return a grey between ink (0) and ground (1), which follows the settings that a figure is
    drawn with.
    """
    ink, ground = (np.array(to_rgb(rcParams[key])) for key in ("text.color", "figure.facecolor"))
    return to_hex(ink + level * (ground - ink))


def subplots(
    rows: int = 1,
    columns: int = 1,
    height: float = 3.0,
    *,
    grid: str | None = "both",
    **options: Any,
) -> tuple[Figure, np.ndarray]:
    """Return a figure of the text width and its axes as a (rows, columns) array.

    In a narrow figure one or two rows of up to `LONGEST` panels are drawn as columns.

    Args:
        rows: number of rows.
        columns: number of columns.
        height: height in inches.
        grid: axis whose ticks have faint lines, "x", "y" or "both"; None for no lines.
        **options: options of `matplotlib.pyplot.subplots`.
    """
    width, narrow = rcParams["figure.figsize"][0], is_narrow()
    turned = narrow and rows < 3 and 1 < columns <= LONGEST
    if turned:
        rows, columns, height = columns, rows, 0.85 * columns * height / rows
        options = {TURNED.get(k, k): v for k, v in options.items()}
    elif narrow and columns > 1:
        height *= 0.3 + width / WIDTH
    figure, axes = plt.subplots(
        rows, columns, figsize=(width, height), layout="constrained", squeeze=False, **options
    )
    for axis in axes.flat if grid else ():
        axis.grid(alpha=0.3, axis=grid)
    return figure, axes.T if turned else axes


def is_narrow() -> bool:
    """Return whether the settings are those of a narrow figure."""
    return bool(rcParams["figure.figsize"][0] < WIDTH)


def panel_row(
    titles: Iterable[str],
    height: float = 3.0,
    *,
    xlabel: str = "",
    ylabel: str = "",
    **options: Any,
) -> tuple[Figure, np.ndarray]:
    """Return a figure with one row of titled panels, of which the first has a vertical label, and
    the panels (n,).

    Args:
        titles: titles of the panels.
        height: height in inches.
        xlabel: label of every horizontal axis.
        ylabel: label of the first vertical axis.
        **options: options of `subplots`.
    """
    titles = list(titles)
    figure, (axes,) = subplots(1, len(titles), height, **options)
    for axis, title in zip(axes, titles, strict=True):
        axis.set(title=title, xlabel=xlabel)
    for axis in axes if is_narrow() else axes[:1]:
        axis.set_ylabel(ylabel)
    return figure, axes


def legend(figure: Figure, axes: Axes | Iterable[Axes], **options: Any) -> None:
    """Draw one legend for several axes, in which every label occurs once.

    Args:
        figure: figure that gets the legend.
        axes: one of its axes, or several.
        **options: options of `matplotlib.figure.Figure.legend`.
    """
    handles: dict[str, Any] = {}
    for axis in [axes] if isinstance(axes, Axes) else axes:
        handles |= {
            label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
    if is_narrow():
        options["ncols"] = 1
    figure.legend(list(handles.values()), list(handles), loc="outside upper center", **options)


def show_signed(axis: Axes, image: Tensor | np.ndarray, limit: float | None = None) -> None:
    """Draw a signed image (H, W) with zero in the middle of the colour map, which ends at a limit
    or at the largest value.
    """
    image = np.asarray(image)
    limit = limit or np.nanmax(np.abs(image))
    axis.imshow(image, cmap=DIVERGING, vmin=-limit, vmax=limit)
    bare(axis)


def show_spectrum(axis: Axes, direction: Tensor) -> None:
    """Draw the energy of an image over frequencies, of all channels, zero in the middle: (H, W) or
    (C, H, W).
    """
    channels = direction.reshape(-1, *direction.shape[-2:])
    energy = torch.fft.fftshift(torch.fft.fft2(channels).abs().square().sum(0))
    axis.imshow((energy / energy.sum()).numpy(), cmap=SEQUENTIAL, vmin=0)
    bare(axis)


def show_colours(axis: Axes, image: Tensor) -> None:
    """Draw an image of three channels in [0, 1], to which other values are clipped: (3, H, W)."""
    axis.imshow(image.clamp(0, 1).permute(1, 2, 0).numpy())
    bare(axis)


def bar_ends(estimates: np.ndarray | Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Return values (n,) and the lengths of their bars below and above (2, n), as `Axes.errorbar`
    takes them; an end that is not finite has none.

    Args:
        estimates: (n, 3), each a value with the ends of its interval; or values (n,).
    """
    found = np.asarray(estimates, dtype=float).reshape(len(estimates), -1)  # (n, 1 or 3)
    value, low, high = found[:, [0, 1 % found.shape[1], -1]].T
    lengths = np.stack([value - low, high - value])
    return value, np.where(np.isfinite(lengths), lengths, 0).clip(0)


def rule(axis: Axes, level: float = 0) -> None:
    """Draw a thin horizontal line to compare with."""
    axis.axhline(level, color=shade(0.4), linewidth=0.8)


def dotted(label: str = "", level: float = 0.4) -> dict[str, Any]:
    """Return the look of a line to compare with, such as chance: of a `shade`, and labelled."""
    return {"color": shade(level), "linestyle": ":", "linewidth": 1, "label": label}


def log_ticks(axis: Axes, ticks: Sequence[float] | np.ndarray, labels: Iterable[str] = ()) -> None:
    """Make a horizontal axis logarithmic, with some ticks only; labels are the numbers, unless
    they are given.
    """
    axis.set_xscale("log")
    limits = axis.get_xlim()  # ticks outside do not widen them
    axis.set_xticks(ticks, list(labels) or [f"{tick:,g}" for tick in ticks])
    axis.set_xlim(limits)
    axis.minorticks_off()


def name_rows(axis: Axes, names: Iterable[str]) -> None:
    """Make a vertical axis of rows, the first on top."""
    names = [fill(name, 20) if is_narrow() else name for name in names]
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)


def bare(axis: Axes) -> None:
    """Remove ticks and frame."""
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
