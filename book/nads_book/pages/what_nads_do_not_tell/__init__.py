"""The page ``12_what_nads_do_not_tell``: which architecture to take, and how to repair one."""

from nads_book.pages.what_nads_do_not_tell import pooling, repair, scores, search
from nads_book.pages.what_nads_do_not_tell.pooling import plot_poolings
from nads_book.pages.what_nads_do_not_tell.repair import plot_repairs
from nads_book.pages.what_nads_do_not_tell.scores import accuracy_after, plot_pairs

PARTS = (pooling, scores, repair, search)
