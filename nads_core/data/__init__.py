"""Datasets: samples that are separable along a direction, waves, and images changed along NADs.

Functions that create or change images belong here. `training` trains networks on them. The book's
package loads photos (`nads_book.photos`), and selects the waves of the paper's figures
(`nads_book.published.waves`).
"""

from nads_core.data.fourier import fourier_basis, fourier_direction, spectrum
from nads_core.data.images import ImageSet, normalize
from nads_core.data.poisoning import flip, poison
from nads_core.data.separable import SeparableDatasets, separable_dataset

__all__ = [
    "ImageSet",
    "SeparableDatasets",
    "flip",
    "fourier_basis",
    "fourier_direction",
    "normalize",
    "poison",
    "separable_dataset",
    "spectrum",
]
