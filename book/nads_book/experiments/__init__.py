"""The paper's experiments and ours, their results, and what the authors published.

`base` defines what an experiment is, and the ``*_experiment*`` modules define one class for each: Figs. 1, 2, 3, 6,
random directions and frozen first filters on D(v); Figs. 7 and 8, shortcut injection and orthogonal transforms on
photos. `jobs` finds them by name, `presets` defines their sizes, `runner` runs them, and `results` stores what they
measure. `statistics`, `prediction`, `waves` and `frequency_maps` evaluate the results.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
