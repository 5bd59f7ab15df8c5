"""The names of `nads_book.analysis`, which `__init__.py` imports when they are first used."""

from . import frequency_maps, prediction, published, statistics, waves
from .waves import grid_frequencies

__all__ = ["frequency_maps", "grid_frequencies", "prediction", "published", "statistics", "waves"]
