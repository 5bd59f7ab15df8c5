"""Eigenpairs of the second moment, one symmetry type after another, each with its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from nads_core.directions.covariance import FLOOR, debias, gram_eigenpairs, leading_eigenpairs
from nads_core.directions.moments import DenseMoments, FirstNetworks, GramMoments
from nads_core.directions.share_variance import share_variances, unseen_energies
from nads_core.directions.symmetry import SymmetryType, symmetry_types
from nads_core.directions.uncertainty import (
    BulkSpectrum,
    DegenerateCluster,
    DirectionUncertainty,
    TypeUncertainty,
    certify,
)
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
        certificates: uncertainty of each eigenpair.
        debiasing: debiasing that was applied; "none" where no noise was seen, never "shrink" on the Gram side.
    """

    eigenvalues: Tensor
    directions: Tensor
    certificates: DirectionUncertainty
    debiasing: str


@dataclass(frozen=True)
class _OfType:
    """Eigenpairs of one symmetry type: eigenvalues (k,), images of each partner (k, D), and what is known of them."""

    kind: SymmetryType
    eigenvalues: Tensor
    images: list[Tensor]
    certificate: TypeUncertainty


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
        moments: moments of all networks.
        first: the first of them.
        count: number of eigenpairs; fewer come back on the Gram side, where only those with a positive eigenvalue are
            known.
        image_shape: shape of the input.
        debiasing: debiasing of `covariance.debias`.
        symmetries: symmetries whose types are distinguished.
        growth: sample-size multiplier to extrapolate to, see `certify`.
        effective_share: of the networks, see `moments.effective_share`. Below `HEAVY` the variances that the
            networks show miss most of what a few others would change. Uncertainties are then those of the first
            networks
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
    second_moment, noise_moment = moments.moments()  # (D, D) each
    if not noise_moment.any():
        debiasing = "none"  # one contribution per network: its noise cannot be estimated
    types = []
    for kind in symmetry_types(tuple(image_shape), tuple(symmetries)):
        block = _project(kind, second_moment, noise_moment, moments.num_networks * first.num_contributions)
        spectrum = _debiased(block, debiasing, _NOTHING * second_moment.trace())
        types.append(_of_type(kind, block, spectrum, moments.num_networks, first, count, debiasing, growth))
    return types, debiasing


class _Block(NamedTuple):
    """The moments of one symmetry type, within the space that its networks span.

    Args:
        second_moment: (r, r).
        noise_moment: (r, r).
        basis: (d, r), orthonormal; None if it is the whole space of the type, r = d.
    """

    second_moment: Tensor
    noise_moment: Tensor
    basis: Tensor | None


class _Spectrum(NamedTuple):
    """Debiased eigenpairs of a block, in descending order.

    Args:
        eigenvalues: (r,), as debiasing leaves them.
        axes: (r, d), unit eigenvectors as rows.
        levels: (r,), M - W along each axis.
        noise: (r,), W along each axis.
        measured: number of leading axes whose levels are measurements.
        spanned: number of leading axes that the networks span.
    """

    eigenvalues: Tensor
    axes: Tensor
    levels: Tensor
    noise: Tensor
    measured: int
    spanned: int


def _project(kind: SymmetryType, second_moment: Tensor, noise_moment: Tensor, num_vectors: int) -> _Block:
    """Return the block of a symmetry type, of moments (D, D) from ``num_vectors`` vectors per partner."""
    block, noise = kind.block(second_moment), kind.block(noise_moment)  # (d, d) each
    basis = _spanned(block + noise, num_vectors * len(kind.bases))
    if basis is not None:  # (d, r): the moments are zero outside of it
        block, noise = basis.T @ block @ basis, basis.T @ noise @ basis
    return _Block(block, noise, basis)


def _debiased(block: _Block, debiasing: str, negligible: Tensor) -> _Spectrum:
    """Return the eigenpairs of a block without the noise of finitely many inputs.

    Args:
        block: moments of one type.
        debiasing: method of `covariance.debias`.
        negligible: (), energy along one axis that rounding can explain.
    """
    matrix = debias(block.second_moment, block.noise_moment, debiasing)
    values, axes = leading_eigenpairs(matrix, len(matrix))
    if debiasing != "subtract":
        values = values.clamp(min=0)  # semi-definite but for rounding
    noise = (axes @ block.noise_moment * axes).sum(1)  # (r,)
    levels = (axes @ block.second_moment * axes).sum(1)
    # The floor of the shrinking is no measurement: it orders by the noise, and all axes after it have no rank
    floor = negligible + (FLOOR * noise if debiasing == "shrink" else 0)
    levels = levels - noise
    below = (levels <= floor).nonzero()
    measured = int(below[0]) if len(below) else len(levels)
    if debiasing == "none" and block.noise_moment.any():
        measured = 0  # these are directions of C + W and not of C
    if block.basis is not None:
        axes = axes @ block.basis.T
    # A basis can be larger than the span of the networks, and a type can be without energy
    spanned = levels + noise > max(1e-9 * float(levels[0] + noise[0]), 1e-3 * float(negligible))
    return _Spectrum(values, axes, levels, noise, measured, int(spanned.sum()))


