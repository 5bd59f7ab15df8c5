"""The names of the library, which `__init__.py` imports when they are first used."""

__version__: str

from . import data, directions, kernels, networks, runtime, training  # noqa: F401
from .data import (
    ImageSet,
    SeparableDatasets,
    flip,
    fourier_basis,
    fourier_direction,
    normalize,
    poison,
    separable_dataset,
    spectrum,
)
from .directions import (
    Dipole,
    MixedDerivative,
    NADs,
    PointGradient,
    SecondMoment,
    SmoothedGradient,
    compute_nads,
    load_nads,
    second_moment,
)
from .networks import (
    ARCHITECTURES,
    DENSENET121,
    LENET,
    LOGREG,
    RESNET18,
    VGG11,
    Architecture,
)
from .training import (
    CIFAR10_RECIPE,
    SEPARABLE_RECIPE,
    Recipe,
    TrainingResult,
    accuracy,
    predicted_classes,
    train_network,
    train_networks,
)

__all__ = [
    "ARCHITECTURES",
    "DENSENET121",
    "LENET",
    "LOGREG",
    "RESNET18",
    "VGG11",
    "Architecture",
    "NADs",
    "SecondMoment",
    "compute_nads",
    "load_nads",
    "second_moment",
    "Dipole",
    "MixedDerivative",
    "PointGradient",
    "SmoothedGradient",
    "fourier_basis",
    "fourier_direction",
    "spectrum",
    "SeparableDatasets",
    "separable_dataset",
    "ImageSet",
    "normalize",
    "flip",
    "poison",
    "CIFAR10_RECIPE",
    "SEPARABLE_RECIPE",
    "Recipe",
    "TrainingResult",
    "accuracy",
    "predicted_classes",
    "train_network",
    "train_networks",
]
