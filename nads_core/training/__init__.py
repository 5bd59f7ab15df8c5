"""Training of one network, or of many networks of one architecture, and evaluation of trained networks.

Recipes, methods to train many networks on one device, results, and the state of an interrupted training belong here.
Datasets are in `data`. The book's package defines which trainings the paper's figures need (`nads_book.experiments`).
"""

from nads_core.training.accuracies import accuracy, accuracy_interval, difference_interval
from nads_core.training.datasets import Dataset
from nads_core.training.interrupted import TrainingState
from nads_core.training.many import METHODS, train_networks
from nads_core.training.predictions import changed_predictions, predicted_classes
from nads_core.training.processes import num_cores
from nads_core.training.recipes import CIFAR10_RECIPE, SEPARABLE_RECIPE, Recipe
from nads_core.training.result import TrainingResult, TrainingTimeout
from nads_core.training.single import train_network
from nads_core.training.trial import seconds_per_step, steps_of_training

__all__ = [
    "CIFAR10_RECIPE", "METHODS", "SEPARABLE_RECIPE", "Dataset", "Recipe", "TrainingResult", "TrainingState",
    "TrainingTimeout", "accuracy", "accuracy_interval", "changed_predictions", "difference_interval", "num_cores",
    "predicted_classes", "seconds_per_step", "steps_of_training", "train_network", "train_networks",
]  # fmt: skip
