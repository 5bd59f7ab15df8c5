"""Faster ways to do what PyTorch does: layers on a CPU; random weights and second moments on a GPU, in Triton.

Each stands beside its twin in plain PyTorch, which says what it computes and which tests hold it against. What the
numbers are for belongs to the rooms above; what PyTorch does fast enough has no place here.
"""

from nads_core.kernels.choice import KERNELS, require_kernels
from nads_core.kernels.cpu_layers import faster_first_convolutions, faster_max_pooling
from nads_core.kernels.random_weights import RandomParameter, draw_weights
from nads_core.kernels.second_moments import PRECISIONS, add_second_moments

__all__ = [
    "KERNELS",
    "PRECISIONS",
    "RandomParameter",
    "add_second_moments",
    "draw_weights",
    "faster_first_convolutions",
    "faster_max_pooling",
    "require_kernels",
]
