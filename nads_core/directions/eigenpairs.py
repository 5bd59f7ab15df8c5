"""Eigenpairs of the second moment, one symmetry type after another, each with its uncertainty."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from nads_core.directions.covariance import (
    FLOOR,
    debias,
    gram_eigenpairs,
    leading_eigenpairs,
    shrunk_variance,
)
from nads_core.directions.moments import FirstNetworks, GramMoments, Moments
from nads_core.directions.share_variance import share_variances, unseen_energies
from nads_core.directions.symmetry import SymmetryType, symmetry_types
from nads_core.directions.uncertainty import (
    BulkSpectrum,
    DirectionUncertainty,
    TypeUncertainty,
    certify,
)
from nads_core.runtime.seeds import seeded
from nads_core.runtime.threads import threads_for

_SIMULATED = 2_048  # largest number of ranks simulated per type
_NEIGHBOURS = (
    32  # on the Gram side: eigenpairs beyond those asked for, with which the last of these can mix
)
_CROSSINGS = 64  # draws of the order of eigenvalues of different types
_EXTRA_COLUMNS = 16  # of the randomised range finder
_NEGLIGIBLE_SHARE = 1e-9  # of the energy along all directions
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
class _TypeEigenpairs:
    """Eigenpairs of one symmetry type: names of its partners, eigenvalues (k,), images of each partner (k, D)."""

    names: tuple[str, ...]
    eigenvalues: Tensor
    images: list[Tensor]
    uncertainty: TypeUncertainty


def find_eigenpairs(
    moments: Moments,
    first_networks: FirstNetworks,
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
        first_networks: first of these networks.
        count: number of eigenpairs; on the Gram side at most as many as have a positive eigenvalue.
        image_shape: shape of the input.
        debiasing: method of `covariance.debias`.
        symmetries: symmetries whose types are distinguished.
        growth: sample-size multiplier to extrapolate to, see `certify`.
        effective_share: effective share of the networks, see `moments.effective_share`. Below `HEAVY` the networks'
            own variances underestimate the effect of a few others. Uncertainties are then computed from unit vectors of
            the first networks and the effective number of networks. This assumes that the norm of a network's vector
            is independent of its direction.
    """
    problem = _Problem(moments, first_networks, count, image_shape, debiasing, symmetries, growth)
    types, debiasing = problem.solve()
    if effective_share < HEAVY:
        normalised, summed = first_networks.normalised(), moments.empty()
        halves = normalised.halves().flatten(0, 1)  # (n * R, 2, D)
        summed.update(halves if normalised.num_contributions > 1 else halves[:, :1])
        growth = effective_share * growth * moments.num_networks / len(halves)
        problem = replace(
            problem, moments=summed, first_networks=normalised, debiasing=debiasing, growth=growth
        )
        num_effective = growth * len(first_networks.halves())
        pairs = zip(types, problem.solve()[0], strict=True)
        types = [_with_uncertainty_of(raw, other, num_effective) for raw, other in pairs]
    return _joined(types, count, debiasing)


def _with_uncertainty_of(
    raw: _TypeEigenpairs, normalised: _TypeEigenpairs, num_effective: float
) -> _TypeEigenpairs:
    """Return eigenpairs with the uncertainty of normalised networks, and errors in the units of ``raw``."""
    values, count = (
        raw.eigenvalues.double().cpu(),
        min(len(raw.eigenvalues), len(normalised.eigenvalues)),
    )
    expected = normalised.eigenvalues[:count].double().cpu()
    unit = values[:count].sum() / expected.sum().clamp(min=1e-300)
    expected = expected * unit
    uncertainty = normalised.uncertainty.extended(len(values), known=count)
    error = uncertainty.eigenvalue_std * unit
    bias = (values[:count] - expected).square() + values[:count].square() / num_effective
    error[:count] = (error[:count].square() + bias).sqrt()
    return replace(raw, uncertainty=replace(uncertainty, eigenvalue_std=error))


