"""Figures of poisoned photos, and of what networks make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from nads_core.figures.style import COLOURS, WIDTH, bare, styled, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
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
    figure, axes = subplots(rows, len(images), 0.3 + 0.98 * rows * WIDTH / 7.6 * 7 / max(7, len(images)))
    pictures = [("clean", images)]
    for label, changed in poisoned.items():
        pictures += [(label, changed), (f"change × {amplify:g}", 0.5 + amplify * (changed - images))]
    for row, (label, batch) in zip(axes, pictures, strict=True):
        for axis, image in zip(row, batch, strict=True):
            axis.imshow(image.clamp(0, 1).permute(1, 2, 0).numpy(), interpolation="nearest")
            bare(axis)
        row[0].set_ylabel(label)
    for axis, caption in zip(axes[0], captions, strict=True):
        axis.set_title(caption)
    return figure


@styled
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
    figure, ((axis,),) = subplots(height=3.0)
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
