"""The figures of the theory chapters, one call each; each returns a matplotlib Figure."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from nads_book.checks import LIMIT, Check
from nads_book.figures.style import (
    COLOURS,
    DIVERGING,
    WIDTH,
    colours,
    dotted,
    legend,
    log_ticks,
    panel_row,
    shade,
    styled,
    subplots,
)

Curve = Sequence[float] | np.ndarray | Tensor


@styled
def plot_images(images: Mapping[str, Tensor]) -> Figure:
    """Draw grey images side by side, each over the whole square, with common grey levels from −1 to
    1.

    Args:
        images: title -> (H, W).
    """
    titles = [
        f"{title}\n{image.shape[0]} × {image.shape[1]} pixels" for title, image in images.items()
    ]
    figure, axes = panel_row(titles, WIDTH / len(images) + 0.35)
    for axis, image in zip(axes, images.values(), strict=True):
        axis.imshow(np.asarray(image), cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
        axis.set(xticks=[], yticks=[])
    return figure


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
        axis.plot(np.asarray(signal), "-", color=shade(0.5), linewidth=1, label="signal")
        centres = np.arange(len(pooled[title])) * len(signal) / len(pooled[title]) + offset
        axis.plot(
            centres,
            np.asarray(pooled[title]),
            "o-",
            color=COLOURS[0],
            markersize=4,
            linewidth=1.2,
            label="after pooling",
        )
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
    points: Mapping[str, tuple[Curve, Curve, Curve]] | None = None,
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
        points: title -> (frequencies, values, standard errors), drawn with two standard errors.
        dashed: title -> label -> (F,), drawn dashed, in the colours that follow those of the
            panel's curves.
        yscale: scale of all vertical axes.
        xlabel: label of all horizontal axes.
        ylim: limits of all vertical axes; by default chosen by matplotlib.
    """
    figure, axes = panel_row(panels, 2.9, xlabel=xlabel, ylabel=ylabel, sharey=True)
    for axis, (title, solid) in zip(axes, panels.items(), strict=True):
        dashes = (dashed or {}).get(title, {})
        for index, (label, values) in enumerate([*solid.items(), *dashes.items()]):
            style = "--" if label in dashes else "-"
            axis.plot(
                frequencies,
                np.asarray(values),
                style,
                color=colours()[index],
                label=label,
                linewidth=1.5,
            )
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
        axis.set(yscale=yscale, **({"ylim": ylim} if ylim else {}))
        axis.xaxis.get_major_locator().set_params(integer=True)
    if len(axes[-1].get_legend_handles_labels()[1]) > 1:
        axes[-1].legend()
    return figure


@styled
def plot_kept_shares(
    frequencies: Curve,
    theory: Curve,
    measured: Mapping[str, tuple[Curve, Curve]],
    exact: Mapping[str, Curve],
) -> Figure:
    """Draw the share q of each frequency that a layer keeps: measured for pooling, exact for
    strided convolutions.

    Args:
        frequencies: (F,).
        theory: (F,), of average pooling.
        measured: label -> (q, standard error).
        exact: label -> q.
    """
    titles = ("pooling, measured", "strided convolutions, exact")
    ylabel = "share q that can be read out"
    figure, (left, right) = panel_row(titles, 3.5, xlabel="frequency ℓ", ylabel=ylabel, sharey=True)
    left.plot(frequencies, theory, color=shade(0), linewidth=1, label="average pooling, formula")
    for (label, (values, errors)), colour in zip(measured.items(), colours(), strict=False):
        left.errorbar(
            frequencies,
            values,
            2 * np.asarray(errors),
            fmt="o",
            color=colour,
            markersize=3,
            linewidth=1,
            label=label,
        )
    for (label, values), colour in zip(exact.items(), colours(), strict=False):
        right.plot(frequencies, values, color=colour, label=label)
    left.set_ylim(-0.04, 1.08)
    for axis in (left, right):
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    return figure


