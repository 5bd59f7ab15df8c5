"""Every figure of the book: one function per figure, which returns a matplotlib Figure; an import draws nothing.

A function draws measured values. It computes only reading aids: running means, intervals of counts, the curve of a law.
The explorer's interactive pictures are in `explorer`.
"""

from nads_book.figures.atlas import plot_alignments, plot_effects, plot_entries, plot_learned
from nads_book.figures.bases import (
    plot_class_differences,
    plot_definitions,
    plot_dipoles,
    plot_directions,
    plot_eigenvalues,
    plot_energies,
    plot_kinks,
    plot_overlaps,
    plot_reliability,
    plot_scaling,
    plot_shrinking,
)
from nads_book.figures.generalization import (
    plot_accuracy_by_nad,
    plot_law,
    plot_monotone_fits,
    plot_rank_correlations,
)
from nads_book.figures.learning import (
    plot_accuracy_by_energy,
    plot_agreement,
    plot_coordinates,
    plot_frequency_maps,
    plot_tasks,
    plot_train_test,
)
from nads_book.figures.poison import (
    plot_accuracy_by_index,
    plot_notes,
    plot_poisoned,
    plot_representations,
    plot_scatter,
    plot_use,
    plot_versions,
)
from nads_book.figures.theory import (
    plot_aliasing,
    plot_bounds,
    plot_checks,
    plot_convergence,
    plot_curves,
    plot_images,
    plot_kept_shares,
    plot_learning_curves,
    plot_matrices,
    plot_saddle,
    plot_tails,
    plot_two_classes,
)

plot_learnt = plot_learned  # name until 0.2
