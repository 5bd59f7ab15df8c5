"""The page ``03_nads_and_generalization``: do random networks say what trained networks learn?

`waves` and `fall` compare untrained networks with trained ones along waves and along NADs; `law`
has a formula for accuracy, which `predictions` puts to the test; `gain` the experiment at equal
energy; `estimators` asks which estimator orders waves best; `rival_theory` compares with lazy
training and spectral bias, `nonlinear_tasks` has other tasks; `paper` is about what the paper says.
"""

from nads_book.analysis.frequency_maps import published_accuracies
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
from nads_book.pages.nads_and_generalization.fall import plot_accuracy_by_nad
from nads_book.pages.nads_and_generalization.gain import plot_arms
from nads_book.pages.nads_and_generalization.law import plot_law
from nads_book.pages.nads_and_generalization.waves import (
    plot_energies,
    plot_maps,
)
from nads_book.pages.nonlinear_tasks import plot_tasks
from nads_book.pages.rival_theory import plot_theories

PARTS = (
    waves,
    gain,
    fall,
    paper,
    law,
    predictions,
    estimators,
    published_spectra,
    rival_theory,
    nonlinear_tasks,
)
