"""The figures of the theory chapters, one call each; each returns a matplotlib Figure."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.figures.style import (
    DIVERGING,
    colours,
    is_narrow,
    legend,
    panel_row,
    shade,
    styled,
    subplots,
)

Curve = Sequence[float] | np.ndarray | Tensor


@styled
def plot_aliasing(
    signals: Mapping[str, Tensor], pooled: Mapping[str, Tensor], offset: float = 0.0
) -> Figure:
    """Draw each signal with the samples that its pooling keeps, one panel a signal.

    Args:
        signals: title -> (D,).
        pooled: title -> (D / S,).
        offset: place in its window at which an output is drawn, in samples.
    """
    figure, axes = subplots(
        len(signals), 1, 1.35 * len(signals) + 0.3, grid=None, sharex=True, sharey=True
    )
    for axis, (title, signal) in zip(axes[:, 0], signals.items(), strict=True):
        axis.plot(np.asarray(signal), "-", color=shade(0.5), label="signal")
        kept = np.asarray(pooled[title])
        centres = np.arange(len(kept)) * len(signal) / len(kept) + offset
        axis.plot(centres, kept, "o-", color=colours()[0], label="after pooling")
        axis.set(title=title, ylabel="value")
    legend(figure, axes[0, 0], "outside upper right", ncols=2)
    axes[-1, 0].set_xlabel("sample")
    return figure


@styled
def plot_curves(
    frequencies: Curve,
    panels: Mapping[str, Mapping[str, Curve]],
    ylabel: str,
    *,
    points: Mapping[str, Mapping[str, tuple[Curve, Curve, Curve]]] | None = None,
    dashed: Mapping[str, Mapping[str, Curve]] | None = None,
    yscale: str = "linear",
    xlabel: str = "frequency ℓ",
    ylim: tuple[float, float] | None = None,
) -> Figure:
    """Draw curves over the frequency, one panel a title; dashed ones and measured points may lie
    over them.

    Args:
        frequencies: (F,).
        panels: title -> label -> (F,).
        ylabel: label of the first vertical axis.
        points: title -> label -> (frequencies, values, standard errors), drawn with two standard
            errors.
        dashed: title -> label -> (F,), drawn dashed, in the colours that follow those of the
            panel's curves.
        yscale: scale of all vertical axes.
        xlabel: label of all horizontal axes.
        ylim: limits of all vertical axes; by default chosen by matplotlib.
    """
    figure, axes = panel_row(panels, 2.9, xlabel=xlabel, ylabel=ylabel, sharey=True)
    for axis, (title, solid) in zip(axes, panels.items(), strict=True):
        dashes, dots = ((kind or {}).get(title, {}) for kind in (dashed, points))
        for label, values in [*solid.items(), *dashes.items()]:
            axis.plot(
                frequencies, np.asarray(values), "--" if label in dashes else "-", label=label
            )
        inks = [shade(0)] if len(dots) == 1 else colours()
        for (label, (where, values, errors)), ink in zip(dots.items(), inks, strict=False):
            bars = 2 * np.asarray(errors)
            axis.errorbar(where, values, bars, fmt="o", color=ink, markersize=3, label=label)
        axis.set(yscale=yscale, **({"ylim": ylim} if ylim else {}))
        axis.xaxis.get_major_locator().set_params(integer=True)
    labels = [axis.get_legend_handles_labels()[1] for axis in axes]
    if any(own != labels[0] for own in labels):
        for axis in axes:
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2 - is_narrow())
    elif len(labels[0]) > 1:
        axes[-1].legend()
    return figure


@styled
def plot_two_classes(panels: Mapping[str, tuple[Tensor, Tensor]]) -> Figure:
    """Draw the two classes in the plane of one complex output coefficient.

    Args:
        panels: title -> (complex samples (N,), labels (N,) in {-1, 1}).
    """
    figure, axes = panel_row(panels, xlabel="real part")
    for axis, (samples, labels) in zip(axes, panels.values(), strict=True):
        for label, name in ((1, "y = +1"), (-1, "y = −1")):
            chosen = samples[labels == label]
            axis.plot(chosen.real, chosen.imag, ".", markersize=2.5, alpha=0.5, label=name)
        ends = 1.05 * float(samples.abs().max()) * np.array([-1, 1])
        axis.set(ylabel="imaginary part", xlim=ends, ylim=ends, aspect="equal")
    axes[0].legend(markerscale=4, loc="upper right")
    return figure


@styled
def plot_matrices(
    matrices: Mapping[str, Tensor], *, xlabel: str = "entry", ylabel: str = "entry"
) -> Figure:
    """Draw matrices side by side, on one scale.

    Args:
        matrices: title -> (n, n).
        xlabel: label of every horizontal axis.
        ylabel: label of the first vertical axis.
    """
    figure, axes = panel_row(matrices, 2.9, xlabel=xlabel, ylabel=ylabel, grid=None)
    limit = max(float(matrix.abs().max()) for matrix in matrices.values())
    for axis, matrix in zip(axes, matrices.values(), strict=True):
        image = axis.imshow(np.asarray(matrix), cmap=DIVERGING, vmin=-limit, vmax=limit)
    figure.colorbar(image, ax=axes, shrink=0.9, label="value")
    return figure


@styled
def plot_convergence(
    frequencies: Curve,
    zetas: Curve,
    iterations: Tensor,
    num_steps: int,
    reference: Tensor | None = None,
) -> Figure:
    """Draw the steps to convergence over the frequency, and ζ below them (Fig. 4b).

    Args:
        frequencies: (F,).
        zetas: (F,).
        iterations: (F, runs).
        num_steps: the budget; frequencies that exceed it are drawn as crosses on top.
        reference: steps of other settings (F, runs), whose medians are drawn in grey.
    """
    figure, axes = subplots(2, 1, 4.6)
    upper, lower = axes[:, 0]
    low, median, high = iterations.double().quantile(torch.tensor([0.1, 0.5, 0.9]).double(), 1)
    done, places = median <= num_steps, np.asarray(frequencies)
    if reference is not None:
        medians = reference.double().median(1).values
        upper.plot(places, medians, color=shade(0.5), label="median before")
    upper.fill_between(places, low, high, color=colours()[0], alpha=0.2, linewidth=0)
    label = "median of the starts (band: 80 % of them)"
    upper.plot(places[done], median[done], "o-", color=colours()[0], markersize=3, label=label)
    label = f"more than {num_steps:,} steps"
    upper.plot(places[~done], median[~done], "x", color=colours()[1], label=label)
    upper.set(ylabel="steps to convergence", title="How long does training take?")
    lower.plot(places, np.maximum(np.asarray(zetas), 1e-4), "o-", color=colours()[2], markersize=3)
    lower.set(ylabel="ζ(ℓ)", title="How strong is the signal?")
    for axis in axes[:, 0]:
        axis.set(yscale="log", xlabel="frequency ℓ")
    lower.set_ylim(bottom=1e-4)
    legend(figure, upper, ncols=2)
    return figure
