"""Every numbered statement of the paper compared with a simulation, for chapters, the errata page
and the tests.

A check compares a simulated number with a formula, in units of the standard error of the
simulation. Equalities pass when ``|z| < 4``; inequalities when the simulated side does not exceed
the other by 4 standard errors. A check function returns at least 20 settings of one statement, each
with the formula as printed and as it stands in `pooling`, `deep_linear` and `lemma2`.
"""

from nads_book.theory.checks import errata
from nads_book.theory.checks.check import (
    LIMIT,
    Check,
    mean_and_error,
    passed,
    readable_z,
    table,
    worst,
)
from nads_book.theory.checks.deep_linear import sample_hessians
from nads_book.theory.checks.lemma2 import METRICS, Metric
from nads_book.theory.checks.pooling import simulate_bayes_accuracy
