"""Stored costs: the files of ``benchmarks/results/`` that the scripts of ``benchmarks/`` write."""

import json
from pathlib import Path
from typing import Any

from nads_book.checkout import checkout_folder


def load_costs(kind: str = "cost", folder: Path | None = None) -> list[dict[str, Any]]:
    """Return the results of one kind ("cost", "scale" or "large"), sorted by file name; none where there are none.

    Args:
        kind: beginning of the names of the files.
        folder: folder of the files; by default ``benchmarks/results/`` of the checkout, see `checkout_folder`.
    """
    files = sorted((folder or checkout_folder("benchmarks/results")).glob(f"{kind}-*.json"))
    return [json.loads(path.read_text("utf8")) for path in files]
