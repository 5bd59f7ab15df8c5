"""``nads-book merge``: join the results files of shards."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nads_book.experiments.results import Results, Stored, merge, writing
from nads_book.studies import OTHERS, experiment, merge_results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book merge``."""
    parser.add_argument("files", type=Path, nargs="+", help="results files of one study")
    parser.add_argument(
        "--out", type=Path, required=True, help="results file to write; its units are also merged"
    )
    parser.add_argument(
        "--study", choices=OTHERS, metavar="STUDY", help="name of the study; not needed for figures"
    )


def run(files: list[Path], out: Path, study: str | None = None) -> int:
    """Join results files, and the units that ``out`` already holds."""
    with writing(out):
        paths = list(dict.fromkeys([*files, *([out] if out.exists() else [])]))
        results = _merged(paths, study)
        results.save(out)
    print(f"{results} -> {out}")
    return 0


def _merged(paths: Sequence[Path], study: str | None) -> Stored:
    if study is None:
        return merge_results([Results.load(path) for path in paths])
    job = experiment(study)
    return merge([job.stored(path) for path in paths], job)
