"""From networks to neural anisotropy directions: estimators, second moments, eigenvectors.

A new estimator goes into `estimators`. Directions that do not come from networks, such as waves, are
`data`'s; what directions predict is `evidence`'s.
"""

from nads_core.directions.certificates import Band, Certificates
from nads_core.directions.compute import DENSE_LIMIT, compute_nads
from nads_core.directions.estimators import (
    Dipole,
    Draw,
    Estimator,
    MixedDerivative,
    Passes,
    PointGradient,
    SmoothedGradient,
)
from nads_core.directions.forecast import Forecast, forecast
from nads_core.directions.nads import NADs, load_nads

__all__ = [
    "DENSE_LIMIT",
    "Band",
    "Certificates",
    "Dipole",
    "Draw",
    "Estimator",
    "Forecast",
    "MixedDerivative",
    "NADs",
    "Passes",
    "PointGradient",
    "SmoothedGradient",
    "compute_nads",
    "forecast",
    "load_nads",
]
