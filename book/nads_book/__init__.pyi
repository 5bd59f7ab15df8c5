"""The names of `nads_book`, which `__init__.py` imports when they are first used."""

from . import atlas, benchmarks, checks, experiments, explorer, figures, network_report, pages
from .analysis import frequency_maps, grid_frequencies, prediction, published, statistics, waves
from .analysis.class_differences import ClassDifferences, class_differences
from .analysis.prediction_changes import changed_predictions
from .checks import errata
from .experiments import Results, Study, run_study
from .network_report import report_on
from .pages import conclude
from .parameters import check_parameters, choose_network, choose_preset
from .photos import DatasetNotFoundError, load_folder, load_images
from .report import readable
from .studies import experiment, load_results, merge_results, run_experiment
from .theory import deep_linear, lemma2, pooling

__all__ = [
    "ClassDifferences",
    "DatasetNotFoundError",
    "Results",
    "Study",
    "atlas",
    "benchmarks",
    "changed_predictions",
    "check_parameters",
    "checks",
    "choose_network",
    "choose_preset",
    "class_differences",
    "conclude",
    "deep_linear",
    "errata",
    "experiment",
    "experiments",
    "explorer",
    "figures",
    "frequency_maps",
    "grid_frequencies",
    "lemma2",
    "load_folder",
    "load_images",
    "load_results",
    "merge_results",
    "network_report",
    "pages",
    "pooling",
    "prediction",
    "published",
    "readable",
    "report_on",
    "run_experiment",
    "run_study",
    "statistics",
    "waves",
]
