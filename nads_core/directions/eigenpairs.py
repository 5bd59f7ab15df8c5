"""Eigenpairs of the second moment, one symmetry type after another, each with its certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nads_core.directions.certainty import Certificate, FirstNetworks, certify, share_variances
from nads_core.directions.certificates import Band, Certificates
from nads_core.directions.covariance import FLOOR, debias, gram_eigenpairs, leading_eigenpairs
from nads_core.directions.moments import DenseMoments, GramMoments
from nads_core.directions.symmetry import SymmetryType, symmetry_types
from nads_core.machinery.seeds import seeded

_NEIGHBOURS = 32  # eigenpairs beyond those asked for, with which the last of these can mix
_CERTIFIED = 2_048  # ranks of one type; none has ever been known that far down
_OVERSAMPLED = 16
_NOTHING = 1e-9  # of the energy along all directions


@dataclass(frozen=True)
class Eigenpairs:
    """Eigenpairs, and what was done to the moments.

    Args:
        eigenvalues: (n,), descending.
        directions: (n, D).
        certificates: of each.
        debiasing: as it was done: "none" where no noise was seen, never "shrink" on the Gram side.
    """

    eigenvalues: Tensor
    directions: Tensor
    certificates: Certificates
    debiasing: str


@dataclass(frozen=True)
class _OfType:
    """Eigenpairs of one symmetry type: eigenvalues (k,), images of each partner (k, D), and what is known of them."""

    kind: SymmetryType
    eigenvalues: Tensor
    images: list[Tensor]
    certificate: Certificate


def find_eigenpairs(
    moments: DenseMoments | GramMoments,
    first: FirstNetworks,
    count: int,
    image_shape: tuple[int, ...],
    debiasing: str = "shrink",
    symmetries: tuple[str, ...] = (),
) -> Eigenpairs:
    """Return the leading eigenpairs of the second moment without the noise of finitely many inputs.

    Args:
        moments: of all networks.
        first: the first of them.
        count: how many eigenpairs; fewer come back on the Gram side, where only those with a positive eigenvalue are
            known.
        image_shape: of the input.
        debiasing: see `covariance.debias`.
        symmetries: whose types are told apart.
    """
    if isinstance(moments, GramMoments):
        means, spreads = moments.vectors()
        debiasing = "subtract" if spreads and debiasing != "none" else "none"
        values, directions = gram_eigenpairs(means, spreads if debiasing == "subtract" else [], count)
        kind = symmetry_types((1,))[0]
        variances = _variances(first, lambda halves: (halves.to(directions) @ directions.T)[None])
        certificate = certify(values, torch.zeros_like(values), variances, moments.num_networks, len(values))
        return _joined([_OfType(kind, values, [directions], certificate)], count, debiasing)
    seen, noise = moments.moments()  # (D, D) each
    if not noise.any():
        debiasing = "none"  # one contribution a network: there is no noise to tell apart
    found = [
        _of_type(kind, seen, noise, moments, first, count, debiasing)
        for kind in symmetry_types(tuple(image_shape), tuple(symmetries))
    ]
    return _joined(found, count, debiasing)


def _of_type(
    kind: SymmetryType,
    seen: Tensor,
    noise: Tensor,
    moments: DenseMoments,
    first: FirstNetworks,
    count: int,
    debiasing: str,
) -> _OfType:
    """Return the leading eigenpairs of images of one type."""
    block, block_noise = kind.block(seen), kind.block(noise)  # (d, d) each
    count = min(count, len(block))
    basis = _spanned(block + block_noise, moments.num_networks * first.num_contributions * len(kind.bases))
    if basis is not None:  # (d, r): all else is zero
        block, block_noise = basis.T @ block @ basis, basis.T @ block_noise @ basis
    values, axes = leading_eigenpairs(debias(block, block_noise, debiasing), count + _NEIGHBOURS)
    if debiasing != "subtract":
        values = values.clamp(min=0)  # semi-definite but for rounding
    noise_shares = (axes @ block_noise * axes).sum(1)  # (k,)
    levels = (axes @ block * axes).sum(1)
    if debiasing != "none":
        levels = levels - noise_shares
    if basis is not None:
        axes = axes @ basis.T
    certified = min(len(axes), _CERTIFIED)
    used = axes[:certified]
    variances = _variances(first, lambda halves: kind.coordinates(halves) @ used.T.to(halves))
    certificate = certify(
        levels[:certified], noise_shares[:certified], variances, moments.num_networks, min(count, certified)
    )
    nothing = _NOTHING * seen.trace() + (FLOOR * noise_shares if debiasing == "shrink" else 0)
    uncertified = levels <= nothing  # the floor of the shrinking is no measurement: it orders by the noise
    certificate = certificate.without(uncertified[: len(certificate.certainty)].cpu())
    values, axes = values[:count], axes[:count]
    if len(axes) < count:
        axes = torch.cat([axes, torch.linalg.qr(axes.T, mode="complete").Q.T[len(axes) : count]])
        values = torch.cat([values, values.new_zeros(count - len(values))])
    return _OfType(kind, values, kind.images(axes), certificate.extended(count))


def _variances(first: FirstNetworks, coordinates: Callable[[Tensor], Tensor]) -> Tensor:
    """Return V (k, k) in a basis, in which ``coordinates`` writes the halves (n, R, 2, D) as (P, n, R, 2, k)."""
    return share_variances(coordinates(first.halves()), first.num_contributions)


def _spanned(matrix: Tensor, num_vectors: int) -> Tensor | None:
    """Return an orthonormal basis (d, r) of what so few vectors span; None where that is most of the space."""
    rank = num_vectors + _OVERSAMPLED
    if rank > 0.75 * len(matrix):
        return None
    with seeded(0, matrix.device):
        start = torch.randn(len(matrix), rank, dtype=matrix.dtype, device=matrix.device)
    values, vectors = torch.linalg.eigh((product := matrix @ start).T @ product)
    if not values[-1] > 0:
        return None  # vectors have no part of this type
    kept = values > 1e-12 * values[-1]
    return torch.linalg.qr(product @ vectors[:, kept]).Q


def _joined(found: list[_OfType], count: int, debiasing: str) -> Eigenpairs:
    """Put the eigenpairs of all types in one order; those of partners, with equal eigenvalues, stand together."""
    places = sorted(
        (-value, number, rank, partner)
        for number, part in enumerate(found)
        for rank, value in enumerate(part.eigenvalues.tolist())
        for partner in range(len(part.images))
    )[:count]
    indices: dict[tuple[int, int], list[int]] = {}  # of each type and partner, by rank
    leading, inside = [], 0.0
    for index, (_, number, rank, partner) in enumerate(places):
        indices.setdefault((number, partner), []).append(index)
        known = found[number].certificate.leading  # of the first ranks of this type
        inside += float((rank + 1) * known[rank] - (rank and rank * known[rank - 1]))
        leading.append(inside / (index + 1))
    bands = [
        Band(tuple(indices.get(place, [])[slice(*ranks)]), certainty)
        for place in indices
        for *ranks, certainty in found[place[0]].certificate.bands
    ]

    def of_each(name: str) -> Tensor:
        columns = [getattr(part.certificate, name).tolist() for part in found]
        return torch.tensor([columns[number][rank] for _, number, rank, _ in places])

    certificates = Certificates(
        tuple(found[number].kind.names[partner] for _, number, _, partner in places),
        of_each("certainty"), of_each("agreement"), of_each("eigenvalue_std"), torch.tensor(leading),
        tuple(sorted((band for band in bands if len(band.indices) > 1), key=lambda band: band.indices)),
    )  # fmt: skip
    directions = torch.stack([found[number].images[partner][rank] for _, number, rank, partner in places])
    return Eigenpairs(torch.tensor([-value for value, _, _, _ in places]), directions, certificates, debiasing)
