"""NADs in the formats of other libraries: pandas, xarray and safetensors. Each is imported when it is first needed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from nads_core.runtime.files import atomic_write
from nads_core.runtime.optional import optional_module
from nads_core.runtime.provenance import fingerprint

if TYPE_CHECKING:
    from nads_core.directions.nads import NADs

AXES = {3: ("channel", "row", "column"), 2: ("channel", "position"), 1: ("feature",)}  # by the dimensions of an input
_CHECKSUM = "checksum"


def columns(nads: NADs) -> dict[str, Any]:
    """Return what is known of each direction: name of the column -> values (n,)."""
    if nads.certificates is None:
        return {"eigenvalue": nads.eigenvalues.cpu().numpy()}
    measures = {"eigenvalue": nads.eigenvalues, "std": nads.eigenvalue_std, "certainty": nads.certainty}
    texts = {"name": list(nads.names), "type": list(nads.types)}
    return texts | {name: values.cpu().numpy() for name, values in measures.items()}


def to_pandas(nads: NADs) -> Any:
    """Return the data frame of `NADs.to_pandas`."""
    pandas = optional_module("pandas", "to_pandas")
    return pandas.DataFrame(columns(nads), index=pandas.RangeIndex(len(nads), name="NAD"))


def to_xarray(nads: NADs) -> Any:
    """Return the dataset of `NADs.to_xarray`."""
    xarray = optional_module("xarray", "to_xarray")
    table = {name: ("NAD", values) for name, values in columns(nads).items()}
    labels = {name: table.pop(name) for name in ("name", "type") if name in table}
    pixels = ("NAD", *AXES[nads.directions.dim() - 1]), nads.directions.cpu().numpy()
    attributes = {"provenance": json.dumps(nads.provenance)}
    return xarray.Dataset({"directions": pixels} | table, coords=labels, attrs=attributes)


def write_safetensors(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays to a file of safetensors, those of texts as JSON in its metadata, with a checksum of all.

    Raises:
        ImportError: without safetensors.
        OSError: if the file cannot be written; an earlier one is unchanged then.
    """
    library = optional_module("safetensors.numpy", "a file *.safetensors")
    texts = {name: json.dumps(array.tolist()) for name, array in arrays.items() if array.dtype.kind == "U"}
    numbers = {name: np.ascontiguousarray(array) for name, array in arrays.items() if name not in texts}
    content = library.save(numbers, metadata=texts | {_CHECKSUM: _checksum(numbers, texts)})
    with atomic_write(path, "wb") as file:
        file.write(content)


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return what `write_safetensors` wrote.

    Raises:
        ImportError: without safetensors.
        ValueError: if the content does not have its checksum.
    """
    library = optional_module("safetensors", "a file *.safetensors")
    with library.safe_open(path, framework="np") as file:
        texts, numbers = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if texts.pop(_CHECKSUM, None) != _checksum(numbers, texts):
        raise ValueError("its checksum does not agree with its content")
    return numbers | {name: np.array(json.loads(text)) for name, text in texts.items()}


def _checksum(numbers: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> str:
    parts: dict[str, np.ndarray | str] = {**numbers, **texts}
    return fingerprint(*(part for name in sorted(parts) for part in (name, parts[name])))
