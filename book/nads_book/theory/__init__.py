"""Formulas that only chapters use: Lemmas 1 and 2, regression behind pooling, and deep linear
models.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
