"""Faster twins of PyTorch operations: of layers on a CPU, of random weights and second moments on a GPU."""

from nads_core.kernels.choice import KERNELS, require_kernels
from nads_core.kernels.cpu_layers import faster_first_convolutions, faster_max_pooling, max_pool2x2
from nads_core.kernels.random_weights import RandomParameter, draw_weights
from nads_core.kernels.second_moments import PRECISIONS, add_second_moments

__all__ = [
    "KERNELS",
    "PRECISIONS",
    "RandomParameter",
    "add_second_moments",
    "require_kernels",
    "draw_weights",
    "faster_first_convolutions",
    "faster_max_pooling",
    "max_pool2x2",
]
