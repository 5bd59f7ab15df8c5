"""The page ``12_using_nads``: can NADs repair an architecture, or choose one?"""

from nads_book.pages.using_nads import pooling, repair, search
from nads_book.pages.using_nads.pooling import plot_poolings, table_choices
from nads_book.pages.using_nads.repair import plot_repairs, table_repairs
from nads_book.pages.using_nads.search import plot_scores, plot_your_cell

PARTS = (pooling, repair, search)
