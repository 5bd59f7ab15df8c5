"""NADs for other libraries: pandas, xarray, matplotlib and safetensors. Each is imported when it is first needed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from nads_core.runtime.arguments import require_integers
from nads_core.runtime.provenance import fingerprint

if TYPE_CHECKING:
    from nads_core.directions.nads import NADs

_AXES = {3: ("channel", "row", "column"), 2: ("channel", "position"), 1: ("feature",)}  # by the dimensions of an input


def _columns(nads: NADs) -> dict[str, Any]:
    """Return what is known of each direction: name of the column -> values (n,)."""
    if nads.certificates is None:
        return {"eigenvalue": nads.eigenvalues.cpu().numpy()}
    measures = {"eigenvalue": nads.eigenvalues, "std": nads.eigenvalue_std, "certainty": nads.certainty}
    numbers = {name: values.cpu().numpy() for name, values in measures.items()}
    return {"name": list(nads.names), "type": list(nads.types), **numbers}


def to_pandas(nads: NADs) -> Any:
    """Return a `pandas.DataFrame` with index ``NAD`` and columns name, type, eigenvalue, std and certainty.

    NADs without certificates have the column eigenvalue alone.

    Raises:
        ImportError: without pandas.
    """
    import pandas as pd

    return pd.DataFrame(_columns(nads)).rename_axis("NAD")


def to_xarray(nads: NADs) -> Any:
    """Return an `xarray.DataArray` of the directions, whose first dimension is ``NAD``.

    Its other dimensions are channel, row and column; channel and position; or feature. The columns of `to_pandas` are
    coordinates along ``NAD``, and the attribute ``provenance`` is JSON.

    Raises:
        ImportError: without xarray.
    """
    import xarray as xr

    coordinates = {name: ("NAD", values) for name, values in _columns(nads).items()}
    dims, attributes = ("NAD", *_AXES[nads.directions.dim() - 1]), {"provenance": json.dumps(nads.provenance)}
    return xr.DataArray(nads.directions.cpu().numpy(), coordinates, dims, name="directions", attrs=attributes)


def plot(nads: NADs, k: int = 10) -> Any:
    """Draw the first directions, five a row, by `draw_direction`.

    The title of each has its name, its eigenvalue with the standard deviation of the error, and its certainty.

    Args:
        nads: NADs.
        k: number of directions; all if there are fewer.

    Returns:
        A `matplotlib.figure.Figure`, which a notebook shows, and which ``savefig`` stores.

    Raises:
        ImportError: without matplotlib.
    """
    import matplotlib.pyplot as plt

    require_integers(k=k)
    count = min(k, len(nads))
    rows, columns = -(-count // 5), min(count, 5)
    figure = plt.figure(figsize=(1.6 * columns, 2.2 * rows), layout="constrained")
    plt.close(figure)  # a notebook shows the returned figure once, not twice
    figure.suptitle(nads.name, fontsize=10)
    for index in range(count):
        axis = figure.add_subplot(rows, columns, index + 1)
        draw_direction(axis, nads[index])
        label, value = f"NAD {index}", f"{nads.eigenvalues[index]:.3g}"
        if nads.certificates is not None:
            label += f" ({nads.names[index]})" if nads.types[index] else ""
            certainty = int(100 * nads.certainty[index]) / 100  # 1.00 only where it is exactly 1
            value += f" ± {nads.eigenvalue_std[index]:.1g}\ncertainty {certainty:.2f}"
        axis.set_title(f"{label}\n{value}", fontsize=8)
    return figure


def draw_direction(axis: Any, direction: Any) -> None:
    """Draw one direction.

    Images of three channels are coloured, with zero in grey. Other images are red where positive and blue where
    negative, their channels side by side. Sequences have a line per channel, and features a bar each, around zero.

    Args:
        axis: axes of matplotlib.
        direction: direction of shape (C, H, W), (C, L) or (F,), at any scale.
    """
    values = np.asarray(direction)
    limit = float(np.abs(values).max()) or 1.0
    if values.ndim == 3 and len(values) == 3:
        axis.imshow(0.5 + values.transpose(1, 2, 0) / (2 * limit), interpolation="nearest")
    elif values.ndim == 3:
        gaps = np.pad(values, ((0, 0), (0, 0), (0, 1)), constant_values=np.nan)  # one column after each channel
        picture = np.concatenate(gaps, axis=1)[:, :-1]
        axis.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    else:
        for channel in np.atleast_2d(values):
            axis.stairs(channel, fill=values.ndim == 1)
        axis.axhline(0, color="0.5", linewidth=0.5)
        axis.set(ylim=(-1.05 * limit, 1.05 * limit), xmargin=0)
    axis.set(xticks=[], yticks=[])


def to_safetensors(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return a file of safetensors, with texts as JSON in its metadata, and a checksum of everything.

    Raises:
        ImportError: without safetensors.
    """
    from safetensors.numpy import save

    texts = {name: json.dumps(array.tolist()) for name, array in arrays.items() if array.dtype.kind == "U"}
    numbers = {name: np.ascontiguousarray(array) for name, array in arrays.items() if name not in texts}
    return save(numbers, texts | {"checksum": checksum({**numbers, **texts})})


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of a file of `to_safetensors`.

    Raises:
        ImportError: without safetensors.
        ValueError: if the content does not have its checksum.
    """
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        texts, numbers = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if texts.pop("checksum") != checksum({**numbers, **texts}):
        raise ValueError("its checksum does not agree with its content")
    return numbers | {name: np.array(json.loads(text)) for name, text in texts.items()}


def checksum(parts: Mapping[str, np.ndarray | str]) -> str:
    """Return a fingerprint of arrays and texts with their names, in any order."""
    return fingerprint(*(part for name in sorted(parts) for part in (name, parts[name])))
