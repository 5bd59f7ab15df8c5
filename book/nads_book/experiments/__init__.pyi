"""The names of `nads_book.experiments`, which `__init__.py` imports when they are first used."""

from .results import Results, results_path
from .runner import run_study
from .stored import load_nads, load_registered, load_study, study_path
from .study import (
    Context,
    Criteria,
    Estimate,
    Estimates,
    Evidence,
    Keep,
    Met,
    Row,
    Study,
    Unit,
    factorial,
    matching,
    within,
    without_interval,
)
from .study_files import FileStudy, KeyedStudy, StudyFile, less, write_compact
from .trainer import (
    accuracies,
    cifar10,
    recipe_steps,
    sgd,
    train_along,
    train_network,
    training_steps,
)

__all__ = [
    "Context",
    "Criteria",
    "Estimate",
    "Estimates",
    "Evidence",
    "FileStudy",
    "Keep",
    "KeyedStudy",
    "Met",
    "Results",
    "Row",
    "Study",
    "StudyFile",
    "Unit",
    "accuracies",
    "cifar10",
    "factorial",
    "less",
    "load_nads",
    "load_registered",
    "load_study",
    "matching",
    "recipe_steps",
    "results_path",
    "run_study",
    "sgd",
    "study_path",
    "train_along",
    "train_network",
    "training_steps",
    "within",
    "without_interval",
    "write_compact",
]
