"""Every numbered statement of the paper compared with a simulation, for chapters, the errata page
and the tests: `STATEMENTS`, each registered beside the function that simulates it.
"""

from nads_book.theory.checks.deep_linear import sample_hessians
from nads_book.theory.checks.lemma2 import METRICS
from nads_book.theory.checks.pooling import simulate_bayes_accuracy
from nads_book.theory.checks.statement import STATEMENTS, decide, holds, show_verdicts, simulate
