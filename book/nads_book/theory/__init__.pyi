"""The names of `nads_book.theory`, which `__init__.py` imports when they are first used."""

from . import classifiers, deep_linear, descent, lemma2, pooling, regression

__all__ = ["classifiers", "deep_linear", "descent", "lemma2", "pooling", "regression"]
