"""The accuracy of Theorem 1. Other formulas, and the checks of all of them, are the book's."""

from nads_core.theory import pooling

__all__ = ["pooling"]
