"""Eigenpairs of all symmetry types in one order, with what is known of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from nads_core.directions.certainty import CERTAIN, TypeEigenpairs, of_all, solve_type
from nads_core.directions.symmetry import SymmetryType
from nads_core.runtime.threads import threads_for

_DRAWS = 64  # of the exact eigenvalues, within their errors


class Band(NamedTuple):
    """Directions of one symmetry type that a run cannot distinguish from each other.

    Args:
        indices: indices of the directions, at least two.
        certainty: certainty of the subspace that they span: expected mean squared cosine of its
            principal angles with that of the directions of the same names, for infinitely many
            networks.
    """

    indices: tuple[int, ...]
    certainty: float


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """What a run knows about its directions, those of all types in one order.

    Args:
        types: type of each direction, from `SymmetryType.names`.
        certainty: (n,), expected squared cosine of each with the direction of the same type and
            rank for infinitely many networks and inputs; 0 where it is not known.
        eigenvalue_std: (n,), standard error of the eigenvalue; NaN where nothing is known of it.
        leading_certainty: (n,), expected overlap of the first directions up to each with the exact
            ones.
        bands: directions that are distinguished from the others, but not from each other.
    """

    types: tuple[str, ...]
    certainty: Tensor
    eigenvalue_std: Tensor
    leading_certainty: Tensor
    bands: tuple[Band, ...] = ()

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

    def first(self, count: int) -> Uncertainty:
        """Return the uncertainty of the first ``count`` directions, with the bands that they
        contain.
        """
        return Uncertainty(
            self.types[:count],
            self.certainty[:count],
            self.eigenvalue_std[:count],
            self.leading_certainty[:count],
            tuple(band for band in self.bands if max(band.indices) < count),
        )


class _Direction(NamedTuple):
    """One direction, by which all are ordered: descending eigenvalues, equal ones by type, rank and
    partner. Partners of all types are counted together.
    """

    minus_eigenvalue: float
    type: int
    rank: int
    partner: int


def eigenpairs(
    blocks: list[Tensor], kinds: list[SymmetryType], num_networks: int, unit: float
) -> tuple[Tensor, Tensor, Uncertainty]:
    """Return the eigenpairs of all types, descending, with their uncertainty.

    Args:
        blocks: shares of the groups in the second moment of each type, (8, d, d), over ``unit``.
        kinds: the types.
        num_networks: number of networks.
        unit: factor of the blocks.

    Returns:
        Eigenvalues (n,) in float64, unit directions (n, D), and their uncertainty.
    """
    types = []
    for block in blocks:
        with threads_for(block.shape[-1]):
            types.append(solve_type(block, num_networks))
    partners = [kind for kind, symmetry in enumerate(kinds) for _ in symmetry.names]
    names = [name for symmetry in kinds for name in symmetry.names]
    order = sorted(
        _Direction(-value, kind, rank, partner)
        for partner, kind in enumerate(partners)
        for rank, value in enumerate(types[kind].values.tolist())
    )
    images = [
        image
        for symmetry, pairs in zip(kinds, types, strict=True)
        for image in symmetry.images(pairs.axes)
    ]
    places: list[list[int]] = [[] for _ in partners]
    for index, one in enumerate(order):
        places[one.partner].append(index)
    bands = [
        Band(tuple(indices[start:end]), share)
        for indices, kind in zip(places, partners, strict=True)
        for start, end, share in types[kind].bands()
    ]
    uncertainty = Uncertainty(
        tuple(names[one.partner] for one in order),
        torch.stack([types[one.type].certainty[one.rank] for one in order]),
        unit * torch.stack([types[one.type].std[one.rank] for one in order]),
        _leading_certainty(types, partners, [one.partner for one in order]),
        tuple(sorted(bands)),
    )
    values = unit * torch.tensor([-one.minus_eigenvalue for one in order], dtype=torch.float64)
    directions = torch.stack([images[one.partner][one.rank] for one in order])
    return values, directions, uncertainty


def _leading_certainty(
    types: list[TypeEigenpairs], partners: list[int], found: list[int]
) -> Tensor:
    """Return the expected overlap (n,) of the first directions up to each with the exact ones.

    Errors of eigenvalues can swap directions of different types. With a_t of the first i directions
    found in type t, and e_t of the first i exact ones, the overlap is

        (1 / i) sum over types and partners t of blocks_t[a_t, e_t],

    averaged over draws of the exact eigenvalues within their errors.

    Args:
        types: eigenpairs of each type.
        partners: type of each partner.
        found: partner of each direction.
    """
    count = len(found)
    num_found = _counts(torch.tensor(found), len(partners))  # a, (n, partners)
    owners = torch.cat([torch.full((len(types[k].values),), p) for p, k in enumerate(partners)])
    generator, total = torch.Generator().manual_seed(0), torch.zeros(count, dtype=torch.float64)
    for _ in range(_DRAWS):
        drawn = [
            (
                pairs.values
                + pairs.std.nan_to_num() * torch.randn(len(pairs.std), generator=generator)
            )
            .sort(descending=True)
            .values
            for pairs in types
        ]
        exact = torch.cat([drawn[kind] for kind in partners]).argsort(descending=True, stable=True)
        num_exact = _counts(owners[exact[:count]], len(partners))  # e, (n, partners)
        for partner, kind in enumerate(partners):
            a, e = num_found[:, partner], num_exact[:, partner]
            least = torch.minimum(a, e).clamp(min=1)
            total += of_all(types[kind].blocks[a, e] / least) * least * (torch.minimum(a, e) > 0)
    return total / _DRAWS / torch.arange(1, count + 1)


def _counts(partner: Tensor, num_partners: int) -> Tensor:
    """Return how many of the first directions up to each belong to each partner: (n,) -> (n,
    num_partners).
    """
    return torch.nn.functional.one_hot(partner, num_partners).cumsum(0)
