"""The page ``13_scores_on_data``: scores from random weights do not rank architectures on given
data.
"""

from nads_book.pages import adam_flip
from nads_book.pages.adam_flip import plot_bases
from nads_book.pages.scores_on_data import optimisers, ranking, series, stored
from nads_book.pages.scores_on_data.ranking import plot_pairs
from nads_book.pages.scores_on_data.series import (
    accuracy_after,
    permutation,
    plot_series,
    plot_yours,
    reordered,
)
from nads_book.studies.adam_flip import effective_inputs

LAB_TABLES = {
    "MNIST-1D: accuracies and scores": series.table_of_series,
    "Rank correlations of the primary score and of baselines": ranking.table_of_questions,
    "All five registered scores": ranking.table_of_scores,
    "Accuracies and scores of all pairs (%)": ranking.table_of_accuracies,
    "The MLP with Adam and with SGD": optimisers.table_of_optimisers,
    **adam_flip.LAB_TABLES,
}
CLAIMS = {
    "series-ridge-falls": series.ridge_falls,
    "series-lift-falls": series.lift_falls,
    "pairs-best": ranking.ranks_the_best,
    "pairs-loss": ranking.ranks_the_losses,
    "pairs-smoothness": ranking.smoothness_ranks_better,
    "adam-basis": optimisers.adam_loses,
    **adam_flip.CLAIMS,
}
