"""The names of `nads_book.experiments`, which `__init__.py` imports when they are first used."""

from .results import Results
from .runner import open_results, run_study
from .stored import load_nads, load_registered, load_study, results_path, study_path
from .study import (
    Context,
    Criteria,
    Estimate,
    Estimates,
    Facts,
    Met,
    Row,
    Rows,
    Scored,
    Study,
    Unit,
    factorial,
    rounded,
)
from .trainer import (
    PHOTO_RECIPE,
    TrainingSize,
    logit_difference,
    recipe_steps,
    train_along,
    train_each,
    train_on_photos,
)

__all__ = [
    "PHOTO_RECIPE",
    "Context",
    "Criteria",
    "Estimate",
    "Estimates",
    "Facts",
    "Met",
    "Results",
    "Row",
    "Rows",
    "Scored",
    "Study",
    "TrainingSize",
    "Unit",
    "factorial",
    "load_nads",
    "load_registered",
    "load_study",
    "logit_difference",
    "open_results",
    "recipe_steps",
    "results_path",
    "rounded",
    "run_study",
    "study_path",
    "train_along",
    "train_each",
    "train_on_photos",
]
