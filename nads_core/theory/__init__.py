"""The formulas of Theorem 1, as corrected and as printed.

Those of the deep linear model and of Lemma 2, and the checks of all of them, are in the book's
package.
"""

from nads_core.theory import pooling

__all__ = ["pooling"]
