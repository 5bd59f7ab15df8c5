"""Checkpoints of unfinished computations: written atomically, read on any machine."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import torch

from nads_core.directions.moments import DenseMoments, FirstNetworks
from nads_core.runtime.files import atomic_write, require_undamaged, seal
from nads_core.runtime.provenance import differences


def write_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint, whole or not at all.

    Args:
        path: path of the file.
        content: "description" (of the computation), "moments" (one state per group), "blocks_done", "seconds", "first"
            (the vector of network 0, by the kind of device), "devices" (that drew) and "first_networks" (a state).

    Raises:
        OSError: if there is no space for it, or the folder is not writable; an earlier file is unchanged then.
    """
    with atomic_write(path, "wb") as file:
        torch.save(content, file)
        seal(file)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return what a checkpoint holds, on the CPU, wherever it was written.

    Raises:
        ValueError: if the file is none, was cut off, or differs by a bit from what was written.
    """
    try:
        require_undamaged(path)
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():  # for files from before there were seals
                raise ValueError(f"{damaged} is not what was written")
        saved = torch.load(path, weights_only=True, map_location="cpu")
    except OSError:
        raise
    except Exception as error:  # an unpickler that reads something else can raise anything
        raise ValueError(
            f"{path} is damaged, or no checkpoint of compute_nads ({type(error).__name__}): name another file, or "
            "delete it if it was one"
        ) from error
    if not isinstance(saved, dict) or not {"description", "moments", "blocks_done", "seconds"} <= saved.keys():
        raise ValueError(f"{path} is no checkpoint of compute_nads, but another file of torch's: name another file")
    if not {"devices", "first_networks"} <= saved.keys():
        raise ValueError(
            f"{path} was written by an earlier nads_core, whose checkpoints lack what certificates need: finish it "
            "with that version, or name another file"
        )
    return {"scale": 1.0, "powers": None} | saved  # which files of earlier versions lack


def read_checkpoint_of(description: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return what a checkpoint of this computation holds.

    Raises:
        ValueError: if the file is no checkpoint, or its description is another.
    """
    saved = read_checkpoint(path)
    # Earlier versions wrote the chosen numbers of inputs, which the repr of the estimator holds too.
    saved["description"].pop("budget", None)
    different = differences(saved["description"], description)
    if different:
        raise ValueError(
            f"{path} belongs to another computation ({different}): name another file, or resume with the same options"
        )
    return saved


def restored(saved: dict[str, Any]) -> tuple[DenseMoments, FirstNetworks]:
    """Return the moments of all networks, and the first networks, of a checkpoint that holds D x D moments."""
    moments, first = DenseMoments(math.prod(saved["description"]["image_shape"])), FirstNetworks()
    for group in saved["moments"]:
        part = moments.empty()
        part.load_state_dict(group)
        moments.merge(part)
    first.load_state_dict(saved["first_networks"])
    return moments, first
