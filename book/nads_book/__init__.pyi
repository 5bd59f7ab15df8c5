"""The names of `nads_book`, which `__init__.py` imports when they are first used."""

from . import atlas, benchmarks, checks, deep_linear, explorer, figures, lemma2
from .checks import errata
from .experiments import (
    Experiment,
    Results,
    experiment,
    frequency_maps,
    grid_frequencies,
    load_results,
    merge_results,
    prediction,
    published,
    run_experiment,
    statistics,
    waves,
)
from .forecasting import forecast
from .parameters import check_parameters, choose_architecture, choose_carriers, choose_preset
from .prediction_changes import changed_predictions
from .report import readable

__all__ = [
    "Experiment",
    "Results",
    "atlas",
    "benchmarks",
    "changed_predictions",
    "check_parameters",
    "checks",
    "choose_architecture",
    "choose_carriers",
    "choose_preset",
    "deep_linear",
    "errata",
    "experiment",
    "explorer",
    "figures",
    "forecast",
    "frequency_maps",
    "grid_frequencies",
    "lemma2",
    "load_results",
    "merge_results",
    "prediction",
    "published",
    "readable",
    "run_experiment",
    "statistics",
    "waves",
]
