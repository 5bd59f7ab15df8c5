"""The names of `nads_book.experiments`, which `__init__.py` imports when they are first used."""

from . import frequency_maps, prediction, published, statistics, waves
from .base import Experiment
from .jobs import experiment
from .results import Results, load_results, merge_results, results_path
from .runner import run_experiment
from .waves import grid_frequencies

__all__ = [
    "Experiment",
    "Results",
    "experiment",
    "frequency_maps",
    "grid_frequencies",
    "load_results",
    "merge_results",
    "prediction",
    "published",
    "results_path",
    "run_experiment",
    "statistics",
    "waves",
]
