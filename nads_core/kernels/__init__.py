"""Faster implementations of PyTorch operations: layers on a CPU; and in Triton, on a GPU, what many
networks need.

These are random weights, second moments, and convolutions. Each Triton kernel has a reference in
plain PyTorch that defines its result, beside it or in `references`; tests compare the two.
The use of the results is defined by higher layers. Operations that PyTorch already computes fast do
not belong here.
"""

from nads_core.kernels.choice import require_kernels
from nads_core.kernels.convolutions import few_channel_convolutions
from nads_core.kernels.cpu_layers import (
    faster_first_convolutions,
    faster_layers,
    faster_max_pooling,
)
from nads_core.kernels.random_parameter import RandomParameter
from nads_core.kernels.random_weights import draw_weights
from nads_core.kernels.second_moments import add_second_moments

__all__ = [
    "RandomParameter",
    "add_second_moments",
    "draw_weights",
    "faster_first_convolutions",
    "faster_layers",
    "faster_max_pooling",
    "few_channel_convolutions",
    "require_kernels",
]
