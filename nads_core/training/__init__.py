"""Training: one network of any size, or many of one architecture together, and what a trained one answers.

Recipes, the ways of training many networks on one device, and what a training reached or left behind when it was
interrupted belong here. What networks learn from is in `data`; which trainings the paper's figures need, and what they
measured, is in `evidence`.
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

__all__ = [
    "CIFAR10_RECIPE", "METHODS", "SEPARABLE_RECIPE", "Dataset", "Recipe", "TrainingResult", "TrainingState",
    "TrainingTimeout", "accuracy", "accuracy_interval", "changed_predictions", "difference_interval", "num_cores",
    "predicted_classes", "train_network", "train_networks",
]  # fmt: skip
