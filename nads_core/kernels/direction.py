"""The directions of a convolution: forward, and the adjoint map of gradients."""

from typing import NamedTuple

Pair = tuple[int, ...]  # of rows and columns


class Convolution(NamedTuple):
    """One direction of a convolution of many networks.

    Args:
        stride: stride of rows and columns.
        padding: padding of rows and columns.
        relu: whether values below zero are cut.
        adjoint_size: size of the images for the adjoint map; None for the convolution itself.
    """

    stride: Pair
    padding: Pair
    relu: bool = False
    adjoint_size: Pair | None = None
