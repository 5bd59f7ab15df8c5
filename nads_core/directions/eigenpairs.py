"""Eigenpairs of the second moment, one symmetry type after another, each with its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nads_core.directions.certificates import Band, Certificates
from nads_core.directions.covariance import FLOOR, debias, gram_eigenpairs, leading_eigenpairs
from nads_core.directions.first_networks import FirstNetworks, share_variances, unseen_energies
from nads_core.directions.moments import DenseMoments, GramMoments
from nads_core.directions.symmetry import SymmetryType, symmetry_types
from nads_core.directions.uncertainty import Certificate, Rest, certify
from nads_core.runtime.seeds import seeded

_CERTIFIED = 2_048  # ranks of one type; none has ever been known that far down
_NEIGHBOURS = 32  # on the Gram side: eigenpairs beyond those asked for, with which the last of these can mix
_CROSSINGS = 64  # draws of the order of eigenvalues of different types
_OVERSAMPLED = 16
_NOTHING = 1e-9  # of the energy along all directions
HEAVY = 0.15  # effective share of networks below which a few of them hold the second moment (benchmarks/heavy_tails.py)


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
    growth: float = 1,
    effective_share: float = 1,
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
        growth: for how many times as many networks to make out certificates, see `certify`.
        effective_share: of the networks, see `first_networks.effective_share`. Below `HEAVY` the variances that the
            networks show miss most of what a few others would change. Certificates are then those of the first networks
            with each vector divided by its norm, for the effective number of networks: as if the norm of a network's
            vector said nothing about its direction.
    """
    found, debiasing = _of_types(moments, first, count, image_shape, debiasing, symmetries, growth)
    if effective_share < HEAVY:
        alike = first.normalised()
        summed = moments.empty()
        halves = alike.halves().flatten(0, 1).to(moments.device)  # (n * R, 2, D)
        summed.update(halves if alike.num_contributions > 1 else halves[:, :1])
        effective = effective_share * growth * moments.num_networks / summed.num_networks
        supported = _of_types(summed, alike, count, image_shape, debiasing, symmetries, effective)[0]
        effective *= len(first.halves())
        found = [_supported(one, other, effective) for one, other in zip(found, supported, strict=True)]
    return _joined(found, count, debiasing)


def _supported(found: _OfType, normalised: _OfType, effective: float) -> _OfType:
    """Return eigenpairs with the certificate of normalised networks, and errors in the units of ``found``."""
    certificate, values = normalised.certificate, found.eigenvalues.double().cpu()
    count = min(len(values), len(normalised.eigenvalues))
    expected = normalised.eigenvalues[:count].double().cpu()
    expected = expected * values[:count].sum() / expected.sum().clamp(min=1e-300)
    certificate = certificate.until(count).extended(len(values))
    error = certificate.eigenvalue_std * float(
        values[:count].sum() / normalised.eigenvalues[:count].sum().clamp(min=1e-300)
    )
    off = (values[:count] - expected).square() + values[:count].square() / effective
    error[:count] = (error[:count].square() + off).sqrt()
    return replace(found, certificate=replace(certificate, eigenvalue_std=error))


def _of_types(
    moments: DenseMoments | GramMoments,
    first: FirstNetworks,
    count: int,
    image_shape: tuple[int, ...],
    debiasing: str,
    symmetries: tuple[str, ...],
    growth: float,
) -> tuple[list[_OfType], str]:
    """Return the leading eigenpairs of each type, and how they were debiased."""
    if isinstance(moments, GramMoments):
        return _from_vectors(moments, first, count, debiasing, growth)
    seen, noise = moments.moments()  # (D, D) each
    if not noise.any():
        debiasing = "none"  # one contribution a network: there is no noise to tell apart
    return [
        _of_type(kind, seen, noise, moments, first, count, debiasing, growth)
        for kind in symmetry_types(tuple(image_shape), tuple(symmetries))
    ], debiasing


