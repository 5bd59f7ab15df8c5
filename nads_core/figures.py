"""Every figure of the book, one call each. Each returns a matplotlib Figure and draws nothing on import."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from nads_core.directions import NADs
from nads_core.fourier import spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.6  # inches: the text width of the book
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # Okabe and Ito
DIVERGING, SEQUENTIAL = "RdBu_r", "magma"
_STYLE = {
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 9, "axes.labelsize": 9, "font.size": 9,
    "xtick.labelsize": 8, "ytick.labelsize": 8, "legend.fontsize": 8, "legend.frameon": False, "figure.dpi": 150,
    "savefig.facecolor": "white", "figure.facecolor": "white",
}  # fmt: skip


def _styled(draw: Callable) -> Callable:
    """Draw in the book's style, leaving the reader's own settings as they were."""

    @functools.wraps(draw)
    def styled(*args, **kwargs):
        import matplotlib.pyplot as plt

        with plt.rc_context(_STYLE):
            figure = draw(*args, **kwargs)
            plt.close(figure)  # a notebook shows the returned figure once, not twice
        return figure

    return styled


def _subplots(rows: int = 1, columns: int = 1, height: float = 3.0, **options) -> tuple[Figure, np.ndarray]:
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(WIDTH, height), layout="constrained", squeeze=False, **options)


def _show_signed(axis: Axes, image: Tensor | np.ndarray, limit: float | None = None) -> None:
    image = np.asarray(image)
    limit = limit or np.abs(image).max()
    axis.imshow(image, cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
    _bare(axis)


def _show_spectrum(axis: Axes, direction: Tensor) -> None:
    share = np.asarray(spectrum(direction))
    half = share.shape[0] // 2
    axis.imshow(share, cmap=SEQUENTIAL, vmin=0, extent=(-half - 0.5, half - 0.5, half - 0.5, -half - 0.5))
    _bare(axis)


def _bare(axis: Axes) -> None:
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


@_styled
def plot_directions(bases: Mapping[str, NADs], indices: Sequence[int] = (0, 1, 2, 3)) -> Figure:
    """Draw NADs in pixels (left) and their energy in the Fourier domain (right), one architecture a row (Fig. 5).

    Args:
        bases: label -> NADs of single-channel images.
        indices: which directions.
    """
    count = len(indices)
    figure, axes = _subplots(
        len(bases), 2 * count + 1, 0.35 + 0.98 * len(bases), width_ratios=[1] * count + [0.25] + [1] * count
    )
    for column, index in enumerate(indices):
        axes[0, column].set_title(f"NAD {index}")
        axes[0, count + 1 + column].set_title(f"spectrum {index}")
    for row, (label, nads) in zip(axes, bases.items(), strict=True):
        row[count].axis("off")
        for column, index in enumerate(indices):
            _show_signed(row[column], nads.directions[index, 0])
            _show_spectrum(row[count + 1 + column], nads.directions[index, 0])
        row[0].set_ylabel(label)
    return figure


@_styled
def plot_eigenvalues(bases: Mapping[str, NADs]) -> Figure:
    """Draw how fast the eigenvalues of each basis decay, relative to the first, on logarithmic axes (Fig. 6, green)."""
    figure, ((axis,),) = _subplots(height=3.2)
    for (label, nads), colour in zip(bases.items(), COLOURS, strict=False):
        values = np.asarray(nads.eigenvalues / nads.eigenvalues[0])
        kept = values > 0
        axis.plot(np.arange(len(values))[kept] + 1, values[kept], color=colour, label=label)
    axis.set(xscale="log", yscale="log", xlabel="rank of the NAD (1 = most preferred)", ylabel="eigenvalue / first")
    axis.legend()
    axis.grid(alpha=0.3)
    return figure


@_styled
def plot_overlaps(
    counts: Sequence[int], overlaps: Mapping[str, np.ndarray], chance: float | None = None, target: str = "another run"
) -> Figure:
    """Draw the overlap of the first NADs against the number of networks, with the spread over repetitions.

    Args:
        counts: numbers of networks, (n,).
        overlaps: label -> (repetitions, n).
        chance: overlap of random subspaces, drawn as a line.
        target: what the NADs are compared with.
    """
    figure, ((axis,),) = _subplots(height=3.0)
    for (label, values), colour in zip(overlaps.items(), COLOURS, strict=False):
        values = np.asarray(values)
        mean, error = values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0
        axis.plot(counts, mean, "o-", color=colour, label=label, markersize=4)
        axis.fill_between(counts, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.2, linewidth=0)
    if chance is not None:
        axis.axhline(chance, color="0.4", linestyle=":", linewidth=1, label="random directions")
    axis.set(xscale="log", xlabel="networks", ylabel=f"overlap with {target}", ylim=(0, 1.02))
    axis.set_xticks(counts, [f"{count:,}" for count in counts])
    axis.minorticks_off()
    axis.legend()
    axis.grid(alpha=0.3)
    return figure


@_styled
def plot_dipoles(arms: Sequence[float], panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Draw how strongly random networks separate a dipole, per unit of its length, against that length.

    Args:
        arms: lengths, (n,).
        panels: title -> label of a direction -> (n,) standard deviations over networks.
    """
    figure, (axes,) = _subplots(1, len(panels), height=2.8, sharey=True)
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for (label, values), colour in zip(curves.items(), COLOURS, strict=False):
            axis.plot(arms, values, "o-", color=colour, label=label, markersize=4)
        axis.set(xscale="log", yscale="log", title=title, xlabel="arm h")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("standard deviation / length")
    axes[0].legend(loc="center left")
    return figure


