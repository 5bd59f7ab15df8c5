"""What networks learn from: samples separable along a direction, waves, photos, and photos changed along NADs.

What makes, loads or changes images belongs here. What trains on them is in `training`; which waves the paper's figures
take, and in which order, is in `evidence.waves`. The generated photos of the explorer are its own.
"""

from nads_core.data.classes import ClassDifferences, class_differences
from nads_core.data.fourier import fourier_basis, fourier_direction, spectrum
from nads_core.data.images import DatasetNotFoundError, ImageSet, load_folder, load_images, normalize
from nads_core.data.poisoning import carriers, flip, poison
from nads_core.data.separable import SeparableDatasets, separable_dataset

__all__ = [
    "ClassDifferences",
    "DatasetNotFoundError",
    "ImageSet",
    "SeparableDatasets",
    "carriers",
    "class_differences",
    "flip",
    "fourier_basis",
    "fourier_direction",
    "load_folder",
    "load_images",
    "normalize",
    "poison",
    "separable_dataset",
    "spectrum",
]
