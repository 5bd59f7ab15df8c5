"""The studies of the book, by name: one module per question.

The trainings of figures are named after figure and architecture, such as ``fig1-lenet``, and have
presets, which define their size. Other studies have one size. `run_experiment` runs each of them.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nads_book.experiments import Results, Study, results_path, run_study
from nads_book.studies.presets import MODELS, SIZES

if TYPE_CHECKING:
    import pandas as pd


@functools.cache
def all_studies() -> dict[str, type[Study]]:
    """Return the classes of all studies by name, those of trainings by the name of the figure."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    return Study.known


def study_class(name: str) -> type[Study]:
    """Return the class of a study.

    Raises:
        ValueError: for an unknown name.
    """
    figure, _, model = name.partition("-")
    kind = all_studies().get(figure if model in MODELS else name)
    if kind is None or kind.has_presets != (model in MODELS):
        names = [key + "-MODEL" * one.has_presets for key, one in sorted(all_studies().items())]
        raise ValueError(f"unknown study {name!r}: choose one of {', '.join(names)}")
    return kind


def experiment(name: str, preset: str = "demo", nads_version: int | None = None) -> Any:
    """Return a study by its name, such as ``fig1-lenet``.

    Args:
        name: figure and name of an architecture, joined by a hyphen, or the name of another study.
        preset: size of a figure. "smoke" and "demo" are smaller, for tests and the live book;
            "paper" has the paper's sizes; "laptop" is a fifth of the paper's training (on photos a
            25th), at which LeNets learn waves in the order of the paper's size, to a lower level:
            for deep networks without a GPU. Any beginning of its waves is a stratified sample.
            "narrow" is as long, and has ResNet-18 and DenseNet-121 alone, of a quarter of their
            width. "epochs20", "epochs50" and "epochs100" are for injected shortcuts
            (``notes-lenet``), as "laptop" with longer trainings. Other studies have one size.
        nads_version: version of the NADs that some figures are about; the newest by default.

    Raises:
        ValueError: for an unknown name, preset or version.
    """
    kind = study_class(name)
    if preset not in SIZES:
        raise ValueError(f"unknown preset {preset!r}: choose from {tuple(SIZES)}")
    return kind.create(name.partition("-")[2], preset, nads_version)


def run_experiment(
    name: str,
    preset: str = "demo",
    *,
    out: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Any:
    """Run a study, or resume it, about the NADs that its results file names.

    Args:
        name: name of the study, such as ``fig1-lenet``; see `experiment`.
        preset: size of a figure.
        out: results file, replaced after every unit; an existing one is resumed.
        **options: options of `nads_book.experiments.run_study`.

    Returns:
        The rows of all finished units, those of earlier runs in ``out`` included.

    Raises:
        ValueError: for an unknown study, one that needs results which are missing, or what
            `run_study` rejects.
        DatasetNotFoundError: if images are missing, except at the presets "smoke" and "demo".
    """
    version = None
    if out is not None and Path(out).exists():
        known = Results.load(out)
        version = version_of(known) if known.facts.get("job") == name else None
    study = experiment(name, preset, version)
    for other in study.needs:
        needed = load_results(other)
        if needed is None or not needed.complete:
            raise ValueError(
                f"{name} needs the results of {other}: run nads-book run {other} first"
            )
    return run_study(study, out=out, **options)


def version_of(results: Results) -> int | None:
    """Return the version of the NADs that a figure is about; None for other figures."""
    return results.facts.get("settings", {}).get("nads", {}).get("version")


def stored_figures() -> Iterator[tuple[str, str]]:
    """Yield name and preset of each figure of which results are stored, in the order of their
    names.
    """
    for path in sorted(results_path("").parent.glob("*-*.json")):
        name, _, preset = path.stem.partition(".")
        if (preset or "paper") in SIZES:  # parts of a study have other names
            yield name, preset or "paper"


def _path(name: str, preset: str) -> Path:
    return results_path(name, preset if study_class(name).has_presets else None)


def load_results(name: str, preset: str = "paper") -> Results | None:
    """Return the stored results of a study, which may be incomplete, or None if there are none.

    They can be shown without the photos that they were made from: `Results.photos` names these.

    Args:
        name: name of the study, such as ``fig1-lenet``.
        preset: size of a figure.

    Raises:
        ValueError: for an unknown study, or a file that is damaged or does not belong to it.
    """
    path = _path(name, preset)
    try:
        results = Results.load(path)  # opened in any case: the build sees what was looked for
    except FileNotFoundError:
        return None
    try:
        job = experiment(name, preset, version_of(results))
        facts = job.stated_facts(results.photos)
        if "settings" in facts:
            # Only who continues the trainings needs the same photos and random numbers.
            facts["settings"]["numbers"] = results.settings["numbers"]
        return results.of(job, facts)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{path} does not belong to {name} at preset {preset}: {error}") from error


def stored(name: str, preset: str = "paper") -> Results:
    """Return the stored results of a study, which a page or another study needs.

    Raises:
        FileNotFoundError: if there are none.
    """
    results = load_results(name, preset)
    if results is None:
        path = _path(name, preset)
        raise FileNotFoundError(f"{path} is missing, so that nothing is decided by it")
    return results


def table(name: str, preset: str = "paper") -> pd.DataFrame:
    """Return the stored rows of a study as a table, see `Results.table`.

    Args:
        name: name of the study.
        preset: size of a figure.

    Raises:
        FileNotFoundError: if nothing is stored.
    """
    return stored(name, preset).table
