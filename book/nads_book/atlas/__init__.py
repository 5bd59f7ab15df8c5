"""The atlas: what one change in an architecture does to its second moment of gradients.

The architectures are in `entries`; they are computed, measured, and compared with predictions.
"""

from nads_book.atlas.entries import ATLAS, Entry
from nads_book.atlas.predictions import judged
from nads_book.atlas.runs import Computed, compute_entry
from nads_book.atlas.similarity import load_entry_nads, most_similar
from nads_book.atlas.stored import Atlas, load_atlas
