"""Where stored results are: those of jobs in ``book/results/``, and those of studies in ``book/results/studies/``."""

import json
import os
from pathlib import Path
from typing import Any

from nads_book.checkout import checkout_folder


def results_folder() -> Path:
    """Return the folder of the jobs' results: of the checkout around the working folder, or what NADS_RESULTS names."""
    if "NADS_RESULTS" in os.environ:
        return Path(os.environ["NADS_RESULTS"])
    return checkout_folder("book/results")


def study_path(name: str) -> Path:
    """Return the path of a study's results, such as ``law.json``."""
    return checkout_folder("book/results/studies") / name


def load_study(name: str) -> Any:
    """Return the content of a study's results file.

    Args:
        name: name of the file, such as ``law.json``.

    Raises:
        FileNotFoundError: if the checkout has no such file.
    """
    path = study_path(name)
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run this in a checkout of the book's repository")
    return json.loads(path.read_text("utf8"))
