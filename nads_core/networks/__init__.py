"""Architectures as named values, and ensembles that evaluate many networks of one architecture.

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
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.initialisation import Initialisation
from nads_core.networks.threaded import ThreadedEnsemble

__all__ = [
    "ARCHITECTURES",
    "DENSENET121",
    "LENET",
    "LOGREG",
    "RESNET18",
    "VGG11",
    "Architecture",
    "ThreadedEnsemble",
    "Ensemble",
    "Initialisation",
]
