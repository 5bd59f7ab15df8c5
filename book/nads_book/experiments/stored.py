"""Where results of studies and registrations are, and the NADs that results refer to."""

from __future__ import annotations

import functools
import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nads_core as nc
from nads_book.experiments.checkout import checkout_folder
from nads_core.directions import NADs
from nads_core.directions.files import located
from nads_core.runtime.arguments import Facts

if TYPE_CHECKING:
    import pandas as pd

nads_of_file = functools.cache(nc.load_nads)  # read once


def study_path(name: str) -> Path:
    """Return the path of a file of studies that have one size, such as ``law.json``."""
    return checkout_folder("book/results/studies") / name


def results_path(name: str, preset: str | None = "paper") -> Path:
    """Return where the results of a study are kept: in ``book/results/`` of the checkout around the
    working folder those of a figure, for which the environment variable ``NADS_RESULTS`` names
    another folder.

    Args:
        name: name of the study.
        preset: size of a figure; None for a study of one size.
    """
    if preset is None:
        return study_path(f"{name}.json")
    folder = Path(os.environ.get("NADS_RESULTS", checkout_folder("book/results")))
    return folder / f"{name}{'' if preset == 'paper' else '.' + preset}.json"


def load_nads(name: str, version: int | None = None) -> NADs:
    """Return NADs that ship with the library, or those of an earlier version, which are in the
    checkout: results refer to them. They are read once.

    Args:
        name: name of the architecture, as `nads_core.load_nads` takes it.
        version: number of the file; that which ships by default.

    Raises:
        ValueError: if there are none under that name and version.
    """
    path, facts = located(name)
    ships = facts["version"]
    if version not in (None, ships):
        path = checkout_folder(f"book/results/nads-v{version}") / f"{name}.v{version}.npz"
        if not path.is_file():
            raise ValueError(
                f"no version {version} of the NADs of {name} is here: version {ships} ships"
            )
    return nads_of_file(path, version=version or ships)


def load_study(name: str) -> Any:
    """Return the content of a study's results file.

    Args:
        name: name of the file, such as ``law.json``.

    Raises:
        FileNotFoundError: if the checkout has no such file.
    """
    path = study_path(name)
    try:
        return json.loads(path.read_text("utf8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing: run this in a checkout of the book's repository"
        ) from None


@functools.cache
def rows_of(name: str) -> list[Facts]:
    """Return the rows of a study's results file.

    Args:
        name: name of the study, such as ``law``.

    Raises:
        FileNotFoundError: if the checkout has no such file.
    """
    return load_study(f"{name}.json")["rows"]


@functools.cache
def table_of(name: str) -> pd.DataFrame:
    """Return the rows of a study's results file as a table."""
    import pandas as pd

    return pd.DataFrame(rows_of(name))


def load_registered(name: str) -> Facts:
    """Return what was registered before a study: the content of ``book/preregistered/NAME.toml``.

    Raises:
        FileNotFoundError: if the checkout has no such file.
    """
    return tomllib.loads((checkout_folder("book/preregistered") / f"{name}.toml").read_text("utf8"))
