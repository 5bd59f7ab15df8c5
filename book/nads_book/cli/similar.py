"""``nads-book similar``: list the known architectures with the most similar NADs."""

from __future__ import annotations

import argparse
from pathlib import Path

from nads_book.atlas.similarity import load_known_nads, most_similar
from nads_core.directions import load_nads
from nads_core.runtime.arguments import require_integers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book similar``."""
    parser.add_argument("nads", help="file of NADs, or a name such as atlas/cnn")
    parser.add_argument("--count", type=int, help="number of architectures to list (default: 10)")
    parser.add_argument(
        "--num-directions",
        type=int,
        metavar="K",
        help="leading directions to compare, one K for all",
    )


def run(nads: str, count: int = 10, num_directions: int | None = None) -> int:
    """Print one line per architecture, the most similar one first.

    Args:
        nads: file of NADs, or a name.
        count: number of architectures to list.
        num_directions: number of leading directions to compare; by default for each the one that
            both know best.
    """
    require_integers(count=count)
    is_file = nads.endswith(".npz") or Path(nads).is_file()
    known = load_nads(nads) if is_file else load_known_nads(nads)
    similarities = most_similar(known, num_directions)
    if not similarities:
        raise ValueError(
            f"no leading subspace of {nads} is certain by 0.9, so none is compared: draw more "
            "networks"
        )
    for similarity in similarities[:count]:
        print(similarity)
    return 0
