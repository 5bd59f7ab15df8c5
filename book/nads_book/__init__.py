"""The book's package: the paper's experiments, their results, the checks of its statements, figures and explorer."""

from nads_book import atlas, benchmarks, checks, deep_linear, explorer, lemma2
from nads_book.changed_predictions import changed_predictions
from nads_book.checks import errata
from nads_book.experiments import (
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
from nads_book.forecast import forecast
from nads_book.parameters import check_parameters, choose_architecture, choose_carriers, choose_preset
from nads_book.report import readable

costs = benchmarks

__all__ = [
    "Experiment", "Results", "experiment", "grid_frequencies", "load_results", "merge_results", "run_experiment",
    "check_parameters", "choose_architecture", "choose_carriers", "choose_preset",
    "changed_predictions", "forecast", "readable",
    "atlas", "benchmarks", "checks", "costs", "deep_linear", "errata", "explorer", "frequency_maps", "lemma2",
    "prediction", "published", "statistics", "waves",
]  # fmt: skip
