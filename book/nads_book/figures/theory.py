"""The figures of the theory chapters, one call each; each returns a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from nads_book.checks import LIMIT, Check
from nads_book.figures.style import COLOURS, DIVERGING, WIDTH, colours, shade, subplots
from nads_book.figures.variants import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = Sequence[float] | np.ndarray | Tensor


@styled
def plot_images(images: Mapping[str, Tensor]) -> Figure:
    """Draw grey images side by side, each over the whole square, with common grey levels from −1 to 1.

    Args:
        images: title -> (H, W).
    """
    figure, (axes,) = subplots(1, len(images), WIDTH / len(images) + 0.35)
    for axis, (title, image) in zip(axes, images.items(), strict=True):
        axis.imshow(np.asarray(image), cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
        axis.set(xticks=[], yticks=[], title=f"{title}\n{image.shape[0]} × {image.shape[1]} pixels")
    return figure


@styled
def plot_aliasing(signals: Mapping[str, Tensor], pooled: Mapping[str, Tensor], offsets: Mapping[str, float]) -> Figure:
    """Draw each signal with the samples that its pooling keeps, one panel a signal.

    Args:
        signals: title -> (D,).
        pooled: title -> (D / S,).
        offsets: title -> where in its window an output is drawn, in samples.
    """
    figure, axes = subplots(len(signals), 1, 1.35 * len(signals) + 0.3, sharex=True, sharey=True)
    for axis, (title, signal) in zip(axes[:, 0], signals.items(), strict=True):
        axis.plot(np.asarray(signal), "-", color=shade(0.5), linewidth=1, label="signal")
        centres = np.arange(len(pooled[title])) * len(signal) / len(pooled[title]) + offsets[title]
        axis.plot(
            centres,
            np.asarray(pooled[title]),
            "o-",
            color=COLOURS[0],
            markersize=4,
            linewidth=1.2,
            label="after pooling",
        )
        axis.set_title(title)
        axis.set_ylabel("value")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
    axes[-1, 0].set_xlabel("sample")
    return figure


@styled
def plot_curves(
    frequencies: Curve,
    panels: Mapping[str, Mapping[str, Curve]],
    ylabel: str,
    *,
    points: Mapping[str, tuple[Curve, Curve, Curve]] | None = None,
    dashed: Mapping[str, Mapping[str, Curve]] | None = None,
    yscale: str = "linear",
    xlabel: str = "frequency ℓ",
    ylim: tuple[float, float] | None = None,
) -> Figure:
    """Draw curves over the frequency, one panel a title; dashed ones and measured points may lie over them.

    Args:
        frequencies: (F,).
        panels: title -> label -> (F,).
        ylabel: of the first panel.
        points: title -> (frequencies, values, standard errors), drawn with two standard errors.
        dashed: title -> label -> (F,), drawn dashed, in the colours that follow those of the panel's curves.
        yscale: of all panels.
        xlabel: of all panels.
        ylim: of all panels.
    """
    figure, (axes,) = subplots(1, len(panels), 2.9, sharey=True)
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        dashes = (dashed or {}).get(title, {})
        for index, (label, values) in enumerate([*curves.items(), *dashes.items()]):
            style = "--" if label in dashes else "-"
            axis.plot(frequencies, np.asarray(values), style, color=colours()[index], label=label, linewidth=1.5)
        if points and title in points:
            where, values, errors = points[title]
            axis.errorbar(
                where,
                values,
                2 * np.asarray(errors),
                fmt="o",
                color=shade(0),
                markersize=3,
                linewidth=1,
                label="simulated",
            )
        axis.set(title=title, xlabel=xlabel, yscale=yscale)
        axis.grid(alpha=0.3)
        if ylim:
            axis.set_ylim(*ylim)
        axis.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylabel(ylabel)
    if len(axes[-1].get_legend_handles_labels()[1]) > 1:
        axes[-1].legend()
    return figure


@styled
def plot_kept_shares(
    frequencies: Curve, theory: Curve, measured: Mapping[str, tuple[Curve, Curve]], exact: Mapping[str, Curve]
) -> Figure:
    """Draw the share q of each frequency that a layer keeps: measured for pooling, exact for strided convolutions.

    Args:
        frequencies: (F,).
        theory: (F,), of average pooling.
        measured: label -> (q, standard error).
        exact: label -> q.
    """
    figure, ((left, right),) = subplots(1, 2, 3.5, sharey=True)
    left.plot(frequencies, theory, color=shade(0), linewidth=1, label="average pooling, formula")
    for (label, (values, errors)), colour in zip(measured.items(), colours(), strict=False):
        left.errorbar(
            frequencies, values, 2 * np.asarray(errors), fmt="o", color=colour, markersize=3, linewidth=1, label=label
        )
    for (label, values), colour in zip(exact.items(), colours(), strict=False):
        right.plot(frequencies, values, color=colour, label=label)
    left.set(title="pooling, measured", ylabel="share q that can be read out", ylim=(-0.04, 1.08))
    right.set(title="strided convolutions, exact")
    for axis in (left, right):
        axis.set_xlabel("frequency ℓ")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
        axis.grid(alpha=0.3)
    return figure


@styled
def plot_two_classes(panels: Mapping[str, tuple[Tensor, Tensor]]) -> Figure:
    """Draw the two classes in the plane of one complex output coefficient.

    Args:
        panels: title -> (complex samples (N,), labels (N,) in {-1, 1}).
    """
    figure, (axes,) = subplots(1, len(panels), 3.0)
    for axis, (title, (samples, labels)) in zip(axes, panels.items(), strict=True):
        for label, colour in ((1, COLOURS[0]), (-1, COLOURS[1])):
            chosen = samples[labels == label]
            axis.plot(chosen.real, chosen.imag, ".", color=colour, markersize=2.5, alpha=0.5, label=f"y = {label:+d}")
        reach = 1.05 * float(samples.abs().max())
        axis.set(title=title, xlabel="real part", ylabel="imaginary part", xlim=(-reach, reach), ylim=(-reach, reach))
        axis.set_aspect("equal")
        axis.grid(alpha=0.3)
    axes[0].legend(markerscale=4, loc="upper right")
    return figure


@styled
def plot_checks(results: Mapping[str, Sequence[Check]], labels: tuple[str, str] = ("our form", "as printed")) -> Figure:
    """Draw how many standard errors every setting is off, by our form and by the printed one, a row a statement."""
    figure, ((axis,),) = subplots(1, 1, 0.9 + 0.55 * len(results))
    for row, checks in enumerate(results.values()):
        for offset, colour, marker, values in (
            (-0.14, COLOURS[0], "o", [abs(check.z) for check in checks]),
            (0.14, COLOURS[1], "x", [abs(check.z_printed) for check in checks]),
        ):
            place = row + offset + np.linspace(-0.08, 0.08, len(values))
            axis.plot(np.clip(values, 1e-2, 1e3), place, marker, color=colour, markersize=4, linestyle="none")
    for colour, marker, label in ((COLOURS[0], "o", labels[0]), (COLOURS[1], "x", labels[1])):
        axis.plot([], [], marker, color=colour, label=label)
    axis.axvline(LIMIT, color=shade(0), linewidth=1, linestyle=":", label="limit: 4 standard errors")
    axis.set(
        xscale="log",
        xlim=(0.8e-2, 1.3e3),
        xlabel="|z|: standard errors between simulation and formula (clipped to 0.01 … 1,000)",
    )
    axis.set_yticks(range(len(results)), list(results))
    axis.invert_yaxis()
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    axis.grid(alpha=0.3, axis="x")
    return figure


@styled
def plot_learning_curves(
    train_sizes: Sequence[int], curves: Mapping[str, tuple[Tensor, Tensor]], bounds: Curve, names: Sequence[str]
) -> Figure:
    """Draw test accuracy against training samples, a panel a classifier, with the optimal accuracy as a dotted line.

    Args:
        train_sizes: (n,).
        curves: title -> (accuracies (F, n), standard errors (F, n)).
        bounds: (F,).
        names: of the F directions.
    """
    figure, (axes,) = subplots(1, len(curves), 3.0, sharey=True)
    for axis, (title, (means, errors)) in zip(axes, curves.items(), strict=True):
        for index, name in enumerate(names):
            axis.errorbar(
                train_sizes, means[index], 2 * errors[index], fmt="o-", color=colours()[index], markersize=4, label=name
            )
            axis.axhline(float(bounds[index]), color=colours()[index], linestyle=":", linewidth=1)
        axis.set(xscale="log", title=title, xlabel="training samples")
        axis.set_xticks(train_sizes, [f"{size:,}" for size in train_sizes])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("test accuracy")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(names))
    return figure


@styled
def plot_matrices(
    matrices: Mapping[str, Tensor], *, signed: Sequence[str] = (), xlabel: str = "entry", ylabel: str = "entry"
) -> Figure:
    """Draw matrices side by side: those in ``signed`` as z values on a diverging map, the others on one common scale.

    Args:
        matrices: title -> (n, n).
        signed: titles of the matrices that hold z values.
        xlabel: of every panel.
        ylabel: of the first panel.
    """
    figure, (axes,) = subplots(1, len(matrices), 2.9)
    common = max(float(torch.as_tensor(m).abs().max()) for title, m in matrices.items() if title not in signed)
    unsigned = []  # axes and images
    for axis, (title, matrix) in zip(axes, matrices.items(), strict=True):
        limit = LIMIT if title in signed else common
        image = axis.imshow(np.asarray(matrix), cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
        axis.set(title=title, xlabel=xlabel)
        if title in signed:
            figure.colorbar(image, ax=axis, location="bottom", shrink=0.9, label="z")
        else:
            unsigned.append((axis, image))
    places = [axis for axis, _ in unsigned]
    figure.colorbar(unsigned[-1][1], ax=places, location="bottom", shrink=0.9, aspect=40, label="value")
    axes[0].set_ylabel(ylabel)
    return figure


@styled
def plot_convergence(
    frequencies: Curve, zetas: Curve, iterations: Tensor, num_steps: int, losses: Mapping[str, Curve]
) -> Figure:
    """Draw ζ and the steps to convergence over the frequency (Fig. 4b), and loss curves of some frequencies.

    Args:
        frequencies: (F,).
        zetas: (F,).
        iterations: (F, runs).
        num_steps: the budget; frequencies that exceed it are drawn as crosses on top.
        losses: label -> loss by step.
    """
    figure, ((left, right),) = subplots(1, 2, 3.1)
    median = iterations.double().quantile(0.5, 1)
    low, high = iterations.double().quantile(0.1, 1), iterations.double().quantile(0.9, 1)
    done = median <= num_steps
    left.fill_between(frequencies, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    left.plot(np.asarray(frequencies)[done], median[done], "o-", color=COLOURS[0], markersize=3,
              label="steps (median, 80 % of starts)")  # fmt: skip
    left.plot(np.asarray(frequencies)[~done], median[~done], "x", color=COLOURS[1], label="not within the budget")
    left.set(yscale="log", xlabel="frequency ℓ", ylabel="steps to convergence", title="speed of descent")
    other = left.twinx()
    other.plot(frequencies, np.maximum(np.asarray(zetas), 1e-4), "--", color=COLOURS[2], label="ζ(ℓ)")
    other.set(yscale="log", ylabel="ζ(ℓ)", ylim=(1e-4, None))
    other.spines["right"].set_visible(True)
    (lines, labels), (more_lines, more_labels) = left.get_legend_handles_labels(), other.get_legend_handles_labels()
    figure.legend(lines + more_lines, labels + more_labels, loc="outside upper center", ncols=3)
    for index, (label, values) in enumerate(losses.items()):
        right.plot(np.asarray(values), color=colours()[index], label=label)
    right.set(xlabel="step", ylabel="expected loss", title="loss of one start", ylim=(0, 1.6))
    right.legend()
    for axis in (left, right):
        axis.grid(alpha=0.3)
    return figure


@styled
def plot_saddle(values: Curve, losses: Tensor, labels: tuple[str, str]) -> Figure:
    """Draw a loss over two weights, as far as it differs from that at the origin, and cuts through the origin.

    Args:
        values: (n,), of either weight, from -a to a in equal steps, n odd.
        losses: (n, n), the first weight by rows.
        labels: of both weights, the first one's first.
    """
    values, losses = np.asarray(values), np.asarray(losses)
    middle, (first, second) = len(values) // 2, labels
    change = losses - losses[middle, middle]
    figure, ((left, right),) = subplots(1, 2, 3.1)
    limit = 2 * np.abs(change.diagonal()).max()
    levels = np.linspace(-limit, limit, 25)
    filled = left.contourf(values, values, change, levels, cmap=DIVERGING, extend="both")
    left.contour(values, values, change, levels, colors="0.4", linewidths=0.4, linestyles="-")
    left.plot(0, 0, "o", markerfacecolor=shade(1), markeredgecolor=shade(0), markersize=6)  # seen on any colour
    left.set(xlabel=second, ylabel=first, aspect="equal", title="change of the loss")
    figure.colorbar(filled, ax=left, shrink=0.8, ticks=levels[::6], format="%.1f")
    diagonal = 2**0.5 * values
    cuts = {
        f"{second} alone": (values, change[middle]),
        f"{first} alone": (values, change[:, middle]),
        "both alike": (diagonal, change.diagonal()),
        "opposite": (diagonal, change[:, ::-1].diagonal()),
    }
    for (label, (place, cut)), colour, style in zip(cuts.items(), colours(), ("-", "--", "-", "-"), strict=False):
        right.plot(place, cut, style, color=colour, label=label)
    right.set(xlabel="distance from the origin", ylabel="change of the loss", title="cuts through the origin")
    right.set_ylim(-0.6 * limit, limit)
    right.grid(alpha=0.3)
    figure.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


@styled
def plot_histogram(z: Tensor) -> Figure:
    """Draw a histogram of z values over the standard normal density."""
    figure, ((axis,),) = subplots(1, 1, 2.6)
    axis.hist(np.asarray(z), bins=np.linspace(-5, 5, 31), density=True, color=COLOURS[0], alpha=0.6, label="entries")
    grid = np.linspace(-5, 5, 201)
    axis.plot(grid, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), color=shade(0), linewidth=1, label="standard normal")
    axis.set(xlabel="z", ylabel="density")
    axis.legend()
    return figure