class _Spectrum(NamedTuple):
    """Debiased eigenpairs of one symmetry type in the space that its networks span, in descending order.

    Args:
        eigenvalues: (r,), eigenvalues after debiasing.
        axes: (r, d), unit eigenvectors as rows.
        levels: (r,), M - W along each axis.
        noise: (r,), W along each axis.
        measured: number of leading axes whose levels are measurements.
        spanned: number of leading axes that the networks span.
        complete: whether the axes span all images of the type.
    """

    eigenvalues: Tensor
    axes: Tensor
    levels: Tensor
    noise: Tensor
    measured: int
    spanned: int
    complete: bool


@dataclass(frozen=True)
class _Problem:
    """Moments and the eigenpairs to find, see `find_eigenpairs`."""

    moments: Moments
    first_networks: FirstNetworks
    count: int
    image_shape: tuple[int, ...]
    debiasing: str
    symmetries: tuple[str, ...]
    growth: float

    def solve(self) -> tuple[list[_TypeEigenpairs], str]:
        """Return the leading eigenpairs of each type, and the debiasing that was applied."""
        if isinstance(self.moments, GramMoments):
            return self._solve_gram(self.moments)
        second_moment, noise_moment = self.moments.moments()  # (D, D) each
        # With one contribution per network its noise cannot be estimated
        problem = self if noise_moment.any() else replace(self, debiasing="none")
        types = symmetry_types(tuple(self.image_shape), tuple(self.symmetries))
        return [
            problem._of_type(kind, second_moment, noise_moment) for kind in types
        ], problem.debiasing

    def _spectrum(
        self, kind: SymmetryType, second_moment: Tensor, noise_moment: Tensor
    ) -> _Spectrum:
        """Return the eigenpairs of a type without the noise of finitely many inputs, of moments (D, D)."""
        # Energy along one axis that rounding can explain
        negligible = _NEGLIGIBLE_SHARE * second_moment.trace()
        block, noise_block = kind.block(second_moment), kind.block(noise_moment)  # (d, d) each
        num_vectors = (
            min(2, self.first_networks.num_contributions)
            * self.moments.num_networks
            * len(kind.bases)
        )
        basis = _spanned(block + noise_block, num_vectors)
        if basis is not None:  # (d, r): the moments are zero outside of it
            block, noise_block = basis.T @ block @ basis, basis.T @ noise_block @ basis
        values, axes = leading_eigenpairs(debias(block, noise_block, self.debiasing), len(block))
        if self.debiasing != "subtract":
            values = values.clamp(min=0)  # semi-definite but for rounding
        noise = (axes @ noise_block * axes).sum(1)  # (r,)
        levels = (axes @ block * axes).sum(1) - noise
        # Values at the shrinkage floor are not measured. Axes from there on are ordered by noise.
        floor = negligible + (FLOOR * noise if self.debiasing == "shrink" else 0)
        below = (levels <= floor).nonzero()
        measured = int(below[0]) if len(below) else len(levels)
        if self.debiasing == "none" and noise_block.any():
            measured = 0  # these are directions of C + W and not of C
        # A basis can be larger than the span of the networks, and a type can be without energy
        spanned = levels + noise > max(1e-9 * float(levels[0] + noise[0]), 1e-3 * float(negligible))
        axes = axes if basis is None else axes @ basis.T
        return _Spectrum(values, axes, levels, noise, measured, int(spanned.sum()), basis is None)

    def _of_type(
        self, kind: SymmetryType, second_moment: Tensor, noise_moment: Tensor
    ) -> _TypeEigenpairs:
        """Return the leading eigenpairs of a type, each with its uncertainty."""
        with threads_for(len(kind)):
            spectrum = self._spectrum(kind, second_moment, noise_moment)
        count, used = min(self.count, len(kind)), min(_SIMULATED, spectrum.spanned)
        coordinates = kind.coordinates(self.first_networks.halves())  # (P, n, R, 2, d)
        bulk, remaining = BulkSpectrum(), len(kind) - used
        if remaining:  # axes of unknown uncertainty, and what the networks do not span
            level, noise = (0.0, 0.0) if spectrum.complete else unseen_energies(coordinates)
            level += float(spectrum.levels[used:].clamp(min=0).sum()) / remaining
            bulk = BulkSpectrum(
                remaining, level, noise + float(spectrum.noise[used:].sum()) / remaining
            )
        # Shrinking puts a direction next to others with the same floor, and it mixes with these
        levels = spectrum.levels if self.debiasing == "subtract" else spectrum.eigenvalues
        coordinates = coordinates @ spectrum.axes[:used].to(coordinates).T
        kept = (
            shrunk_variance((spectrum.levels / spectrum.noise)[:used])
            if self.debiasing == "shrink"
            else None
        )
        uncertainty = self._uncertainty(
            levels[:used], spectrum.noise[:used], coordinates, bulk, kept
        )
        values, axes = spectrum.eigenvalues[:count], spectrum.axes[:count]
        if len(axes) < count:
            axes = torch.cat(
                [axes, torch.linalg.qr(axes.T, mode="complete").Q.T[len(axes) : count]]
            )
            values = torch.cat([values, values.new_zeros(count - len(values))])
        uncertainty = uncertainty.until(spectrum.measured).extended(count)
        return _TypeEigenpairs(kind.names, values, kind.images(axes), uncertainty)

    def _uncertainty(
        self,
        levels: Tensor,
        noise: Tensor,
        coordinates: Tensor,
        bulk: BulkSpectrum,
        kept: Tensor | None = None,
    ) -> TypeUncertainty:
        """Return how far directions are known, from coordinates (P, n, R, 2, k) of the first networks in them."""
        partners, _, readouts = coordinates.shape[:3]
        variances = share_variances(coordinates)
        # Readouts of one network count as networks in the moments, but not as independent ones
        num_networks = self.moments.num_networks / readouts
        return certify(
            levels, noise, variances, num_networks, partners * readouts, bulk, self.growth, kept
        )

    def _solve_gram(self, moments: GramMoments) -> tuple[list[_TypeEigenpairs], str]:
        """Return the leading eigenpairs from stored vectors, of all types together."""
        means, spreads = moments.vectors()
        debiasing = "subtract" if spreads and self.debiasing != "none" else "none"
        subtracted = spreads if debiasing == "subtract" else []
        with threads_for(moments.num_networks):
            values, axes = gram_eigenpairs(means, subtracted, self.count + _NEIGHBOURS)
        halves = self.first_networks.halves()
        coordinates = (halves.to(axes) @ axes.T)[None]  # (1, n, R, 2, k)
        noise = (coordinates[..., 0, :] - coordinates[..., 1, :]).double().square().mean(
            (0, 1, 2)
        ) / 4  # (k,)
        power, power_noise = (
            sum(float(vectors.double().square().sum()) for vectors in blocks) / moments.num_networks
            for blocks in (means, spreads)
        )
        bulk, remaining = BulkSpectrum(), moments.dimension - len(axes)
        if remaining:
            unseen, unseen_noise = unseen_energies(halves[None])
            level = (
                power - power_noise - float(values.sum())
            ) / remaining  # of the energy outside of the eigenpairs
            bulk = BulkSpectrum(
                remaining, max(level, unseen), max(power_noise / remaining, unseen_noise)
            )
        levels = values if debiasing == "subtract" else values - noise.to(values)
        uncertainty = self._uncertainty(levels, noise, coordinates, bulk)
        if debiasing == "none" and spreads:
            uncertainty = uncertainty.until(0)  # directions of C + W, about those of C
        return [
            _TypeEigenpairs(("",), values[: self.count], [axes[: self.count]], uncertainty)
        ], debiasing


