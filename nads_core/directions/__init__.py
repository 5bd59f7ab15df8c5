"""From networks to neural anisotropy directions: estimators, second moments, eigenvectors.

A new estimator goes into `estimators`.
Directions that do not come from networks, such as waves, are in `nads_core.data`.
"""

from nads_core.directions.compute import compute_nads, second_moment
from nads_core.directions.eigenpairs import Band, Uncertainty
from nads_core.directions.estimators import (
    Dipole,
    Estimator,
    MixedDerivative,
    PointGradient,
    SmoothedGradient,
)
from nads_core.directions.moments import Energy
from nads_core.directions.nads import NADs, load_nads
from nads_core.directions.second_moment import SecondMoment

__all__ = [
    "NADs",
    "compute_nads",
    "load_nads",
    "second_moment",
    "Dipole",
    "MixedDerivative",
    "PointGradient",
    "SmoothedGradient",
    "Estimator",
    "Band",
    "Energy",
    "SecondMoment",
    "Uncertainty",
]
