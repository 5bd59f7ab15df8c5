"""Result files of these scripts: JSON with the environment that the numbers come from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment

RESULTS = Path(__file__).parent / "results"


def write_result(name: str, result: dict[str, Any], device: torch.device | str = "cpu", folder: Path = RESULTS) -> Path:
    """Write one result with its environment to ``NAME.json``, and return the path."""
    path = folder / f"{name}.json"
    with atomic_write(path) as file:
        file.write(json.dumps(result | environment(torch.device(device)), indent=1) + "\n")
    return path


def write_compact(path: Path, content: dict[str, Any], depth: int = 1) -> None:
    """Write JSON in which whatever has fewer than ``depth`` levels below it is one line."""
    text = json.dumps(content, indent=1)
    for _ in range(depth):
        text = re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda part: " ".join(part.group().split()), text)
    with atomic_write(path) as file:
        file.write(text + "\n")


def add_rows(
    path: Path,
    content: dict[str, Any],
    function: Callable[..., dict[str, Any]],
    units: Sequence[tuple[Any, ...]],
    workers: int | None = None,
    every: int = 16,
) -> None:
    """Append ``function(*unit)`` for each unit to ``content["rows"]``, one process per core, and write the file.

    It is written after every few rows and at the end, also if a unit fails or Ctrl-C stops the run.

    Args:
        path: the results file.
        content: what it has so far, with a list "rows".
        function: function of a module, not of a script, if it uses cached functions: loky cannot send these.
        units: arguments of the missing rows.
        workers: number of processes; one per core by default.
        every: number of rows after which the file is written.
    """
    from loky import as_completed, get_reusable_executor

    pool = get_reusable_executor(workers, env={"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"})
    futures = [pool.submit(function, *unit) for unit in units]
    before = len(content["rows"])
    try:
        for number, future in enumerate(tqdm(as_completed(futures), total=before + len(units), initial=before), 1):
            content["rows"].append(future.result())
            if number % every == 0:
                write_compact(path, content)
    finally:
        write_compact(path, content)
        pool.shutdown(kill_workers=True)
