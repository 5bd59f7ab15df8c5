"""What networks learn from: samples separable along a direction, waves, photos, and photos changed along NADs.

Nothing here trains.
"""

from nads_core.data.fourier import fourier_basis, fourier_direction, spectrum
from nads_core.data.images import DatasetNotFoundError, ImageSet, load_images, normalize
from nads_core.data.poisoning import carriers, changed_predictions, flip, poison
from nads_core.data.separable import SeparableDatasets, separable_dataset

__all__ = [
    "DatasetNotFoundError",
    "ImageSet",
    "SeparableDatasets",
    "carriers",
    "changed_predictions",
    "flip",
    "fourier_basis",
    "fourier_direction",
    "load_images",
    "normalize",
    "poison",
    "separable_dataset",
    "spectrum",
]
