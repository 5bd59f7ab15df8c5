"""``nads-book atlas``: compute entries of the atlas."""

import argparse
from pathlib import Path
from typing import Any

from nads_book.atlas import ATLAS, compute_entry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book atlas``."""
    parser.add_argument(
        "entries", nargs="*", metavar="ENTRY", help=f"entries; all by default: {', '.join(ATLAS)}"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="folder for checkpoints and NADs, 32 MB per entry (default: atlas)",
    )
    parser.add_argument(
        "--num-networks",
        type=int,
        help="networks per entry; as many as the shipped entry by default",
    )
    parser.add_argument(
        "--seed", type=int, help="seed of the networks; 0 for the shipped entries (default: 0)"
    )


def run(
    entries: tuple[str, ...] | list[str] = (), folder: Path = Path("atlas"), **options: Any
) -> int:
    """Compute entries, or resume them, and print their measures."""
    if unknown := sorted(set(entries) - ATLAS.keys()):
        raise ValueError(f"the atlas has no {', '.join(unknown)}: choose from {', '.join(ATLAS)}")
    for name in entries or ATLAS:
        computed = compute_entry(ATLAS[name], folder, **options)
        print(f"{computed.nads} -> {folder / name}.npz")
        for measure, measured in computed.measures.items():
            print(f"{'':>4}{measure:<16} {measured}")
    return 0
