"""``nads similar``: list the shipped architectures with the most similar NADs."""

from __future__ import annotations

import argparse
import itertools


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads similar``."""
    parser.add_argument("nads", help="npz file, or a name such as atlas/cnn")
    parser.add_argument("--count", type=int, help="number of architectures to list")


def run(nads: str, count: int = 10) -> int:
    """Print one line per architecture, the most similar one first."""
    from nads_core.directions import NADs, load_nads

    basis = NADs.load(nads) if nads.endswith(".npz") else load_nads(nads)
    for similarity in itertools.islice(basis.nearest(), count):
        print(similarity)
    return 0