@styled
def plot_two_classes(panels: Mapping[str, tuple[Tensor, Tensor]]) -> Figure:
    """Draw the two classes in the plane of one complex output coefficient.

    Args:
        panels: title -> (complex samples (N,), labels (N,) in {-1, 1}).
    """
    figure, axes = panel_row(panels, xlabel="real part")
    for axis, (samples, labels) in zip(axes, panels.values(), strict=True):
        for label, colour in ((1, COLOURS[0]), (-1, COLOURS[1])):
            chosen = samples[labels == label]
            axis.plot(
                chosen.real,
                chosen.imag,
                ".",
                color=colour,
                markersize=2.5,
                alpha=0.5,
                label=f"y = {'−+'[label > 0]}1",
            )
        reach = 1.05 * float(samples.abs().max())
        axis.set(
            ylabel="imaginary part", xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal"
        )
    axes[0].legend(markerscale=4, loc="upper right")
    return figure


@styled
def plot_checks(results: Mapping[str, Sequence[Check]]) -> Figure:
    """Draw how many standard errors each setting is off by the corrected formula and by the
    paper's, in rows.
    """
    figure, ((axis,),) = subplots(1, 1, 0.9 + 0.55 * len(results), grid="x")
    for offset, colour, marker, label, z in (
        (-0.14, COLOURS[0], "o", "corrected formula", "z"),
        (0.14, COLOURS[1], "x", "the paper's formula", "z_printed"),
    ):
        for row, checks in enumerate(results.values()):
            values = [abs(getattr(check, z)) for check in checks]
            place = row + offset + np.linspace(-0.08, 0.08, len(values))
            axis.plot(
                np.clip(values, 1e-2, 1e3),
                place,
                marker,
                color=colour,
                markersize=4,
                linestyle="none",
            )
        axis.plot([], [], marker, color=colour, label=label)
    axis.axvline(LIMIT, **dotted("limit: 4 standard errors", 0))
    axis.set_xlabel(
        "distance between simulation and formula (standard errors, clipped to 0.01 … 1,000)"
    )
    axis.set(xscale="log", xlim=(0.8e-2, 1.3e3))
    axis.set_yticks(range(len(results)), list(results))
    axis.invert_yaxis()
    legend(figure, axis, ncols=3)
    return figure


