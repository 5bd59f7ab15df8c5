"""The page ``03_nads_and_generalization``: do random networks say what trained networks learn?

`waves` and `fall` compare untrained networks with trained ones along waves and along NADs; `law`
has a formula for accuracy, which `predictions` puts to the test; `gain` the experiment at equal
energy; `estimators` asks which estimator orders waves best; `rival_theory` compares with lazy
training and spectral bias, `nonlinear_tasks` has other tasks; `paper` and `sentences` are about
what the paper says.
"""

from __future__ import annotations

from collections.abc import Callable

from nads_book.evidence import Evidence
from nads_book.pages import nonlinear_tasks, published_spectra, rival_theory
from nads_book.pages.nads_and_generalization import (
    estimators,
    fall,
    gain,
    law,
    paper,
    predictions,
    waves,
)
from nads_book.pages.nads_and_generalization.estimators import plot_rank_correlations
from nads_book.pages.nads_and_generalization.fall import plot_accuracy_by_nad
from nads_book.pages.nads_and_generalization.gain import plot_arms
from nads_book.pages.nads_and_generalization.law import plot_law
from nads_book.pages.nads_and_generalization.sentences import show_sentences_of_paper
from nads_book.pages.nads_and_generalization.waves import (
    plot_energies,
    plot_maps,
    published_accuracies,
)
from nads_book.pages.nonlinear_tasks import plot_tasks
from nads_book.pages.rival_theory import plot_theories

__all__ = [
    "CLAIMS",
    "LAB_TABLES",
    "plot_accuracy_by_nad",
    "plot_arms",
    "plot_energies",
    "plot_law",
    "plot_maps",
    "plot_rank_correlations",
    "plot_tasks",
    "plot_theories",
    "published_accuracies",
    "show_sentences_of_paper",
]
CLAIMS: dict[str, Callable[[], Evidence]] = {
    **waves.CLAIMS,
    **gain.CLAIMS,
    **fall.CLAIMS,
    **paper.CLAIMS,
    **law.CLAIMS,
    **predictions.CLAIMS,
    **estimators.CLAIMS,
    **rival_theory.CLAIMS,
    **nonlinear_tasks.CLAIMS,
}
LAB_TABLES: dict[str, Callable[[], str]] = {
    **waves.LAB_TABLES,
    **gain.LAB_TABLES,
    **fall.LAB_TABLES,
    **paper.LAB_TABLES,
    **law.LAB_TABLES,
    **predictions.LAB_TABLES,
    **estimators.LAB_TABLES,
    **published_spectra.LAB_TABLES,
    **rival_theory.LAB_TABLES,
    **nonlinear_tasks.LAB_TABLES,
}
