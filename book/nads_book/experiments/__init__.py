"""The engine of all studies: units, resuming, checkpoints, shards, executors, results files and
sizes.

`study` defines what a study is; `runner` runs one, with an executor of `executors`; `results`
stores what it computes, and `presets` defines the sizes of the figures.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
