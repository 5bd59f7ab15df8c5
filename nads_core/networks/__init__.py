"""What is drawn: architectures as named values, and ensembles of many networks of one.

Ends at the network's output and its derivatives; which vectors are made of them is `directions`'. What trains them is
`training`'s.
"""

from nads_core.networks.architectures import (
    ARCHITECTURES,
    DENSENET121,
    LABELS,
    LENET,
    LOGREG,
    RESNET18,
    VGG11,
    Architecture,
)
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.initialisation import Initialisation
from nads_core.networks.threaded_ensemble import ThreadedEnsemble

__all__ = [
    "ARCHITECTURES", "DENSENET121", "LABELS", "LENET", "LOGREG", "RESNET18", "VGG11", "Architecture",
    "ThreadedEnsemble", "Ensemble", "Initialisation",
]  # fmt: skip
