"""What is known about directions, as NADs keep it: how certain each is, and which are told apart as bands alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

CERTAIN = 0.9  # from which on a direction, or the subspace of a band, counts as known
_MEASURES = ("certainty", "agreement", "eigenvalue_std", "leading_certainty")


@dataclass(frozen=True)
class DegenerateCluster:
    """Directions of one symmetry type that a run cannot tell apart.

    Args:
        indices: of the directions, two at least.
        certainty: of the subspace that they span: expected mean squared cosine of its principal angles with that of the
            directions of the same names, for infinitely many networks.
    """

    indices: tuple[int, ...]
    certainty: float


@dataclass(frozen=True, eq=False)
class DirectionUncertainty:
    """What a run knows about its directions, those of all types in one order.

    Args:
        types: of each direction, how the symmetries change it, as `SymmetryType.names` has them.
        certainty: (n,), expected squared cosine of each with the direction of the same type and rank for infinitely
            many networks and inputs; 0 where the run says nothing about it.
        agreement: (n,), the same with that direction from another run of the same size. It exceeds the square of the
            certainty where both runs can mistake one direction for the same other.
        eigenvalue_std: (n,), root mean square of the eigenvalue's error; NaN where nothing is known of it.
        leading_certainty: (n,), expected overlap of the first directions up to each with the exact ones.
        bands: directions that are told apart from the others, but not from each other.
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
        ranks: Counter[str] = Counter()
        names = []
        for kind in self.types:
            names.append(f"{kind} {ranks[kind]}".strip())
            ranks[kind] += 1
        return tuple(names)

    def first(self, count: int) -> DirectionUncertainty:
        """Return the certificates of the first ``count`` directions, and of what lies among them of each band."""
        inside = [(tuple(i for i in band.indices if i < count), band.certainty) for band in self.bands]
        bands = tuple(DegenerateCluster(indices, certainty) for indices, certainty in inside if len(indices) > 1)
        measures = {name: getattr(self, name)[:count] for name in _MEASURES}
        return DirectionUncertainty(self.types[:count], bands=bands, **measures)

    def completed(self, count: int) -> DirectionUncertainty:
        """Return certificates for ``count`` directions, of which nothing is known about those that these lack."""
        size, missing = len(self), self.certainty.new_zeros(count - len(self))
        inside = torch.cat(
            [self.leading_certainty * torch.arange(1, size + 1), missing + size * self.leading_certainty[-1]]
        )
        return DirectionUncertainty(
            self.types + ("rest",) * len(missing), torch.cat([self.certainty, missing]),
            torch.cat([self.agreement, missing]), torch.cat([self.eigenvalue_std, missing + torch.nan]),
            inside / torch.arange(1, count + 1), self.bands,
        )  # fmt: skip

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what `from_arrays` reads, without Python objects."""
        bands = json.dumps([[list(band.indices), band.certainty] for band in self.bands])
        measures = {name: getattr(self, name).cpu().numpy() for name in _MEASURES}
        return {"types": np.array(self.types), "bands": np.array(bands), **measures}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> DirectionUncertainty:
        """Restore what `arrays` returned."""
        bands = tuple(
            DegenerateCluster(tuple(indices), certainty) for indices, certainty in json.loads(str(arrays["bands"]))
        )
        measures = {name: torch.from_numpy(arrays[name]) for name in _MEASURES}
        return cls(tuple(str(name) for name in arrays["types"]), bands=bands, **measures)
