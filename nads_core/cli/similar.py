"""``nads similar``: list the shipped architectures with the most similar NADs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nads_core.directions import NADs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads similar``."""
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
    from nads_core.runtime.arguments import require_integers

    require_integers(count=count)
    similarities = read_nads(nads).nearest(num_directions)
    if not similarities:
        raise ValueError(
            f"no leading subspace of {nads} is certain by 0.9, so none is compared: draw more networks"
        )
    for similarity in similarities[:count]:
        print(similarity)
    return 0


def read_nads(name: str) -> NADs:
    """Return the NADs of a file, or those that ship under a name."""
    from nads_core.directions import NADs, load_nads

    return NADs.load(name) if name.endswith(".npz") or Path(name).is_file() else load_nads(name)
