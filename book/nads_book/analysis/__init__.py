"""Statistics of results, predictions from random weights, frequency maps, and what the authors
published.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
