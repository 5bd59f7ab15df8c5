"""The book's package: the paper's experiments, their results, the checks of its statements, figures
and explorer.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
