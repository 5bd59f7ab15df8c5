"""The paper's formulas, as corrected and as printed, and regressions for layers that have no formula.

The module `deep_linear` trains its own models. Checks of the formulas and their verdicts are in the book's package
(`nads_book.checks`).
"""

from nads_core.theory import deep_linear, lemma2, pooling, regression

__all__ = ["deep_linear", "lemma2", "pooling", "regression"]
