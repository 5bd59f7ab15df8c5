"""NADs as pictures of matplotlib, which is imported when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nads_core.runtime.arguments import require_integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from nads_core.directions.nads import NADs

_MOST_PANELS = 100  # of a figure
_POSITIONS = 128  # of a sequence, in a panel


def plot(nads: NADs, k: int = 10) -> Figure:
    """Draw the first directions, five a row (sequences two a row), by `draw_direction`.

    The title of each has its index; its name in brackets, as ``NADs.names`` has it: the type of
    symmetry, such as "++s" (see `SymmetryType`), and the rank within the type; its eigenvalue with
    the standard deviation of the error; and its certainty.

    Args:
        nads: NADs.
        k: number of directions, at most 100; all if there are fewer.

    Returns:
        A `matplotlib.figure.Figure`, which a notebook shows, and which ``savefig`` stores.

    Raises:
        ImportError: without matplotlib.
        ValueError: for more than 100 directions.
    """
    import matplotlib.pyplot as plt

    require_integers(k=k)
    if k > _MOST_PANELS:
        raise ValueError(
            f"k is {k}, expected at most {_MOST_PANELS}: `draw_direction` draws any other"
        )
    count = min(k, len(nads))
    a_row, width = (2, 4.0) if nads.directions.dim() == 3 else (5, 1.6)
    rows, columns = -(-count // a_row), min(count, a_row)
    figure = plt.figure(figsize=(width * columns, 2.2 * rows), layout="constrained")
    plt.close(figure)  # a notebook shows the returned figure once, not twice
    figure.suptitle(nads.name, fontsize=10)
    if nads.uncertainty is not None and any(nads.types[:count]):
        figure.supxlabel("in brackets: type of symmetry and rank in it", fontsize=7)
    for index in range(count):
        axis = figure.add_subplot(rows, columns, index + 1)
        draw_direction(axis, nads[index])
        label, value = f"NAD {index}", f"{nads.eigenvalues[index]:.3g}"
        if nads.uncertainty is not None:
            label += f" ({nads.names[index]})" if nads.types[index] else ""
            certainty = int(100 * nads.certainty[index]) / 100  # 1.00 only where it is exactly 1
            value += f" ± {nads.eigenvalue_std[index]:.1g}\ncertainty {certainty:.2f}"
        axis.set_title(f"{label}\n{value}", fontsize=8)
    return figure


def draw_direction(axis: Axes, direction: Tensor | np.ndarray) -> None:
    """Draw one direction.

    Images of three channels are coloured, with zero in grey. Other images are red where positive
    and blue where negative, their channels side by side. Sequences have a line per channel, and
    features a bar each, around zero. Of a sequence of more than 128 positions, the 128 with the
    largest squares are drawn, and the label tells which.

    Args:
        axis: axes of matplotlib.
        direction: direction of shape (C, H, W), (C, L) or (F,), at any scale.
    """
    values = np.asarray(direction)
    limit = float(np.abs(values).max()) or 1.0
    if values.ndim == 3 and len(values) == 3:
        axis.imshow(0.5 + values.transpose(1, 2, 0) / (2 * limit), interpolation="nearest")
    elif values.ndim == 3:
        # One column after each channel
        gaps = np.pad(values, ((0, 0), (0, 0), (0, 1)), constant_values=np.nan)
        picture = np.concatenate(gaps, axis=1)[:, :-1]
        axis.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    else:
        start, end = 0, values.shape[-1]
        if values.ndim == 2 and end > _POSITIONS:
            energy = np.convolve(np.square(values).sum(0), np.ones(_POSITIONS), "valid")
            start = int(energy.argmax())
            axis.set_xlabel(f"{start} to {start + _POSITIONS - 1} of {end}", fontsize=7)
            end = start + _POSITIONS
        for channel in np.atleast_2d(values):
            edges = np.arange(start, end + 1)
            axis.stairs(channel[start:end], edges, fill=values.ndim == 1)
        axis.axhline(0, color="0.5", linewidth=0.5)
        axis.set(xlim=(start, end), ylim=(-1.05 * limit, 1.05 * limit))
    axis.set(xticks=[], yticks=[])
