"""Compress files of NADs without a change to any number, as they ship:
``python tools/compress_nads.py FILE ...``.

Where every direction is even or odd in its rows and columns, the file keeps a quarter of each and
the two signs. Arrays are compressed by LZMA. Afterwards the file is read, and must hold what it
held before.
"""

import io
import sys
import zipfile
from pathlib import Path

import numpy as np

import nads_core as nc
from nads_core.runtime.files import atomic_write


def folded(directions: np.ndarray) -> dict[str, np.ndarray]:
    """Return the quarter of each direction (n, C, H, W) and its signs, or the directions if one has
    no such symmetry.

    Directions of other types than integers, which can hold two kinds of zero, stay as they are.
    """
    whole, signs = {"directions": directions}, []
    if directions.ndim != 4 or directions.dtype.kind != "i":
        return whole
    height, width = directions.shape[-2:]
    for axis in (2, 3):
        mirrored = np.flip(directions, axis)
        even, odd = ((mirrored == sign * directions).all((1, 2, 3)) for sign in (1, -1))
        if height % 2 or width % 2 or not (even | odd).all():
            return whole
        signs.append(np.where(even, 1, -1))
    quarter = directions[..., : height // 2, : width // 2]
    return {"directions": quarter, "mirrored": np.stack(signs, 1).astype(np.int8)}


def compress(path: Path) -> None:
    """Replace a file of `NADs.save` by a smaller one with the same content."""
    before = nc.load_nads(path)
    with np.load(path) as file:
        arrays = dict(file)
    if "mirrored" not in arrays:
        arrays |= folded(arrays["directions"])
    with atomic_write(path, "wb") as target:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
            for name, array in arrays.items():
                member = io.BytesIO()
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
                archive.writestr(
                    zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_LZMA
                )
    after = nc.load_nads(path)
    same = (after.directions == before.directions).all() and (
        after.eigenvalues == before.eigenvalues
    ).all()
    if not same or after.fingerprint != before.fingerprint or after.provenance != before.provenance:
        raise RuntimeError(f"{path} holds other numbers than before")


if __name__ == "__main__":
    for file in sys.argv[1:]:
        compress(Path(file))