def _spanned(matrix: Tensor, num_vectors: int) -> Tensor | None:
    """Return an orthonormal basis (d, r) of what so few vectors span; None where that is most of the space."""
    rank = num_vectors + _EXTRA_COLUMNS
    if rank > 0.75 * len(matrix):
        return None
    with seeded(0, matrix.device):
        start = torch.randn(len(matrix), rank, dtype=matrix.dtype, device=matrix.device)
    return torch.linalg.qr(matrix @ start).Q


# Of a direction: minus its eigenvalue, number of its type, rank in it, partner
_Place = tuple[float, int, int, int]


def _joined(types: list[_TypeEigenpairs], count: int, debiasing: str) -> Eigenpairs:
    """Put the eigenpairs of all types in one order; those of partners, with equal eigenvalues, stand together."""
    places = sorted(
        (-value, number, rank, partner)
        for number, part in enumerate(types)
        for rank, value in enumerate(part.eigenvalues.tolist())
        for partner in range(len(part.images))
    )[:count]
    indices: dict[tuple[int, int], list[int]] = {}  # of each type and partner, by rank
    for index, (_, number, _, partner) in enumerate(places):
        indices.setdefault((number, partner), []).append(index)
    bands = [
        band
        for (number, _), of_ranks in indices.items()
        for band in types[number].uncertainty.clusters(of_ranks)
    ]

    def of_each(name: str) -> Tensor:
        columns = [getattr(part.uncertainty, name).tolist() for part in types]
        return torch.tensor([columns[number][rank] for _, number, rank, _ in places])

    certificates = DirectionUncertainty(
        tuple(types[number].names[partner] for _, number, _, partner in places),
        of_each("certainty"), of_each("agreement"), of_each("eigenvalue_std"), _leading(types, places),
        tuple(sorted(bands, key=lambda band: band.indices)),
    )  # fmt: skip
    directions = torch.stack(
        [types[number].images[partner][rank] for _, number, rank, partner in places]
    )
    return Eigenpairs(
        torch.tensor([-place[0] for place in places]), directions, certificates, debiasing
    )


