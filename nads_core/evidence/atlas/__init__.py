"""The atlas: what one change in an architecture does to its second moment of gradients."""

from nads_core.evidence.atlas.measures import MEASURES, Measured, alignment, describe, products
from nads_core.evidence.atlas.runs import Computed, compute_entry

__all__ = ["MEASURES", "Computed", "Measured", "alignment", "compute_entry", "describe", "products"]
