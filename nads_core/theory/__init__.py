"""The paper's formulas, as corrected and as printed.

Checks of the formulas and their verdicts are in the book's package (`nads_book.checks`).
"""

from nads_core import _moved
from nads_core.theory import deep_linear, lemma2, pooling

__getattr__ = _moved.forwarding_getattr(__name__)
__all__ = ["deep_linear", "lemma2", "pooling"]
