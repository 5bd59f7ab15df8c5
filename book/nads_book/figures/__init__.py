"""Figures that cells call, or that several pages share, and the look of all figures (`style`).

Each function returns a matplotlib Figure; an import draws nothing. A figure that one page draws
from its stored results is a function of that page.

A function draws measured values. It computes only reading aids: running means, intervals of counts,
the curve of a law. The explorer's interactive pictures are in `explorer`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