@_styled
def plot_energies(energies: Mapping[str, Tensor], ylabel: str = "energy vᵀCv / largest") -> Figure:
    """Draw our energy of each published direction against its published rank: a falling line means the same order.

    Args:
        energies: label -> (n,), in published order.
        ylabel: of the vertical axis.
    """
    figure, ((axis,),) = _subplots(height=3.0)
    for (label, values), colour in zip(energies.items(), COLOURS, strict=False):
        values = np.asarray(values)
        axis.plot(np.arange(len(values)) + 1, values / values.max(), ".", color=colour, markersize=2, label=label)
    axis.set(xscale="log", yscale="log", xlabel="published rank", ylabel=ylabel)
    axis.legend(markerscale=5)
    axis.grid(alpha=0.3)
    return figure


@_styled
def plot_poisoned(
    images: Tensor, poisoned: Mapping[str, Tensor], captions: Sequence[str], amplify: float = 10.0
) -> Figure:
    """Draw clean photos, their poisoned versions, and what was changed, amplified around grey.

    Args:
        images: (n, 3, H, W) in [0, 1].
        poisoned: label -> (n, 3, H, W).
        captions: one a photo.
        amplify: factor on the difference.
    """
    rows = 1 + 2 * len(poisoned)
    figure, axes = _subplots(rows, len(images), 0.3 + 0.98 * rows * WIDTH / 7.6 * 7 / max(7, len(images)))
    pictures = [("clean", images)]
    for label, changed in poisoned.items():
        pictures += [(label, changed), (f"change × {amplify:g}", 0.5 + amplify * (changed - images))]
    for row, (label, batch) in zip(axes, pictures, strict=True):
        for axis, image in zip(row, batch, strict=True):
            axis.imshow(image.clamp(0, 1).permute(1, 2, 0).numpy(), interpolation="nearest")
            _bare(axis)
        row[0].set_ylabel(label)
    for axis, caption in zip(axes[0], captions, strict=True):
        axis.set_title(caption)
    return figure


@_styled
def plot_accuracy_by_index(
    indices: Sequence[int],
    accuracies: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    baseline: float | None = None,
    published: tuple[Sequence[int], Sequence[float]] | None = None,
) -> Figure:
    """Draw the accuracy on clean images against the NAD index of the carrier (Fig. 7).

    Args:
        indices: NAD index of the carrier, (n,).
        accuracies: in [0, 1], (n,).
        intervals: (low, high) for each.
        baseline: accuracy after training on clean images.
        published: indices and accuracies of the paper, for another network or setting; drawn in grey.
    """
    figure, ((axis,),) = _subplots(height=3.0)
    place = lambda index: np.asarray(index, dtype=float) + 1  # noqa: E731 - a logarithmic axis has no 0
    if baseline is not None:
        axis.axhline(100 * baseline, color=COLOURS[2], linestyle="--", label="trained on clean images")
    if published is not None:
        axis.plot(
            place(published[0]),
            100 * np.asarray(published[1]),
            "s:",
            color="0.55",
            markersize=3,
            label="paper, ResNet-18",
        )
    low, high = (100 * np.abs(np.asarray(intervals).T - np.asarray(accuracies))).tolist()
    axis.errorbar(
        place(indices), 100 * np.asarray(accuracies), (low, high), fmt="o-", color=COLOURS[0], capsize=3, label="ours"
    )
    axis.axhline(10, color="0.4", linestyle=":", linewidth=1, label="chance")
    axis.set(xscale="log", xlabel="NAD index of the carrier", ylabel="accuracy on clean images (%)", ylim=(0, 100))
    axis.set_xticks(place(indices), [str(index) for index in indices])
    axis.minorticks_off()
    axis.legend(loc="upper left", ncols=2)
    axis.grid(alpha=0.3)
    return figure