def _leading(types: list[_TypeEigenpairs], places: list[_Place]) -> Tensor:
    """Return the expected overlap (n,) of the first directions up to each with the exact ones.

    The exact order is uncertain too, because errors of eigenvalues can swap directions of different types. The overlap
    is averaged over draws of the eigenvalues within their errors.

    Args:
        types: eigenpairs of each type.
        places: place of each direction, in order.
    """
    owners = [
        (number, partner)
        for number, part in enumerate(types)
        for partner in range(len(part.images))
    ]
    # (n,)
    owner_of = torch.tensor([owners.index((number, partner)) for _, number, _, partner in places])
    # (n, owners): number of directions of each owner, a type and partner, among the first
    num_estimated = torch.nn.functional.one_hot(owner_of, len(owners)).cumsum(0)
    generator = torch.Generator().manual_seed(0)

    def draw(part: _TypeEigenpairs) -> Tensor:
        """Return eigenvalues (k,) within their errors, which are as large as the eigenvalue where nothing is known."""
        values = part.eigenvalues.double().cpu()
        errors = part.uncertainty.eigenvalue_std[: len(values)]
        errors = torch.where(errors.isnan(), values.abs(), errors)
        return (
            (values + errors * torch.randn(len(values), generator=generator))
            .sort(descending=True)
            .values
        )

    total = torch.zeros(len(places), dtype=torch.float64)
    for _ in range(_CROSSINGS):
        drawn = [draw(part) for part in types]
        owner = torch.cat(
            [torch.full((len(drawn[number]),), index) for index, (number, _) in enumerate(owners)]
        )
        order = torch.cat([drawn[number] for number, _ in owners]).argsort(
            descending=True, stable=True
        )[: len(places)]
        num_exact = torch.nn.functional.one_hot(owner[order], len(owners)).cumsum(0)  # (n, owners)
        for index, (number, _) in enumerate(owners):
            total += types[number].uncertainty.leading[num_estimated[:, index], num_exact[:, index]]
    return total / _CROSSINGS / torch.arange(1, len(places) + 1)
