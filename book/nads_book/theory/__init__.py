"""The paper's formulas and ours, with numerical checks: pooling and Theorem 1, deep linear models,
Lemma 2, regression behind pooling, and the first-step law.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
