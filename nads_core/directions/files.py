"""Files of NADs: npz archives of arrays and one JSON text, and those that ship with the package."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from nads_core.directions.eigenpairs import Band, Uncertainty
from nads_core.runtime.arguments import Facts
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import fingerprint

if TYPE_CHECKING:
    from nads_core.directions.nads import NADs

_MEASURES = ("certainty", "eigenvalue_std", "leading_certainty")
_IDENTITY = ("directions", "scale", "eigenvalues")  # arrays that the fingerprint names
# Bytes that any file may unpack to; and times its size: floats pack to half of theirs
_SMALL = 2**26
_PACKED = 50


@dataclass(frozen=True)
class Stored:
    """Content of a file of NADs, see `NADs`."""

    directions: Tensor
    eigenvalues: Tensor
    provenance: Facts
    uncertainty: Uncertainty | None
    fingerprint: str


def stored(nads: NADs, quantized: bool) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file that are its identity."""
    rows = nads.directions.detach().cpu().numpy()
    arrays = {"directions": rows, "eigenvalues": nads.eigenvalues.detach().cpu().numpy()}
    if quantized:
        scale = np.abs(rows).max(axis=tuple(range(1, rows.ndim)), keepdims=True) / (2**15 - 1)
        arrays["directions"] = np.round(rows / scale).astype(np.int16)
        arrays["scale"] = scale.astype(np.float32)
    return arrays


def save(nads: NADs, path: str | os.PathLike[str], *, quantized: bool = False) -> None:
    """Write a file, see `NADs.save`."""
    arrays = {"provenance": np.array(json.dumps(nads.provenance))} | stored(nads, quantized)
    if known := nads.uncertainty:
        bands = json.dumps([[list(band.indices), band.certainty] for band in known.bands])
        arrays |= {"types": np.array(known.types), "bands": np.array(bands)}
        arrays |= {name: getattr(known, name).cpu().numpy() for name in _MEASURES}
    with atomic_write(nads_path(path), "wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # no allow_pickle in it


def nads_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file of NADs, with ``~`` expanded; raise a ValueError for the ending of
    another format.
    """
    expanded = Path(path).expanduser()
    if expanded.suffix != ".npz":
        raise ValueError(f"{path} ends in {expanded.suffix!r}, expected .npz: name such a file")
    return expanded


def located(name: str | os.PathLike[str]) -> tuple[Path, Facts]:
    """Return the path of a file, or that of an architecture's precomputed NADs with its version."""
    path = Path(name).expanduser()
    if path.suffix == ".npz" or len(path.parts) > 1:
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        return path, {}
    folder = Path(__file__).parents[1] / "precomputed"
    files = {path.name.partition(".v")[0]: path for path in folder.glob("*.v*.npz")}
    key = str(name).lower().replace("-", "").replace("_", "")
    if key not in files:
        raise ValueError(
            f"no NADs of {name} ship: choose from {', '.join(sorted(files))}, name an npz file, or "
            "compute them with compute_nads"
        )
    return files[key], {"version": int(files[key].stem.partition(".v")[2])}


def read(path: Path) -> Stored:
    """Return the content of a file of NADs.

    Raises:
        ValueError: if it is no such file, is damaged, or would fill the memory with what it packs.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > max(_SMALL, _PACKED * path.stat().st_size):
            raise ValueError(f"its {path.stat().st_size:,} bytes would unpack to {unpacked:,}")
        with np.load(path, allow_pickle=False) as file:  # checks the checksum of each array
            arrays = dict(file.items())
        return _content(arrays)
    except Exception as error:  # readers of other files, or of damaged ones, can raise anything
        start = path.read_bytes()[:40]
        hint = "" if start.startswith(b"PK") else f": it begins with {start!r}, not as an archive"
        raise ValueError(
            f"{path} holds no NADs that can be read, or is damaged ({error!r}){hint}"
        ) from error


def _content(arrays: dict[str, np.ndarray]) -> Stored:
    identity = {name: arrays[name] for name in _IDENTITY if name in arrays}
    if "mirrored" in arrays:
        identity["directions"] = _unfolded(identity["directions"], arrays["mirrored"])
    directions = torch.from_numpy(identity["directions"])
    if "scale" in identity:
        rows = (directions.double() * torch.from_numpy(identity["scale"]).double()).flatten(1)
        for _ in range(2):  # Newton-Schulz: back to the nearest orthonormal rows
            rows = 1.5 * rows - 0.5 * (rows @ rows.T) @ rows
        directions = rows.float().view(directions.shape)
    require_orthonormal(directions.flatten(1))
    values = torch.from_numpy(arrays["eigenvalues"]).double()
    if not values.isfinite().all() or (values.diff() > 1e-6 * values.abs().max()).any():
        raise ValueError("eigenvalues are not finite and descending")
    provenance: Facts = json.loads(str(arrays["provenance"]))
    uncertainty = None
    if "certainty" in arrays:
        provenance.setdefault("certainty", "simulation")
        bands = [Band(tuple(i), share) for i, share in json.loads(str(arrays["bands"]))]
        measures = {name: torch.from_numpy(arrays[name]).double() for name in _MEASURES}
        for name in ("certainty", "leading_certainty"):
            if not ((measures[name] >= 0) & (measures[name] <= 1 + 1e-6)).all():
                raise ValueError(f"{name} is not between 0 and 1")
        types = tuple(map(str, arrays["types"]))
        uncertainty = Uncertainty(types, bands=tuple(bands), **measures)
    return Stored(directions, values, provenance, uncertainty, checksum(identity))


def require_orthonormal(rows: Tensor) -> None:
    """Raise a ValueError unless rows (n, D) have the inner products 1 and 0, within 1e-3."""
    error = float((rows @ rows.T - torch.eye(len(rows)).to(rows)).abs().max())
    if not error < 1e-3:
        raise ValueError(
            f"directions are not orthonormal, an inner product is wrong by {error:.2g}: "
            "orthonormalise them, for example by torch.linalg.qr"
        )


def _unfolded(quarter: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Return the directions (n, C, H, W) that a shipped file holds as quarters (n, C, H / 2, W /
    2).

    Args:
        quarter: upper left quarters.
        signs: (n, 2), whether a direction is even (1) or odd (-1) in its rows and in its columns.
    """
    rows, columns = signs.T[:, :, None, None, None]  # (n, 1, 1, 1) each
    half = np.concatenate([quarter, columns * quarter[..., ::-1]], axis=-1)
    return np.concatenate([half, rows * half[..., ::-1, :]], axis=-2)


def printable(text: str) -> str:
    r"""Return a text of a file without control characters, which a terminal would obey.

    >>> printable("net\x1b[2J")
    'net�[2J'
    """
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def checksum(parts: Mapping[str, np.ndarray | str]) -> str:
    """Return a fingerprint of arrays and texts with their names, in any order."""
    return fingerprint(*(part for name in sorted(parts) for part in (name, parts[name])))
