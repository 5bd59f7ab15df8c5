"""Training of one network, or of many of one architecture, and predictions of trained networks."""

from nads_core.training.recipe import (
    CIFAR10_RECIPE,
    SEPARABLE_RECIPE,
    Dataset,
    Recipe,
    TrainConfig,
    batches,
)
from nads_core.training.result import TrainingResult, accuracy, predicted_classes
from nads_core.training.train_many import train_networks, train_new
from nads_core.training.train_one import train_network, training_steps

__all__ = [
    "CIFAR10_RECIPE",
    "SEPARABLE_RECIPE",
    "Dataset",
    "Recipe",
    "TrainConfig",
    "TrainingResult",
    "accuracy",
    "batches",
    "predicted_classes",
    "train_network",
    "train_networks",
    "train_new",
    "training_steps",
]
