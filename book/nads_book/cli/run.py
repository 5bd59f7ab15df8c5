"""``nads-book run``: compute the units of a study, or list all studies."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nads_book.studies import (
    all_studies,
    experiment,
    load_results,
    run_experiment,
    stored_figures,
    study_class,
)
from nads_book.studies.presets import SIZES
from nads_core.cli import output_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book run``."""
    names = [name + "-MODEL" * kind.has_presets for name, kind in all_studies().items()]
    parser.epilog = f"studies: {', '.join(names)}; --list says what each asks"
    add = parser.add_argument
    add("study", nargs="?", help="name of a study, such as fig1-lenet or forgetting")
    what = "list all studies: what each needs, and how many units are stored"
    add("--list", action="store_true", help=what)
    add("--preset", choices=SIZES, help="size of a figure (default: demo)")
    add("--count", type=int, help="number of units, from the first of the study; all by default")
    what = "results file; by default in book/results, named after study and preset"
    add("--out", type=output_file, help=what)
    what = "processes, sequential, or dask:ADDRESS of a Dask scheduler (default: processes)"
    add("--executor", help=what)
    what = "run layers in bfloat16, or in float32"
    add("--mixed-precision", action=argparse.BooleanOptionalAction, help=what)
    what = "time after which to stop; the job can resume"
    add("--time-limit", type=float, metavar="SECONDS", help=what)
    what = "networks trained in parallel on a CPU; one per core by default"
    add("--workers", type=int, help=what)
    what = "cpu, cuda, ...; by default a GPU if available, for studies that use one"
    add("--device", help=what)


def run(
    study: str | None = None,
    list: bool = False,
    preset: str | None = None,
    out: Path | None = None,
    device: str | None = None,
    **options: Any,
) -> int:
    """Run a study, or resume it from its results file, and print what is left.

    Args:
        study: name of the study.
        list: whether to list all studies instead.
        preset: size of a figure.
        out: results file.
        device: device, or None for a GPU if available and used by the study.
        **options: options of `run_study`.
    """
    if bool(study) == list or (list and (preset or out or device or options)):
        raise ValueError("name one study, or give --list alone: nads-book run fig1-lenet")
    if study is None:
        for line in overview():
            print(line, flush=True)
        return 0
    sized = study_class(study).has_presets
    if preset is not None and not sized:
        raise ValueError(f"{study} has one size: leave --preset out")
    preset = preset or "demo"
    job = experiment(study, preset)  # raises for an unknown study, before any file is touched
    place = job.choose_device(device)
    if (workers := options.get("workers")) is not None and place.type != "cpu":
        raise ValueError(
            f"--workers {workers} is not valid with {place}: leave it out, or use --device cpu"
        )
    out = out or job.path
    results = run_experiment(study, preset, out=out, device=place, **options)
    job = results.experiment()
    missing = len(job.missing(results.rows, job.units()[: options.get("count")]))
    state = "complete" if results.complete else "all requested units"
    if missing:
        state = f"{missing} left: the same command resumes"
    print(f"{results} -> {out} ({state})", flush=True)
    return 0


def overview() -> Iterator[str]:
    """Yield a line for each figure of which a part is stored, and each other study: name, preset,
    how many units are stored, what is asked, and what it needs.
    """
    others = [(name, None) for name, kind in all_studies().items() if not kind.has_presets]
    for name, preset in [*stored_figures(), *others]:
        results = load_results(name, preset or "paper")
        study = experiment(name, preset or "paper") if results is None else results.experiment()
        total = len(study.units())
        missing = len(study.missing([] if results is None else results.rows))
        needs = ", ".join([*study.needs, *(["photos"] if study.on_photos else [])])
        question = f"{study.summary} Needs {needs}." if needs else study.summary
        yield f"{name:<22} {preset or '':<10} {total - missing:>5} of {total:<5} {question}"
