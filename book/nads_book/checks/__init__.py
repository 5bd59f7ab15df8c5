"""Every numbered statement of the paper compared with a simulation, for chapters, the errata page and the tests.

A check compares a simulated number with a formula, in units of the standard error of the simulation. Equalities pass
when ``|z| < 4``; inequalities when the simulated side does not exceed the other by 4 standard errors. A check function
returns at least 20 settings of one statement, each with the formula as printed and as it stands in `pooling`,
`deep_linear` and `lemma2`.
"""

from nads_book.checks import errata
from nads_book.checks.check import LIMIT, Check, mean_and_error, passed, readable_z, table, worst
from nads_book.checks.deep_linear import (
    check_eq4,
    check_eq5,
    check_lemma1,
    check_lemma1_theta,
    check_zeta,
    sample_hessians,
)
from nads_book.checks.lemma2 import (
    METRICS,
    Metric,
    check_eq6,
    check_eq6_dipole,
    check_lemma2,
    check_lemma2_dipole,
    lemma2_checks,
    markov_checks,
)
from nads_book.checks.pooling import (
    check_eq1,
    check_eq1_indivisible,
    check_theorem1,
    check_theorem1_complex,
    check_theorem1_folded,
    simulate_bayes_accuracy,
)
