"""Stored costs: the files of ``benchmarks/results/`` that the scripts of ``benchmarks/`` write."""

import json
from pathlib import Path
from typing import Any

import torch

from nads_book.experiments.checkout import checkout_folder
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment


def load_costs(kind: str, folder: Path | None = None) -> list[dict[str, Any]]:
    """Return the results of one kind, sorted by file name.

    Args:
        kind: beginning of the names of the files, such as "cost", "scale" or "large".
        folder: folder of the files; by default ``benchmarks/results/`` of the checkout, see
            `checkout_folder`.
    """
    files = sorted((folder or results_folder()).glob(f"{kind}-*.json"))
    return [json.loads(path.read_text("utf8")) for path in files]


def results_folder() -> Path:
    """Return the folder of the benchmarks' results in the checkout."""
    return checkout_folder("benchmarks/results")


def write_result(
    name: str,
    result: dict[str, Any],
    device: torch.device | str = "cpu",
    folder: Path | None = None,
) -> Path:
    """Write one result with its environment to ``NAME.json``, and return the path."""
    path = (folder or results_folder()) / f"{name}.json"
    with atomic_write(path) as file:
        file.write(json.dumps(result | environment(torch.device(device)), indent=1) + "\n")
    return path
