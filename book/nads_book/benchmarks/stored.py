"""Stored costs: the files of ``benchmarks/results/`` that the scripts of ``benchmarks/`` write."""

import json
from pathlib import Path
from typing import Any

from nads_book.checkout import checkout_folder


def results_folder() -> Path:
    """Return ``benchmarks/results/`` of the checkout around the working folder, or of the one this file lies in."""
    return checkout_folder("benchmarks/results")


def load_costs(kind: str = "cost", folder: Path | None = None) -> list[dict[str, Any]]:
    """Return the results of one kind ("cost", "scale" or "large"), sorted by file name; none where there are none."""
    files = sorted((folder or results_folder()).glob(f"{kind}-*.json"))
    return [json.loads(path.read_text("utf8")) for path in files]
