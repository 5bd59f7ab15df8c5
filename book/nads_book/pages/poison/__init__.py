"""The page ``07_poison``: which NADs does a network use first? Numbers in photos tell the class.

`trial` is what the reader runs; `parts` takes the poison apart; `numbers` asks which numbers are
followed where all photos lack the carrier; `curve` has the paper's own experiment.
"""

from nads_book.pages import small_components
from nads_book.pages.poison import curve, numbers, parts
from nads_book.pages.poison.curve import (
    plot_accuracy_by_carrier,
    plot_use,
    read_classes,
)
from nads_book.pages.poison.numbers import plot_following
from nads_book.pages.poison.parts import plot_number, plot_own_number, plot_parts, widget
from nads_book.pages.poison.trial import Trial
from nads_book.pages.small_components import plot_groups

PARTS = (parts, curve, numbers, small_components)
