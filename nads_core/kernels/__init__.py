"""Faster implementations of PyTorch operations: layers on a CPU; convolutions of many networks on a
GPU, in Triton.

The Triton kernel has a reference in plain PyTorch that defines its result; tests compare the two.
The use of the results is defined by higher layers. Operations that PyTorch already computes fast do
not belong here: kernels of random weights and of second moments were removed after a GPU had timed
them (benchmarks/README.md).
"""

from nads_core.kernels.convolutions import few_channel_convolutions, require_kernels
from nads_core.kernels.cpu_layers import faster_layers

__all__ = [
    "faster_layers",
    "few_channel_convolutions",
    "require_kernels",
]
