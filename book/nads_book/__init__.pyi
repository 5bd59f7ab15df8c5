"""The names of `nads_book`, which `__init__.py` imports when they are first used."""

from . import (
    atlas,
    benchmarks,
    experiments,
    explorer,
    figures,
    network_report,
    pages,
    published,
    statistics,
)
from .experiments import Results, Study, run_study
from .experiments.formatting import readable
from .network_report import report_on
from .network_report.classes import class_energy
from .pages import conclude
from .pages.parameters import check_parameters, choose_preset
from .photos import DatasetNotFoundError, load_folder, load_images
from .published import waves
from .published.waves import grid_frequencies
from .studies import experiment, load_results, run_experiment
from .theory import checks, deep_linear, first_step, pooling

__all__ = [
    "DatasetNotFoundError",
    "Results",
    "Study",
    "atlas",
    "benchmarks",
    "check_parameters",
    "checks",
    "choose_preset",
    "class_energy",
    "conclude",
    "deep_linear",
    "experiment",
    "experiments",
    "explorer",
    "figures",
    "first_step",
    "grid_frequencies",
    "load_folder",
    "load_images",
    "load_results",
    "network_report",
    "pages",
    "pooling",
    "published",
    "readable",
    "report_on",
    "run_experiment",
    "run_study",
    "statistics",
    "waves",
]
