"""Architectures as named values, and the networks of a factory by number.

This subpackage ends at the outputs of networks and their derivatives. `directions` turns these into
vectors, and `training` trains the networks.
"""

from nads_core.networks.architectures import (
    ARCHITECTURES,
    DENSENET121,
    LENET,
    LOGREG,
    RESNET18,
    VGG11,
    Architecture,
)
from nads_core.networks.network import Network, Networks

__all__ = [
    "ARCHITECTURES",
    "DENSENET121",
    "LENET",
    "LOGREG",
    "RESNET18",
    "VGG11",
    "Architecture",
    "Network",
    "Networks",
]
