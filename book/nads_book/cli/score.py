"""``nads-book score``: apply the registered rule of a study to its stored results."""

import argparse
import math

from nads_book.studies import OTHERS, experiment, load_results
from nads_book.studies.presets import SIZES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book score``."""
    parser.add_argument(
        "study", help="name of a study with a registered rule, such as forgetting or law-lenet"
    )
    parser.add_argument("--preset", choices=SIZES, help="size of a figure (default: paper)")


def run(study: str, preset: str = "paper") -> int:
    """Print the estimates with their intervals, and which registered criteria are met."""
    if study in OTHERS:
        job = experiment(study)
        rows = job.stored(job.path).rows
    else:
        results = load_results(study, preset)
        if results is None:
            raise ValueError(f"{study} has no results at preset {preset}: run it first")
        job, rows = results.experiment(), results.rows
    evidence = job.score(rows)
    for group, estimates in evidence.estimates.items():
        for name, (value, low, high) in estimates.items():
            interval = f" ({low:.3f} to {high:.3f})" if math.isfinite(low) else ""
            print(f"{group}: {name}: {value:.3f}{interval}")
    for name, holds in evidence.met.items():
        print(f"{'open' if holds is None else 'yes' if holds else 'no':<5} {name}")
    return 0
