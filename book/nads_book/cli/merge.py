"""``nads-book merge``: join the results files of shards."""

import argparse
from pathlib import Path

from nads_book.experiments.results import Results, writing
from nads_book.studies import merge_results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book merge``."""
    parser.add_argument("files", type=Path, nargs="+", help="results files of one job")
    parser.add_argument("--out", type=Path, required=True, help="results file to write; its networks are also merged")


def run(files: list[Path], out: Path) -> int:
    """Join results files, and the networks that ``out`` already holds."""
    with writing(out):
        paths = dict.fromkeys([*files, *([out] if out.exists() else [])])
        results = merge_results([Results.load(path) for path in paths])
        results.save(out)
    print(f"{results} -> {out}")
    return 0
