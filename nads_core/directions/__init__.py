"""From networks to neural anisotropy directions: estimators, second moments, eigenvectors.

A new estimator goes into `estimators`.
Directions that do not come from networks, such as waves, are in `nads_core.data`.
"""

from nads_core.directions.compute import compute_nads
from nads_core.directions.estimators import (
    Dipole,
    Draw,
    Estimator,
    MixedDerivative,
    Passes,
    PointGradient,
    SmoothedGradient,
)
from nads_core.directions.nads import NADs, load_nads
from nads_core.directions.options import ComputeOptions
from nads_core.directions.run import DENSE_LIMIT
from nads_core.directions.uncertainty import DegenerateCluster, DirectionUncertainty

__all__ = [
    "NADs",
    "compute_nads",
    "load_nads",
    "DENSE_LIMIT",
    "ComputeOptions",
    "Dipole",
    "MixedDerivative",
    "PointGradient",
    "SmoothedGradient",
    "Draw",
    "Estimator",
    "Passes",
    "DegenerateCluster",
    "DirectionUncertainty",
]
