"""Training of one network, or of many of one architecture at once, and the evaluation of trained
networks.
"""

from nads_core.training.accuracies import (
    accuracy,
    accuracy_interval,
    predicted_classes,
)
from nads_core.training.processes import num_cores
from nads_core.training.recipes import (
    CIFAR10_RECIPE,
    SEPARABLE_RECIPE,
    Dataset,
    Recipe,
    TrainConfig,
)
from nads_core.training.result import TrainingResult, TrainingTimeout
from nads_core.training.state import TrainingState
from nads_core.training.train_many import train_networks
from nads_core.training.train_one import train_network

__all__ = [
    "CIFAR10_RECIPE",
    "SEPARABLE_RECIPE",
    "Dataset",
    "Recipe",
    "TrainConfig",
    "TrainingResult",
    "TrainingState",
    "TrainingTimeout",
    "accuracy",
    "accuracy_interval",
    "num_cores",
    "predicted_classes",
    "train_network",
    "train_networks",
]
