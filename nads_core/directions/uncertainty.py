"""What a run knows about its directions: certainties, errors of eigenvalues, and bands, as results
and in files.

`simulation` computes them for each symmetry type, and `eigenpairs` puts the types in one order.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

CERTAIN = 0.9  # from which on a direction, or the subspace of a band, counts as known
_MEASURES = ("certainty", "agreement", "eigenvalue_std", "leading_certainty")


@dataclass(frozen=True)
class DegenerateCluster:
    """A band: directions of one symmetry type that a run cannot distinguish.

    Args:
        indices: indices of the directions, at least two.
        certainty: certainty of the subspace that they span: expected mean squared cosine of its
            principal angles with that of the directions of the same names, for infinitely many
            networks.
    """

    indices: tuple[int, ...]
    certainty: float


@dataclass(frozen=True, eq=False)
class DirectionUncertainty:
    """What a run knows about its directions, those of all types in one order.

    Args:
        types: type of each direction, from `SymmetryType.names`.
        certainty: (n,), expected squared cosine of each with the direction of the same type and
            rank for infinitely many networks and inputs; 0 where it is not known.
        agreement: (n,), the same with that direction from another run of the same size. It exceeds
            the square of the certainty where both runs can mistake one direction for the same
            other.
        eigenvalue_std: (n,), root mean square of the eigenvalue's error; NaN where nothing is known
            of it.
        leading_certainty: (n,), expected overlap of the first directions up to each with the exact
            ones.
        bands: directions that are distinguished from the others, but not from each other.
    """

    types: tuple[str, ...]
    certainty: Tensor
    agreement: Tensor
    eigenvalue_std: Tensor
    leading_certainty: Tensor
    bands: tuple[DegenerateCluster, ...]

    def __len__(self) -> int:
        return len(self.types)

    @property
    def num_certain(self) -> int:
        """How many directions are certain by 0.9, each of them."""
        return int((self.certainty >= CERTAIN).sum())

    @property
    def names(self) -> tuple[str, ...]:
        """Type and rank within it, such as "++s 3", which do not depend on the order of all."""
        ranks = {kind: itertools.count() for kind in self.types}
        return tuple(f"{kind} {next(ranks[kind])}".strip() for kind in self.types)

    def require_valid(self) -> None:
        """Raise a ValueError unless probabilities lie in [0, 1], errors are positive, and types can
        be printed.
        """
        for name in _MEASURES:
            values = getattr(self, name)
            if values.shape != (len(self),) or not values.is_floating_point():
                raise ValueError(
                    f"{name} is {values.dtype} {tuple(values.shape)}, expected {len(self)} numbers"
                )
            most = 1 + 1e-6
            if name == "eigenvalue_std":
                values, most = values.nan_to_num(), math.inf
            if not ((values >= 0) & (values <= most)).all():
                raise ValueError(
                    f"{name} has values from {float(values.min()):.3g} to {float(values.max()):.3g}"
                )
        for band in self.bands:
            inside = set(band.indices) <= set(range(len(self)))
            if not inside or not 0 <= band.certainty <= 1 + 1e-6:
                raise ValueError(f"band {band} is none of {len(self)} directions")
        if not all(kind.isprintable() for kind in self.types):
            raise ValueError(f"types {self.types[:3]} have characters that cannot be printed")

    def first(self, count: int) -> DirectionUncertainty:
        """Return the uncertainty of the first ``count`` directions, with the bands that they
        contain.

        The certainty of a band is that of its whole subspace, and says nothing of a part.
        """
        bands = tuple(band for band in self.bands if max(band.indices) < count)
        measures = {name: getattr(self, name)[:count] for name in _MEASURES}
        return DirectionUncertainty(self.types[:count], bands=bands, **measures)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what `from_arrays` reads, without Python objects."""
        bands = json.dumps([[list(band.indices), band.certainty] for band in self.bands])
        measures = {name: getattr(self, name).cpu().numpy() for name in _MEASURES}
        return {"types": np.array(self.types), "bands": np.array(bands), **measures}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> DirectionUncertainty:
        """Restore what `arrays` returned."""
        bands = [
            DegenerateCluster(tuple(indices), value)
            for indices, value in json.loads(str(arrays["bands"]))
        ]
        measures = {name: torch.from_numpy(arrays[name]) for name in _MEASURES}
        return cls(tuple(map(str, arrays["types"])), bands=tuple(bands), **measures)
