"""The page ``13_scores_on_data``: scores from random weights do not rank architectures on given
data.
"""

from nads_book.pages.scores_on_data import adam, ranking, series, stored
from nads_book.pages.scores_on_data.adam import plot_bases
from nads_book.pages.scores_on_data.ranking import plot_pairs
from nads_book.pages.scores_on_data.series import (
    accuracy_after,
    permutation,
    plot_series,
    plot_yours,
    reordered,
)
from nads_book.studies.adam_flip import effective_inputs

PARTS = (series, ranking, adam)
