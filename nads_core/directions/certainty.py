"""How far the eigenvectors of one symmetry type are known, from groups of networks.

The eigenvectors u_j of one half of the networks have squared coordinates Q_jk = E <u_j, e_k>^2 in
the exact ones e_k. Two independent halves then overlap by

    A_jk = E <u_j, v_k>^2 = sum_l Q_jl Q_kl,      so      Q = A^(1/2).

A is the mean over the splits of 8 groups into halves. From half of the networks to all of them a
share q of a squared length grows to q + (1 - q) q^2 / 2, which is exact near 1.

In d dimensions halves overlap by 1 / d by chance. Nothing is claimed of a type whose groups do not
contradict equal eigenvalues: B_k, the share of group k without its trace, then has mean 0, and is
about as likely as -B_k.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

GROUPS = 8
FEWEST_NETWORKS = 16  # from which on groups say something: two networks in each
CERTAIN = 0.9  # from which on a direction, or the subspace of a band, counts as known
_LEAST = 0.3  # certainty below which eight groups cannot tell it from chance
_EFFECTIVE = 4  # groups, of 8, that have to hold the energy of a direction
_FLAT = 6 / 128  # p-value above which the eigenvalues of a type may all be equal
_SPLITS = ((256, 35), (512, 7), (math.inf, 3))  # up to which dimension how many splits are taken
_LONGEST_BAND = 64
_EIGENVALUE = 0.6  # certainty of a direction from which on its eigenvalue has an error


@dataclass(frozen=True)
class TypeEigenpairs:
    """Eigenpairs of one symmetry type, in descending order.

    Args:
        values: (d,), eigenvalues.
        axes: (d, d), unit eigenvectors as rows.
        certainty: (d,), expected squared cosine of each with the exact one.
        std: (d,), root mean square error of each eigenvalue; NaN where its direction is uncertain.
        blocks: (d + 1, d + 1), sums of Q over the first j found and the first k exact directions.
        num_known: number of directions before the first one of which nothing is known.
    """

    values: Tensor
    axes: Tensor
    certainty: Tensor
    std: Tensor
    blocks: Tensor
    num_known: int = 0

    def bands(self) -> list[tuple[int, int, float]]:
        """Return (first, end, certainty) of runs of directions that are known together, but not one
        by one.
        """
        bands, start = [], 0
        certain = (self.certainty >= CERTAIN).tolist()
        while start < self.num_known:
            ends = torch.arange(start + 2, min(start + _LONGEST_BAND, self.num_known) + 1)
            inside = self.blocks[ends, ends] - self.blocks[start, ends]
            inside = inside - self.blocks[ends, start] + self.blocks[start, start]
            for end, share in zip(
                ends.tolist(), of_all(inside / (ends - start)).tolist(), strict=True
            ):
                if any(certain[start:end]):
                    break
                if share >= CERTAIN:
                    bands.append((start, end, share))
                    start = end - 1
                    break
            start += 1
        return bands


def of_all(share: Tensor) -> Tensor:
    """Return a share of a squared length for all networks from that for half of them."""
    share = share.clamp(0, 1)
    return share + (1 - share) * share**2 / 2


def solve_type(shares: Tensor, num_networks: int) -> TypeEigenpairs:
    """Return the eigenpairs of one symmetry type with their certainties.

    Args:
        shares: shares of the groups in the second moment of the type, (8, d, d), in any unit.
        num_networks: number of networks; below 16 nothing is claimed.
    """
    size, enough = shares.shape[-1], num_networks >= FEWEST_NETWORKS
    if enough:  # Q, and eigenvalues of half of the networks: first, as it takes most memory
        found, of_halves = half_coordinates(shares)
    values, axes = torch.linalg.eigh(shares.sum(0))
    values, axes = values.flip(0), axes.flip(1)  # descending; eigenvectors as columns
    if not enough:
        nothing = torch.zeros_like(values)
        blocks = values.new_zeros(size + 1, size + 1)
        return TypeEigenpairs(values, axes.T, nothing, nothing * torch.nan, blocks)
    certainty = of_all(found.diagonal())
    # Energies of the groups along each eigenvector, (8, d)
    energies = torch.stack([((share @ axes) * axes).sum(0) for share in shares])
    # A few networks may hold a direction: from the first one on along which the groups' energies
    # have an effective number below 4, or the eigenvalue is not positive, nothing is known
    positive = energies.clamp(min=0)
    effective = positive.sum(0).square() / positive.square().sum(0).clamp(min=1e-300)
    known = ((effective >= _EFFECTIVE) & (values > 0)).cummin(0).values
    certainty = certainty * known * (certainty >= _LEAST) * (size == 1 or _differs(shares))
    # An eigenvalue has a bias that falls as 1 / N, so it is as large as what halving N adds
    std = (standard_errors(energies, num_networks).square() + (of_halves - values).square()).sqrt()
    std = torch.where(certainty >= _EIGENVALUE, std, torch.nan)
    # Noise of A is largest on the diagonal of its root: the neighbours say how far directions mix
    if size > 2:
        beside = found.diagonal(1)
        mixed = torch.cat([beside[:1], (beside[1:] + beside[:-1]) / 2, beside[-1:]])
        found.diagonal().copy_(torch.where(certainty < _LEAST, mixed, found.diagonal()))
    blocks = torch.nn.functional.pad(found.mul_(known).cumsum_(0).cumsum_(1), (1, 0, 1, 0))
    return TypeEigenpairs(values, axes.T, certainty, std, blocks, int(known.sum()))


def _differs(shares: Tensor) -> bool:
    """Whether the groups contradict equal eigenvalues of the second moment of a type."""
    traces = shares.diagonal(dim1=1, dim2=2).sum(1)
    flat = shares.flatten(1)
    null = random_signs(flat @ flat.T - traces[:, None] * traces / shares.shape[-1])
    return bool((null >= null[0]).double().mean() <= _FLAT)


def random_signs(products: Tensor) -> Tensor:
    """Return sum_kl s_k s_l P_kl without the terms k = l for all signs s of the groups, (8, 8) ->
    (128,); the first is that of the networks, with s = 1.
    """
    signs = products.new_tensor(list(itertools.product((1.0, -1.0), repeat=GROUPS - 1)))
    signs = torch.nn.functional.pad(signs, (1, 0), value=1.0)  # (128, 8)
    return ((signs @ products) * signs).sum(1) - products.trace()


def half_coordinates(shares: Tensor) -> tuple[Tensor, Tensor]:
    """Return Q (d, d) of the eigenvectors of half of the networks, and the mean of their
    eigenvalues (d,), from all splits of the groups into halves; from some where matrices are large.
    """
    overlap, values = torch.zeros_like(shares[0]), shares.new_zeros(len(shares[0]))
    splits = _splits(next(count for size, count in _SPLITS if len(values) <= size))
    for half in splits:
        one, other = (
            torch.linalg.eigh(sum(shares[group] for group in groups))  # without a copy of them
            for groups in (half, {*range(GROUPS)} - {*half})
        )
        overlap += (one[1].T @ other[1]).flip(0, 1).square_().div_(len(splits))
        values += (one[0] + other[0]).flip(0) / len(splits)  # of C: halves have half of the sum
        del one, other  # before the next ones
    levels, basis = torch.linalg.eigh((overlap + overlap.T) / 2)
    return (basis * levels.clamp(min=0).sqrt()) @ basis.T, values


def _splits(count: int) -> list[tuple[int, ...]]:
    """Return the halves that contain group 0 of so many splits: all 35; or of at most 7 of which any
    two have two groups of each half in common, by the parity of some bits of a group's number.
    """
    if count <= 7:
        return [
            tuple(group for group in range(GROUPS) if (group & bits).bit_count() % 2 == 0)
            for bits in (1, 2, 4, 3, 5, 6, 7)[:count]
        ]
    others = itertools.combinations(range(1, GROUPS), GROUPS // 2 - 1)
    return [(0, *rest) for rest in others]


def standard_errors(shares: Tensor, num_networks: int) -> Tensor:
    """Return the standard errors of sums over groups, (8, n) -> (n,): sqrt(8) times the standard
    deviation of the shares; NaN for fewer than 16 networks.
    """
    if num_networks < FEWEST_NETWORKS:
        return torch.full(shares.shape[1:], math.nan, dtype=shares.dtype)
    return shares.std(0) * GROUPS**0.5
