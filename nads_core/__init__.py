"""Neural anisotropy directions of any PyTorch architecture."""

# The theory and its checks, what others published, and the interactive explorer
from nads_core import (
    bench,
    checks,
    deep_linear,
    errata,
    explorer,
    frequency_maps,
    pooling,
    prediction,
    published,
    readout,
    waves,
)

# Networks
from nads_core.architectures import ARCHITECTURES, DENSENET121, LENET, LOGREG, RESNET18, VGG11, Architecture

# Their preferred directions
from nads_core.directions import NADs, compute_nads, load_nads

# Training, and the paper's sweeps
from nads_core.experiments import (
    Experiment,
    Results,
    experiment,
    load_results,
    merge_results,
    run_experiment,
)

# Other directions, and data along a direction
from nads_core.fourier import fourier_basis, fourier_direction, spectrum

# Photos, and what NADs do to them
from nads_core.images import DatasetNotFoundError, ImageSet, load_images, normalize
from nads_core.input_gradients import Dipole, MixedDerivative, PointGradient, SmoothedGradient

# Numbers as people write them
from nads_core.numbers import readable
from nads_core.poisoning import carriers, changed_predictions, flip, poison

# The size of the book's experiments
from nads_core.presets import choose_preset
from nads_core.separable import SeparableDatasets, separable_dataset
from nads_core.training import (
    CIFAR10_RECIPE,
    SEPARABLE_RECIPE,
    Recipe,
    TrainingResult,
    TrainingState,
    TrainingTimeout,
    accuracy,
    accuracy_interval,
    difference_interval,
    train_network,
    train_networks,
)
from nads_core.waves import grid_frequencies

__all__ = [
    "ARCHITECTURES", "DENSENET121", "LENET", "LOGREG", "RESNET18", "VGG11", "Architecture",
    "NADs", "compute_nads", "load_nads",
    "Dipole", "MixedDerivative", "PointGradient", "SmoothedGradient",
    "fourier_basis", "fourier_direction", "spectrum", "SeparableDatasets", "separable_dataset",
    "DatasetNotFoundError", "ImageSet", "load_images", "normalize", "carriers", "changed_predictions", "flip", "poison",
    "CIFAR10_RECIPE", "SEPARABLE_RECIPE", "Recipe", "TrainingResult", "TrainingState", "TrainingTimeout",
    "accuracy", "accuracy_interval", "difference_interval", "train_network", "train_networks",
    "Experiment", "Results", "experiment", "grid_frequencies", "load_results", "merge_results", "run_experiment",
    "choose_preset", "readable",
    "bench", "checks", "deep_linear", "errata", "explorer", "frequency_maps", "pooling", "prediction", "published",
    "readout", "waves",
]  # fmt: skip
