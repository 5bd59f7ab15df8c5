"""Neural anisotropy directions of any PyTorch architecture."""

from nads_core import _moved
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
    StoppingCriterion,
    compute_nads,
    forecast,
    load_nads,
)
from nads_core.networks import ARCHITECTURES, DENSENET121, LENET, LOGREG, RESNET18, VGG11, Architecture
from nads_core.theory import deep_linear, lemma2, pooling, regression
from nads_core.training import (
    CIFAR10_RECIPE,
    SEPARABLE_RECIPE,
    Recipe,
    TrainConfig,
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

__getattr__ = _moved.forwarding_getattr(__name__)

__all__ = [
    "ARCHITECTURES", "DENSENET121", "LENET", "LOGREG", "RESNET18", "VGG11", "Architecture",
    "NADs", "compute_nads", "forecast", "load_nads",
    "Dipole", "MixedDerivative", "PointGradient", "SmoothedGradient", "StoppingCriterion",
    "fourier_basis", "fourier_direction", "spectrum", "SeparableDatasets", "separable_dataset",
    "DatasetNotFoundError", "ImageSet", "load_folder", "load_images", "normalize", "carriers", "flip", "poison",
    "ClassDifferences", "class_differences",
    "CIFAR10_RECIPE", "SEPARABLE_RECIPE", "Recipe", "TrainConfig", "TrainingResult", "TrainingState", "TrainingTimeout",
    "accuracy", "accuracy_interval", "changed_predictions", "difference_interval", "predicted_classes", "train_network",
    "train_networks",
    "deep_linear", "lemma2", "pooling", "regression",
]  # fmt: skip
