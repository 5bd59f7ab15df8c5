"""The engine of all studies: units, resuming, checkpoints, executors and results files.

`study` defines what a study is; `runner` runs one, with an executor of `executors`, and `results`
stores what it computes.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
