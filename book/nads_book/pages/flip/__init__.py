"""The page ``08_flip``: what it costs networks to have the order of NAD coordinates reversed, and
why.
"""

from functools import partial

from nads_book.evidence import evidence
from nads_book.pages.flip import costs, images, match, rough, stored, tables
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

LAB_TABLES = {
    "Paper and ours": tables.table_of_paper,
    "What the flip and random signs cost": tables.table_of_costs,
    "LeNet's maps": partial(tables.table_of_maps, "lenet"),
    "ResNet-18's maps": partial(tables.table_of_maps, "resnet18"),
    "Match and smoothness": tables.table_of_regressions,
}
CLAIMS = {
    "flip-is-rotation": images.is_rotation,
    "flip-full-lenet": costs.costs_at_full_size,
    "flip-costs-lenet": partial(costs.costs, "lenet"),
    "flip-costs-resnet18": partial(costs.costs, "resnet18"),
    "flip-predicted-vgg11": partial(costs.predicted_cost, "vgg11"),
    "flip-predicted-resnet18": partial(costs.predicted_cost, "resnet18"),
    "signs-cost-lenet": partial(costs.signs_cost, "lenet"),
    "signs-cost-resnet18": partial(costs.signs_cost, "resnet18"),
    "flip-takes-three": costs.lowers_match_and_smoothness,
    "errata-flip": costs.fits_noise,
    "errata-flip-training": costs.fits_training_photos,
    "match-with-smoothness": match.match_goes_with_smoothness,
    "equally-rough": match.equally_rough,
    "smoothness-lenet": partial(match.smoothness_counts, "lenet"),
    "smoothness-resnet18": partial(match.smoothness_counts, "resnet18"),
    "match-over-fourier": match.match_over_fourier,
    "octave-order": match.order_within_octaves,
    "match-open": rough.match_is_open,
    "best-matches": rough.best_matches_score_higher,
    "order-beats-shuffled": rough.order_beats_others,
    "smoothness-open": lambda: evidence(None, results=[stored.maps("resnet18")]),
    "own-flip": rough.own_flip,
}