def _of_type(
    kind: SymmetryType,
    seen: Tensor,
    noise: Tensor,
    moments: DenseMoments,
    first: FirstNetworks,
    count: int,
    debiasing: str,
    growth: float,
) -> _OfType:
    """Return the leading eigenpairs of images of one type."""
    block, block_noise = kind.block(seen), kind.block(noise)  # (d, d) each
    count = min(count, len(block))
    coordinates = kind.coordinates(first.halves())  # (P, n, R, 2, d)
    basis = _spanned(block + block_noise, moments.num_networks * first.num_contributions * len(kind.bases))
    if basis is not None:  # (d, r): all else is zero
        block, block_noise = basis.T @ block @ basis, basis.T @ block_noise @ basis
    values, axes = leading_eigenpairs(debias(block, block_noise, debiasing), len(block))
    if debiasing != "subtract":
        values = values.clamp(min=0)  # semi-definite but for rounding
    noise_shares = (axes @ block_noise * axes).sum(1)  # (k,)
    levels = (axes @ block * axes).sum(1)
    # The floor of the shrinking is no measurement: it orders by the noise, and what comes after has no rank of its own
    nothing = _NOTHING * seen.trace() + (FLOOR * noise_shares if debiasing == "shrink" else 0)
    levels = levels - noise_shares
    uncertified = (levels <= nothing).nonzero()
    known = int(uncertified[0]) if len(uncertified) else len(levels)
    if debiasing == "none" and block_noise.any():
        known = 0  # directions of C + W, about those of C
    if basis is not None:
        axes = axes @ basis.T
    # A basis can be larger than what they span, and a type can be without energy
    shown = levels + noise_shares > max(
        1e-9 * float(levels[0] + noise_shares[0]), _NOTHING * 1e-3 * float(seen.trace())
    )
    used = axes[: min(_CERTIFIED, int(shown.sum()))].to(coordinates)
    rest = Rest()
    if len(used) < len(kind):
        unseen, unseen_noise = (0.0, 0.0) if basis is None else unseen_energies(coordinates)
        dimension = len(kind) - len(used)
        rest = Rest(
            dimension, unseen + float(levels[len(used) :].clamp(min=0).sum()) / dimension,
            unseen_noise + float(noise_shares[len(used) :].sum()) / dimension,
        )  # fmt: skip
    # Directions mix with those beside which the floor put them
    beside = levels if debiasing == "subtract" else values
    certificate = _certified(
        beside[: len(used)], noise_shares[: len(used)], coordinates @ used.T, moments.num_networks, first, rest,
        growth,
    ).until(known)  # fmt: skip
    values, axes = values[:count], axes[:count]
    if len(axes) < count:
        axes = torch.cat([axes, torch.linalg.qr(axes.T, mode="complete").Q.T[len(axes) : count]])
        values = torch.cat([values, values.new_zeros(count - len(values))])
    return _OfType(kind, values, kind.images(axes), certificate.extended(count))


def _certified(
    levels: Tensor,
    noise: Tensor,
    coordinates: Tensor,
    num_vectors: int,
    first: FirstNetworks,
    rest: Rest,
    growth: float,
) -> Certificate:
    """Certify directions in which the halves of the first networks have these coordinates, (P, n, R, 2, k)."""
    partners, _, readouts = coordinates.shape[:3]
    variances = share_variances(coordinates, first.num_contributions)
    # Readouts of one network count as networks in the moments, but not as independent ones
    return certify(levels, noise, variances, num_vectors / readouts, partners * readouts, rest, growth)


def _from_vectors(
    moments: GramMoments, first: FirstNetworks, count: int, debiasing: str, growth: float
) -> tuple[list[_OfType], str]:
    """Return the leading eigenpairs from vectors that were kept, of all types together."""
    means, spreads = moments.vectors()
    done = "subtract" if spreads and debiasing != "none" else "none"
    found, axes = gram_eigenpairs(means, spreads if done == "subtract" else [], count + _NEIGHBOURS)
    halves = first.halves()
    coordinates = (halves.to(axes) @ axes.T)[None]  # (1, n, R, 2, k)
    noise = (coordinates[..., 0, :] - coordinates[..., 1, :]).double().square().mean((0, 1, 2)) / 4  # (k,)
    power = sum(float(vectors.double().square().sum()) for vectors in means) / moments.num_networks
    power_noise = sum(float(vectors.double().square().sum()) for vectors in spreads) / moments.num_networks
    rest, dimension = Rest(), moments.dimension - len(axes)
    if dimension:
        unseen, unseen_noise = unseen_energies(halves[None])
        left = (power - power_noise - float(found.sum())) / dimension  # of what is seen, as much as is not found
        rest = Rest(dimension, max(left, unseen), max(power_noise / dimension, unseen_noise))
    levels = found if done == "subtract" else found - noise.to(found)
    certificate = _certified(levels, noise, coordinates, moments.num_networks, first, rest, growth)
    if done == "none" and spreads:
        certificate = certificate.until(0)  # directions of C + W, about those of C
    return [_OfType(symmetry_types((1,))[0], found[:count], [axes[:count]], certificate)], done


