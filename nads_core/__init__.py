"""Neural anisotropy directions of any PyTorch architecture."""

from nads_core import costs, explorer
from nads_core.data import (
    ClassDifferences,
    DatasetNotFoundError,
    ImageSet,
    SeparableDatasets,
    carriers,
    class_differences,
    flip,
    fourier_basis,
    fourier_direction,
    load_folder,
    load_images,
    normalize,
    poison,
    separable_dataset,
    spectrum,
)
from nads_core.directions import (
    Dipole,
    MixedDerivative,
    NADs,
    PointGradient,
    SmoothedGradient,
    compute_nads,
    forecast,
    load_nads,
)
from nads_core.evidence import (
    Experiment,
    Results,
    atlas,
    choose_preset,
    experiment,
    frequency_maps,
    grid_frequencies,
    load_results,
    merge_results,
    prediction,
    published,
    run_experiment,
    waves,
)
from nads_core.machinery import readable
from nads_core.networks import ARCHITECTURES, DENSENET121, LENET, LOGREG, RESNET18, VGG11, Architecture
from nads_core.theory import checks, deep_linear, errata, lemma2, pooling, regression
from nads_core.training import (
    CIFAR10_RECIPE,
    SEPARABLE_RECIPE,
    Recipe,
    TrainingResult,
    TrainingState,
    TrainingTimeout,
    accuracy,
    accuracy_interval,
    changed_predictions,
    difference_interval,
    predicted_classes,
    train_network,
    train_networks,
)

bench, readout = costs, regression  # their names up to 0.2

__all__ = [
    "ARCHITECTURES", "DENSENET121", "LENET", "LOGREG", "RESNET18", "VGG11", "Architecture",
    "NADs", "compute_nads", "forecast", "load_nads",
    "Dipole", "MixedDerivative", "PointGradient", "SmoothedGradient",
    "fourier_basis", "fourier_direction", "spectrum", "SeparableDatasets", "separable_dataset",
    "DatasetNotFoundError", "ImageSet", "load_folder", "load_images", "normalize", "carriers", "flip", "poison",
    "ClassDifferences", "class_differences",
    "CIFAR10_RECIPE", "SEPARABLE_RECIPE", "Recipe", "TrainingResult", "TrainingState", "TrainingTimeout",
    "accuracy", "accuracy_interval", "changed_predictions", "difference_interval", "predicted_classes", "train_network",
    "train_networks",
    "Experiment", "Results", "experiment", "grid_frequencies", "load_results", "merge_results", "run_experiment",
    "choose_preset", "readable",
    "atlas", "bench", "checks", "costs", "deep_linear", "errata", "explorer", "frequency_maps", "lemma2", "pooling",
    "prediction", "published", "readout", "regression", "waves",
]  # fmt: skip