def _of_type(
    kind: SymmetryType,
    block: _Block,
    spectrum: _Spectrum,
    num_networks: int,
    first: FirstNetworks,
    count: int,
    debiasing: str,
    growth: float,
) -> _OfType:
    """Return the ``count`` leading eigenpairs of a type, or all, each with its certificate."""
    count = min(count, len(kind))
    coordinates = kind.coordinates(first.halves())  # (P, n, R, 2, d)
    used = spectrum.axes[: min(_CERTIFIED, spectrum.spanned)].to(coordinates)
    bulk = _bulk(spectrum, len(kind), len(used), None if block.basis is None else coordinates)
    # Shrinking puts a direction next to others with the same floor, and it mixes with these
    levels = spectrum.levels if debiasing == "subtract" else spectrum.eigenvalues
    certificate = _certified(
        levels[: len(used)], spectrum.noise[: len(used)], coordinates @ used.T, num_networks, first, bulk, growth
    ).until(spectrum.measured)
    values, axes = spectrum.eigenvalues[:count], spectrum.axes[:count]
    if len(axes) < count:
        axes = torch.cat([axes, torch.linalg.qr(axes.T, mode="complete").Q.T[len(axes) : count]])
        values = torch.cat([values, values.new_zeros(count - len(values))])
    return _OfType(kind, values, kind.images(axes), certificate.extended(count))


def _bulk(spectrum: _Spectrum, dimension: int, used: int, coordinates: Tensor | None) -> BulkSpectrum:
    """Return the mean energy and noise of a type beyond its first ``used`` axes.

    Args:
        spectrum: eigenpairs of the type.
        dimension: d, dimension of the type.
        used: number of axes that are certified.
        coordinates: (P, n, R, 2, d), halves of the first networks, if these do not span the type.
    """
    remaining = dimension - used
    if not remaining:
        return BulkSpectrum()
    level, noise = (0.0, 0.0) if coordinates is None else unseen_energies(coordinates)
    return BulkSpectrum(
        remaining, level + float(spectrum.levels[used:].clamp(min=0).sum()) / remaining,
        noise + float(spectrum.noise[used:].sum()) / remaining,
    )  # fmt: skip


def _certified(
    levels: Tensor,
    noise: Tensor,
    coordinates: Tensor,
    num_vectors: int,
    first: FirstNetworks,
    bulk: BulkSpectrum,
    growth: float,
) -> TypeUncertainty:
    """Certify directions in which the halves of the first networks have these coordinates, (P, n, R, 2, k)."""
    partners, _, readouts = coordinates.shape[:3]
    variances = share_variances(coordinates, first.num_contributions)
    # Readouts of one network count as networks in the moments, but not as independent ones
    return certify(levels, noise, variances, num_vectors / readouts, partners * readouts, bulk, growth)


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
    bulk, dimension = BulkSpectrum(), moments.dimension - len(axes)
    if dimension:
        unseen, unseen_noise = unseen_energies(halves[None])
        left = (power - power_noise - float(found.sum())) / dimension  # of what is seen, as much as is not found
        bulk = BulkSpectrum(dimension, max(left, unseen), max(power_noise / dimension, unseen_noise))
    levels = found if done == "subtract" else found - noise.to(found)
    certificate = _certified(levels, noise, coordinates, moments.num_networks, first, bulk, growth)
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


class _Place(NamedTuple):
    """Place of a direction in the order of all types, which sorts by its fields.

    Args:
        negative_eigenvalue: minus its eigenvalue.
        kind: number of its symmetry type.
        rank: rank within the type.
        partner: number of the partner.
    """

    negative_eigenvalue: float
    kind: int
    rank: int
    partner: int


def _joined(found: list[_OfType], count: int, debiasing: str) -> Eigenpairs:
    """Put the eigenpairs of all types in one order; those of partners, with equal eigenvalues, stand together."""
    places = sorted(
        _Place(-value, number, rank, partner)
        for number, part in enumerate(found)
        for rank, value in enumerate(part.eigenvalues.tolist())
        for partner in range(len(part.images))
    )[:count]
    indices: dict[tuple[int, int], list[int]] = {}  # of each type and partner, by rank
    for index, place in enumerate(places):
        indices.setdefault((place.kind, place.partner), []).append(index)
    bands = []
    for (number, _), of_ranks in indices.items():
        certificate = found[number].certificate
        for start, end in certificate.bands:
            if len(inside := of_ranks[start:end]) > 1:  # as far as they were asked for
                bands.append(DegenerateCluster(tuple(inside), certificate.band_certainty(start, start + len(inside))))

    def of_each(name: str) -> Tensor:
        columns = [getattr(part.certificate, name).tolist() for part in found]
        return torch.tensor([columns[place.kind][place.rank] for place in places])

    certificates = DirectionUncertainty(
        tuple(found[place.kind].kind.names[place.partner] for place in places),
        of_each("certainty"), of_each("agreement"), of_each("eigenvalue_std"), _leading(found, places),
        tuple(sorted(bands, key=lambda band: band.indices)),
    )  # fmt: skip
    directions = torch.stack([found[place.kind].images[place.partner][place.rank] for place in places])
    return Eigenpairs(
        torch.tensor([-place.negative_eigenvalue for place in places]), directions, certificates, debiasing
    )


def _leading(found: list[_OfType], places: list[_Place]) -> Tensor:
    """Return the expected overlap (n,) of the first directions up to each with the exact ones.

    Which names the exact first ones have is not certain either: eigenvalues of different types are drawn within their
    errors, and put in order.

    Args:
        found: of each type.
        places: place of each direction, in order.
    """
    owners = [(number, partner) for number, part in enumerate(found) for partner in range(len(part.images))]
    of = torch.tensor([owners.index((place.kind, place.partner)) for place in places])  # (n,)
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
