"""``nads-book run``: train the networks of one of the paper's figures."""

import argparse
import re
from functools import partial
from pathlib import Path
from typing import Any

from nads_book.cli import add_training_arguments, require_cpu_for_workers
from nads_book.experiments.jobs import EXPERIMENTS, experiment
from nads_book.experiments.presets import SIZES
from nads_book.experiments.results import Results, results_path, writing
from nads_book.experiments.runner import gather, run_distributed, run_experiment
from nads_core.cli import output_file
from nads_core.runtime import distributed
from nads_core.runtime.arguments import usable_device


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book run``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter  # keeps the line breaks of the epilog
    parser.epilog = "figures:\n" + "\n".join(f"  {name:<7} {kind.summary}" for name, kind in EXPERIMENTS.items())
    add = parser.add_argument
    add("job", help="figure and architecture, such as fig1-lenet")
    add("--preset", choices=SIZES, help="size of the job (default: demo)")
    add("--count", type=int, help="number of networks to train, from the first of the job; all by default")
    add("--out", type=output_file, help="results file; by default in book/results, named after job, preset and shard")
    add("--shard", type=_shard, metavar="I/N", help="part of the job, such as 2/8; the whole job by default")
    add("--mixed-precision", action=argparse.BooleanOptionalAction, help="run layers in bfloat16, or in float32")
    add_training_arguments(parser)


def run(
    job: str, preset: str = "demo", out: Path | None = None, shard: tuple[int, int] | None = None,
    device: str | None = None, mixed_precision: bool | None = None, **options: Any,
) -> int:  # fmt: skip
    """Run a job, or resume it from its results file.

    Args:
        job: figure and architecture.
        preset: size of the job.
        out: results file.
        shard: part (i, n) of the job; the whole job by default.
        device: device, or None for a GPU if available.
        mixed_precision: whether layers run in bfloat16.
        **options: options of `run_experiment`.
    """
    needs_photos = experiment(job, preset).on_photos  # raises for an unknown job, before any file is touched
    if "root" in options and not needs_photos:
        raise ValueError(f"{job} does not use photos: leave --root out")
    part, parts = shard = shard or (1, 1)
    if out is None:
        out = results_path(job, preset)
        out = out.with_suffix(f".{part}of{parts}.json") if parts > 1 else out
    train = partial(run_experiment, job, preset, mixed_precision=mixed_precision, **options)
    with distributed.process_group(device) as assigned:
        place = usable_device(assigned)
        require_cpu_for_workers(options.get("workers"), place)
        results: Results | None
        if distributed.size() == 1:
            with writing(out):
                gather(out)
            results = train(out=out, shard=shard, device=place)
        else:
            results = run_distributed(train, out, shard, place)
    if results is not None:
        missing = len(results.missing(results.experiment().units[: options.get("count")][part - 1 :: parts]))
        finished = "all requested networks" if parts == 1 else f"part {part} of {parts}"
        state = f"{missing} left: the same command resumes" if missing else "complete" if results.complete else finished
        print(f"{results} -> {out} ({state})")
    return 0


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    part, parts = map(int, match.groups()) if match else (0, 0)
    if not 1 <= part <= parts:
        raise argparse.ArgumentTypeError(f"expected I/N with I from 1 to N, such as 2/8, got {text!r}")
    return part, parts
