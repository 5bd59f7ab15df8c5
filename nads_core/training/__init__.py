"""Training: one network of any size, or many of one architecture together."""

from nads_core.training.interrupted import TrainingState
from nads_core.training.many import METHODS, num_cores, train_networks
from nads_core.training.single import (
    CIFAR10_RECIPE,
    SEPARABLE_RECIPE,
    Dataset,
    Recipe,
    TrainingResult,
    TrainingTimeout,
    accuracy,
    accuracy_interval,
    difference_interval,
    train_network,
)
from nads_core.training.trial import seconds_per_step

__all__ = [
    "CIFAR10_RECIPE", "METHODS", "SEPARABLE_RECIPE", "Dataset", "Recipe", "TrainingResult", "TrainingState",
    "TrainingTimeout", "accuracy", "accuracy_interval", "difference_interval", "num_cores", "seconds_per_step",
    "train_network", "train_networks",
]  # fmt: skip
