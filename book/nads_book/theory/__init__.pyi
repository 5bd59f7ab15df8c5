"""The names of `nads_book.theory`, which `__init__.py` imports when they are first used."""

from . import checks, deep_linear, descent, first_step, lemma2, pooling, regression

__all__ = [
    "checks",
    "deep_linear",
    "descent",
    "first_step",
    "lemma2",
    "pooling",
    "regression",
]
