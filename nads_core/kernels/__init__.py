"""Faster implementations of PyTorch operations: layers on a CPU; random weights and second moments on a GPU, in Triton.

Each Triton kernel has a reference in plain PyTorch that defines its result, in `benchmarks/kernel_references.py`; tests
compare the two. The use of the results is defined by higher layers. Operations that PyTorch already computes fast do
not belong here.
"""

from nads_core.kernels.choice import require_kernels
from nads_core.kernels.cpu_layers import faster_first_convolutions, faster_layers, faster_max_pooling
from nads_core.kernels.random_weights import RandomParameter, draw_weights
from nads_core.kernels.second_moments import add_second_moments

__all__ = [
    "RandomParameter", "add_second_moments", "draw_weights", "faster_first_convolutions", "faster_layers",
    "faster_max_pooling", "require_kernels",
]  # fmt: skip
