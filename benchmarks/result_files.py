"""Result files of these scripts: JSON with the environment that the numbers come from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch

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