def _spanned(matrix: Tensor, num_vectors: int) -> Tensor | None:
    """Return an orthonormal basis (d, r) of what so few vectors span; None where that is most of the space."""
    rank = num_vectors + _OVERSAMPLED
    if rank > 0.75 * len(matrix):
        return None
    with seeded(0, matrix.device):
        start = torch.randn(len(matrix), rank, dtype=matrix.dtype, device=matrix.device)
    return torch.linalg.qr(matrix @ start).Q


def _joined(found: list[_OfType], count: int, debiasing: str) -> Eigenpairs:
    """Put the eigenpairs of all types in one order; those of partners, with equal eigenvalues, stand together."""
    places = sorted(
        (-value, number, rank, partner)
        for number, part in enumerate(found)
        for rank, value in enumerate(part.eigenvalues.tolist())
        for partner in range(len(part.images))
    )[:count]
    indices: dict[tuple[int, int], list[int]] = {}  # of each type and partner, by rank
    for index, (_, number, _, partner) in enumerate(places):
        indices.setdefault((number, partner), []).append(index)
    bands = []
    for (number, _), of_ranks in indices.items():
        certificate = found[number].certificate
        for start, end in certificate.bands:
            if len(inside := of_ranks[start:end]) > 1:  # as far as they were asked for
                bands.append(Band(tuple(inside), certificate.band_certainty(start, start + len(inside))))

    def of_each(name: str) -> Tensor:
        columns = [getattr(part.certificate, name).tolist() for part in found]
        return torch.tensor([columns[number][rank] for _, number, rank, _ in places])

    certificates = Certificates(
        tuple(found[number].kind.names[partner] for _, number, _, partner in places),
        of_each("certainty"), of_each("agreement"), of_each("eigenvalue_std"), _leading(found, places),
        tuple(sorted(bands, key=lambda band: band.indices)),
    )  # fmt: skip
    directions = torch.stack([found[number].images[partner][rank] for _, number, rank, partner in places])
    return Eigenpairs(torch.tensor([-value for value, _, _, _ in places]), directions, certificates, debiasing)


def _leading(found: list[_OfType], places: list[tuple[float, int, int, int]]) -> Tensor:
    """Return the expected overlap (n,) of the first directions up to each with the exact ones.

    Which names the exact first ones have is not certain either: eigenvalues of different types are drawn within their
    errors, and put in order.

    Args:
        found: of each type.
        places: minus the eigenvalue, number of the type, rank and partner, of each direction in order.
    """
    owners = [(number, partner) for number, part in enumerate(found) for partner in range(len(part.images))]
    of = torch.tensor([owners.index((number, partner)) for _, number, _, partner in places])  # (n,)
    ours = torch.nn.functional.one_hot(of, len(owners)).cumsum(0)  # (n, owners): how many of each among the first
    values = [part.eigenvalues.double() for part in found]
    errors = [  # as large as the eigenvalue where nothing is known of it
        torch.where(error.isnan(), value.cpu().abs(), error)
        for value, error in zip(
            values, (part.certificate.eigenvalue_std[: len(part.eigenvalues)] for part in found), strict=True
        )
    ]
    generator = torch.Generator().manual_seed(0)
    total = torch.zeros(len(places), dtype=torch.float64)
    for _ in range(_CROSSINGS):
        drawn = [
            (value.cpu() + error * torch.randn(len(value), generator=generator)).sort(descending=True).values
            for value, error in zip(values, errors, strict=True)
        ]
        label = torch.cat([torch.full((len(drawn[number]),), place) for place, (number, _) in enumerate(owners)])
        order = torch.cat([drawn[number] for number, _ in owners]).argsort(descending=True, stable=True)[: len(places)]
        exact = torch.nn.functional.one_hot(label[order], len(owners)).cumsum(0)  # (n, owners)
        for place, (number, _) in enumerate(owners):
            total += found[number].certificate.leading[ours[:, place], exact[:, place]]
    return total / _CROSSINGS / torch.arange(1, len(places) + 1)