@styled
def plot_learning_curves(
    train_sizes: Sequence[int],
    curves: Mapping[str, tuple[Tensor, Tensor]],
    bounds: Curve,
    names: Sequence[str],
) -> Figure:
    """Draw test accuracy against training samples, a panel a classifier, with the optimal accuracy
    as a dotted line.

    Args:
        train_sizes: (n,).
        curves: title -> (accuracies (F, n), standard errors (F, n)).
        bounds: (F,).
        names: names of the F directions.
    """
    figure, axes = panel_row(curves, xlabel="training samples", ylabel="test accuracy", sharey=True)
    for axis, (means, errors) in zip(axes, curves.values(), strict=True):
        for mean, error, bound, name, colour in zip(
            means, errors, bounds, names, colours(), strict=False
        ):
            axis.errorbar(
                train_sizes, mean, 2 * error, fmt="o-", color=colour, markersize=4, label=name
            )
            axis.axhline(float(bound), color=colour, linestyle=":", linewidth=1)
        log_ticks(axis, train_sizes)
    legend(figure, axes[0], ncols=len(names))
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
        image = axis.imshow(
            np.asarray(matrix), cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest"
        )
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
        upper.plot(places, medians, color=shade(0.5), linewidth=1.5, label="median before")
    upper.fill_between(places, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    upper.plot(
        places[done],
        median[done],
        "o-",
        color=COLOURS[0],
        markersize=3,
        label="median of the starts (band: 80 % of them)",
    )
    upper.plot(
        places[~done], median[~done], "x", color=COLOURS[1], label=f"more than {num_steps:,} steps"
    )
    upper.set(
        yscale="log",
        ylabel="steps to convergence",
        title="How long does training take?",
        xlabel="frequency ℓ",
    )
    lower.plot(places, np.maximum(np.asarray(zetas), 1e-4), "o-", color=COLOURS[2], markersize=3)
    lower.set(
        yscale="log",
        ylabel="ζ(ℓ)",
        ylim=(1e-4, None),
        xlabel="frequency ℓ",
        title="How strong is the signal?",
    )
    legend(figure, upper, ncols=2)
    return figure


@styled
def plot_saddle(values: Curve, losses: Tensor, labels: tuple[str, str]) -> Figure:
    """Draw a loss over two weights, as far as it differs from that at the origin, and cuts through
    the origin.

    Args:
        values: (n,), of either weight, from -a to a in equal steps, n odd.
        losses: (n, n), the first weight by rows.
        labels: labels of both weights, the first one's first.
    """
    values, losses = np.asarray(values), np.asarray(losses)
    middle, (first, second) = len(values) // 2, labels
    change = losses - losses[middle, middle]
    figure, (left, right) = panel_row(
        ("change of the loss", "cuts through the origin"), 3.1, grid=None
    )
    limit = 2 * np.abs(change.diagonal()).max()
    levels = np.linspace(-limit, limit, 25)
    filled = left.contourf(values, values, change, levels, cmap=DIVERGING, extend="both")
    left.contour(values, values, change, levels, colors="0.4", linewidths=0.4, linestyles="-")
    left.plot(
        0, 0, "o", markerfacecolor=shade(1), markeredgecolor=shade(0), markersize=6
    )  # seen on any colour
    left.set(xlabel=second, ylabel=first, aspect="equal")
    figure.colorbar(filled, ax=left, shrink=0.8, ticks=levels[::6], format="%.1f")
    diagonal = 2**0.5 * values
    cuts = {
        f"{second} alone": (values, change[middle]),
        f"{first} alone": (values, change[:, middle]),
        "same sign": (diagonal, change.diagonal()),
        "opposite signs": (diagonal, change[:, ::-1].diagonal()),
    }
    for (label, (place, cut)), colour, style in zip(
        cuts.items(), colours(), ("-", "--", "-", "-"), strict=False
    ):
        right.plot(place, cut, style, color=colour, label=label)
    right.set(
        xlabel="distance from the origin", ylabel="change of the loss", ylim=(-0.6 * limit, limit)
    )
    right.grid(alpha=0.3)
    legend(figure, right, ncols=4)
    return figure


@styled
def plot_bounds(results: Sequence[Check]) -> Figure:
    """Draw, for each setting of an inequality, both bounds as multiples of the left side: at 1 or
    above they hold.
    """
    figure, ((axis,),) = subplots(1, 1, 0.9 + 0.2 * len(results), grid="x")
    for row, check in enumerate(results):
        ours, printed = check.formula / check.simulated, max(check.printed / check.simulated, 1e-3)
        axis.plot([ours, printed], [row, row], color=shade(0.8), linewidth=1, zorder=0)
        axis.plot(ours, row, "o", color=COLOURS[0], markersize=5)
        axis.plot(printed, row, "x", color=COLOURS[1], markersize=5)
    axis.plot([], [], "o", color=COLOURS[0], label="corrected (α)")
    axis.plot([], [], "x", color=COLOURS[1], label="the paper's (α²)")
    axis.axvline(1, **dotted(level=0))
    axis.axvspan(axis.get_xlim()[0], 1, color=COLOURS[1], alpha=0.07, linewidth=0)
    axis.set(xscale="log", xlabel="bound / expected gradient norm (shaded: the bound is exceeded)")
    axis.set_yticks(range(len(results)), [check.setting for check in results], fontsize=8)
    axis.invert_yaxis()
    legend(figure, axis, ncols=2)
    return figure
