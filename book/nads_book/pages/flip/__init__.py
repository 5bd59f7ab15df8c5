"""The page ``08_flip``: what it costs networks to have the order of NAD coordinates reversed, and
why.
"""

from nads_book.pages.flip import costs, images, match, other_photos, rough, stored
from nads_book.pages.flip.costs import plot_costs, plot_signs, plot_yours, widget
from nads_book.pages.flip.images import (
    MAPS,
    flip_matrix,
    logistic_losses,
    mapped,
    nads_of_flips,
    run_full_scale,
)
from nads_book.pages.flip.match import plot_maps
from nads_book.pages.flip.other_photos import plot_elsewhere

PARTS = (costs, images, match, rough, other_photos)
