"""Eigenpairs of the second moment, one symmetry type after another, each with its uncertainty."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from nads_core.directions.bulk import BulkSpectrum, count_before
from nads_core.directions.covariance import (
    FLOOR,
    debias,
    gram_eigenpairs,
    leading_eigenpairs,
    orthogonal_complement,
)
from nads_core.directions.moments import GramMoments, HalfSamples, Moments
from nads_core.directions.share_variance import share_variances, unseen_energies
from nads_core.directions.simulation import SampleSize, TypeUncertainty, estimate_uncertainty
from nads_core.directions.symmetry import SymmetryType, symmetry_types
from nads_core.directions.uncertainty import DirectionUncertainty
from nads_core.runtime.arguments import Shape
from nads_core.runtime.seeds import seeded
from nads_core.runtime.threads import threads_for

_SIMULATED = 2_048  # largest number of ranks simulated per type
# On the Gram side: eigenpairs beyond those asked for, with which the last of these can mix
_NEIGHBOURS = 32
_CROSSINGS = 64  # draws of the order of eigenvalues of different types
_EXTRA_COLUMNS = 16  # of the randomised range finder
_NEGLIGIBLE_SHARE = 1e-9  # of the energy along all directions
# Effective share of networks below which a few of them hold the second moment
# (benchmarks/heavy_tails.py)
HEAVY = 0.15


@dataclass(frozen=True)
class Eigenpairs:
    """Eigenpairs, and what was done to the moments.

    Args:
        eigenvalues: (n,), descending.
        directions: (n, D).
        uncertainty: uncertainty of each eigenpair.
        debiasing: debiasing that was applied; "none" where no noise was seen, never "shrink" on the
            Gram side.
    """

    eigenvalues: Tensor
    directions: Tensor
    uncertainty: DirectionUncertainty
    debiasing: str


@dataclass(frozen=True)
class _TypeEigenpairs:
    """Eigenpairs of one symmetry type: names of its partners, eigenvalues (k,), images of each
    partner (k, D).
    """

    names: tuple[str, ...]
    eigenvalues: Tensor
    images: list[Tensor]
    uncertainty: TypeUncertainty

    def with_uncertainty_of(self, unit: _TypeEigenpairs, num_effective: float) -> _TypeEigenpairs:
        """Return these eigenpairs with the uncertainty of networks of unit norm, whose errors of
        eigenvalues are brought to the scale of these.
        """
        values = self.eigenvalues.double().cpu()
        count = min(len(values), len(unit.eigenvalues))
        expected = unit.eigenvalues[:count].double().cpu()
        scale = values[:count].sum() / expected.sum().clamp(min=1e-300)
        uncertainty = unit.uncertainty.extended(len(values), known=count)
        error = uncertainty.eigenvalue_std * scale
        # The norms vary too: what they add to an eigenvalue, and the variance value^2 / N_effective
        # of their mean.
        known = values[:count]
        bias = (known - expected * scale).square() + known.square() / num_effective
        error[:count] = (error[:count].square() + bias).sqrt()
        return replace(self, uncertainty=replace(uncertainty, eigenvalue_std=error))


def _with_heavy_tails(problem: EigenProblem, types: list[_TypeEigenpairs]) -> list[_TypeEigenpairs]:
    """Return eigenpairs with the uncertainty of unit vectors of the first networks, for the
    effective number.

    This assumes that the norm of a network's vector is independent of its direction.
    """
    unit_networks, summed = problem.half_samples.normalised(), problem.moments.empty()
    halves = unit_networks.halves().flatten(0, 1)  # (n * R, 2, D)
    summed.update(halves[:, : unit_networks.num_halves])
    # N_effective = share * growth * N, of which the first networks are n
    growth = problem.effective_share * problem.growth * problem.moments.num_networks / len(halves)
    num_effective = growth * len(problem.half_samples.halves())
    of_unit_networks = replace(
        problem, moments=summed, half_samples=unit_networks, growth=growth
    ).solve()
    return [
        raw.with_uncertainty_of(other, num_effective)
        for raw, other in zip(types, of_unit_networks, strict=True)
    ]


class _Spectrum(NamedTuple):
    """Debiased eigenpairs of one symmetry type in the space that its networks span, in descending
    order.

    Args:
        eigenvalues: (r,), eigenvalues after debiasing.
        axes: (r, d), unit eigenvectors as rows.
        levels: (r,), M - W along each axis.
        noise: (r,), W along each axis.
    """

    eigenvalues: Tensor
    axes: Tensor
    levels: Tensor
    noise: Tensor


@dataclass(frozen=True)
class EigenProblem:
    """The leading eigenpairs of the second moment without the noise of finitely many inputs.

    Args:
        moments: moments of all networks.
        half_samples: first of these networks.
        count: number of eigenpairs; on the Gram side at most as many as have a positive eigenvalue.
        image_shape: shape of the input.
        debiasing: method of `covariance.debias`.
        symmetries: symmetries whose types are distinguished.
        effective_share: effective number of networks over their number, see `moments`. Below
            `HEAVY` the networks' own variances underestimate the effect of a few others; see
            `_with_heavy_tails`.
        growth: number of networks that uncertainties are about, over the number of these.
    """

    moments: Moments
    half_samples: HalfSamples
    count: int
    image_shape: Shape
    debiasing: str = "shrink"
    symmetries: tuple[str, ...] = ()
    effective_share: float = 1
    growth: float = 1

    def eigenpairs(self) -> Eigenpairs:
        """Return the eigenpairs of all types in one order."""
        problem = replace(self, debiasing=self._possible_debiasing())
        types = problem.solve()
        if self.effective_share < HEAVY:
            types = _with_heavy_tails(problem, types)
        return _in_one_order(types, self.count, problem.debiasing)

    def _possible_debiasing(self) -> str:
        """Return the debiasing for which the moments suffice: "none" where one contribution per
        network shows no noise, and no shrinking on the Gram side.
        """
        if isinstance(self.moments, GramMoments):
            _, spreads = self.moments.vectors()
            return "subtract" if spreads and self.debiasing != "none" else "none"
        _, noise_sum = self.moments.sums()
        return self.debiasing if noise_sum.any() else "none"

    def solve(self) -> list[_TypeEigenpairs]:
        """Return the leading eigenpairs of each type, with a debiasing that is possible."""
        if isinstance(self.moments, GramMoments):
            return [self._solve_gram(self.moments)]
        second_moment, noise_moment = self.moments.moments()  # (D, D) each
        types = symmetry_types(tuple(self.image_shape), tuple(self.symmetries))
        return [self._of_type(kind, second_moment, noise_moment) for kind in types]

    def _spectrum(self, block: Tensor, noise_block: Tensor, num_vectors: int) -> _Spectrum:
        """Return the eigenpairs of a type without the noise of finitely many inputs, of moments (d,
        d) of so many vectors.
        """
        basis = _spanned(block + noise_block, num_vectors)
        if basis is not None:  # (d, r): the moments are zero outside of it
            block, noise_block = basis.T @ block @ basis, basis.T @ noise_block @ basis
        values, axes = leading_eigenpairs(debias(block, noise_block, self.debiasing), len(block))
        if self.debiasing != "subtract":
            values = values.clamp(min=0)  # semi-definite but for rounding
        noise = (axes @ noise_block * axes).sum(1)  # (r,)
        levels = (axes @ block * axes).sum(1) - noise
        return _Spectrum(values, axes if basis is None else axes @ basis.T, levels, noise)

    def _of_type(
        self, kind: SymmetryType, second_moment: Tensor, noise_moment: Tensor
    ) -> _TypeEigenpairs:
        """Return the leading eigenpairs of a type, each with its uncertainty, of moments (D, D)."""
        num_vectors = self.half_samples.num_halves * self.moments.num_networks * len(kind.bases)
        with threads_for(len(kind)):
            block, noise_block = kind.block(second_moment), kind.block(noise_moment)  # (d, d) each
            values, axes, levels, noise = self._spectrum(block, noise_block, num_vectors)
        # Energy along one axis that rounding can explain
        negligible = _NEGLIGIBLE_SHARE * float(second_moment.trace())
        # Values at the shrinkage floor are not measured. Axes from there on are ordered by noise.
        floor = negligible + (FLOOR * noise if self.debiasing == "shrink" else 0)
        measured = count_before(levels <= floor)
        if self.debiasing == "none" and noise_block.any():
            measured = 0  # these are directions of C + W and not of C
        # A basis can be larger than the span of the networks, and a type can be without energy
        spanned = levels + noise > max(1e-9 * float(levels[0] + noise[0]), 1e-3 * negligible)
        used = min(_SIMULATED, int(spanned.sum()))
        halves = kind.coordinates(self.half_samples.halves())  # (P, n, R, 2, d)
        bulk, remaining = BulkSpectrum(), len(kind) - used
        if remaining:  # the other axes, and what the networks do not span
            complete = len(axes) == len(kind)
            unseen, unseen_noise = (0.0, 0.0) if complete else unseen_energies(halves)
            rest = float(levels[used:].clamp(min=0).sum()), float(noise[used:].sum())
            bulk = BulkSpectrum(
                remaining, unseen + rest[0] / remaining, unseen_noise + rest[1] / remaining
            )
        # Of M - W also where it is shrunk: that keeps the axes, and the eigenvalues above the
        # floor, which the levels below it have shifted.
        uncertainty = self._uncertainty(
            levels[:used], noise[:used], halves @ axes[:used].to(halves).T, bulk
        )
        count = min(self.count, len(kind))
        values, axes = _completed(values[:count], axes[:count], count)
        uncertainty = uncertainty.extended(known=measured).extended(count)
        return _TypeEigenpairs(kind.names, values, kind.images(axes), uncertainty)

    def _uncertainty(
        self,
        levels: Tensor,
        noise: Tensor,
        coordinates: Tensor,
        bulk: BulkSpectrum,
    ) -> TypeUncertainty:
        """Return how far directions are known, from coordinates (P, n, R, 2, k) of the first
        networks in them.
        """
        partners, stored, readouts = coordinates.shape[:3]
        num_networks = self.moments.num_networks / readouts
        variances = share_variances(coordinates)
        # Energies of the first networks, and what chance adds to those of all, (k,)
        first = (coordinates[..., 0, :].double() * coordinates[..., 1, :]).mean((0, 1, 2))
        chance = variances.diagonal() * max(0.0, 1 / stored - 1 / num_networks)
        return estimate_uncertainty(
            levels,
            noise,
            variances,
            # Readouts of one network count as networks in the moments, but not as independent ones
            SampleSize(num_networks, partners * readouts, self.growth),
            bulk,
            levels - (first + 3 * chance.sqrt()).to(levels),
        )

    def _solve_gram(self, moments: GramMoments) -> _TypeEigenpairs:
        """Return the leading eigenpairs from stored vectors, of all types together."""
        means, spreads = moments.vectors()
        subtracted = spreads if self.debiasing == "subtract" else []
        with threads_for(moments.num_networks):
            values, axes = gram_eigenpairs(means, subtracted, self.count + _NEIGHBOURS)
        halves = self.half_samples.halves()  # (n, R, 2, D)
        coordinates = (halves.to(axes) @ axes.T)[None]  # (1, n, R, 2, k)
        # The halves x and y of a network differ by their noise: W = E (x - y)^2 / 4 for their mean.
        differences = (coordinates[..., 0, :] - coordinates[..., 1, :]).double()
        noise = differences.square().mean((0, 1, 2)) / 4  # (k,)
        bulk, remaining = BulkSpectrum(), moments.dimension - len(axes)
        if remaining:
            power = _mean_energy(means, moments.num_networks)
            power_noise = _mean_energy(spreads, moments.num_networks)
            unseen, unseen_noise = unseen_energies(halves[None])
            # Energy outside of the eigenpairs
            level = (power - power_noise - float(values.sum())) / remaining
            bulk = BulkSpectrum(
                remaining, max(level, unseen), max(power_noise / remaining, unseen_noise)
            )
        levels = values if subtracted else values - noise.to(values)
        uncertainty = self._uncertainty(levels, noise, coordinates, bulk)
        if spreads and not subtracted:
            uncertainty = uncertainty.extended(known=0)  # directions of C + W, about those of C
        return _TypeEigenpairs(("",), values[: self.count], [axes[: self.count]], uncertainty)


def _mean_energy(blocks: list[Tensor], num_networks: int) -> float:
    """Return the sum of squares of vectors, per network."""
    return sum(float(vectors.double().square().sum()) for vectors in blocks) / num_networks


def _completed(values: Tensor, axes: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return ``count`` eigenvalues and orthonormal axes; missing ones have the value 0."""
    if len(axes) == count:
        return values, axes
    missing = count - len(axes)
    complement = orthogonal_complement(axes)[:missing]
    return torch.cat([values, values.new_zeros(missing)]), torch.cat([axes, complement])


def _spanned(matrix: Tensor, num_vectors: int) -> Tensor | None:
    """Return an orthonormal basis (d, r) of what so few vectors span; None where that is most of
    the space.
    """
    rank = num_vectors + _EXTRA_COLUMNS
    if rank > 0.75 * len(matrix):
        return None
    with seeded(0, matrix.device):
        start = torch.randn(len(matrix), rank, dtype=matrix.dtype, device=matrix.device)
    return torch.linalg.qr(matrix @ start).Q


class _Direction(NamedTuple):
    """One direction, by which all are ordered: descending eigenvalues, equal ones by type, rank and
    partner. Partners of all types are counted together.
    """

    minus_eigenvalue: float
    type: int
    rank: int
    partner: int


def _in_one_order(types: list[_TypeEigenpairs], count: int, debiasing: str) -> Eigenpairs:
    """Put the eigenpairs of all types in one order; those of partners, with equal eigenvalues,
    stand together.
    """
    names = [name for pairs in types for name in pairs.names]
    images = [image for pairs in types for image in pairs.images]
    kinds = [kind for kind, pairs in enumerate(types) for _ in pairs.names]  # of each partner
    order = sorted(
        _Direction(-value, kind, rank, partner)
        for partner, kind in enumerate(kinds)
        for rank, value in enumerate(types[kind].eigenvalues.tolist())
    )[:count]

    def ordered(measure: str) -> Tensor:
        """Return a measure of all directions, in their order."""
        values = [getattr(pairs.uncertainty, measure).tolist() for pairs in types]
        return torch.tensor([values[one.type][one.rank] for one in order])

    places = defaultdict[int, list[int]](list)  # indices of the directions of each partner
    for index, one in enumerate(order):
        places[one.partner].append(index)
    bands = [
        band
        for partner, indices in places.items()
        for band in types[kinds[partner]].uncertainty.clusters(indices)
    ]
    uncertainty = DirectionUncertainty(
        tuple(names[one.partner] for one in order),
        **{measure: ordered(measure) for measure in ("certainty", "agreement", "eigenvalue_std")},
        leading_certainty=_leading_certainty(types, kinds, [one.partner for one in order]),
        bands=tuple(sorted(bands, key=lambda band: band.indices)),
    )
    return Eigenpairs(
        torch.tensor([-one.minus_eigenvalue for one in order]),
        torch.stack([images[one.partner][one.rank] for one in order]),
        uncertainty,
        debiasing,
    )


def _leading_certainty(
    types: list[_TypeEigenpairs], kinds: list[int], partners: list[int]
) -> Tensor:
    """Return the expected overlap (n,) of the first directions up to each with the exact ones.

    The exact order is uncertain too, because errors of eigenvalues can swap directions of different
    types. With a_t of the first i directions found in type t, and e_t of the first i exact ones,
    the overlap is

        (1 / i) sum over types and partners t of leading_t[a_t, e_t],

    averaged over draws of the exact eigenvalues within their errors.

    Args:
        types: eigenpairs of each type.
        kinds: number of the type of each partner.
        partners: partner of each direction.
    """
    num_found = _counts(torch.tensor(partners), len(kinds))  # a, (n, partners)
    sizes = torch.tensor([len(types[kind].eigenvalues) for kind in kinds])
    exact = torch.arange(len(kinds)).repeat_interleave(sizes)  # partner of each exact direction
    generator = torch.Generator().manual_seed(0)
    total = torch.zeros(len(partners), dtype=torch.float64)
    for _ in range(_CROSSINGS):
        drawn = [_drawn_eigenvalues(pairs, generator) for pairs in types]
        values = torch.cat([drawn[kind] for kind in kinds])
        order = values.argsort(descending=True, stable=True)[: len(partners)]
        num_exact = _counts(exact[order], len(kinds))  # e, (n, partners)
        for partner, kind in enumerate(kinds):
            leading = types[kind].uncertainty.leading
            total += leading[num_found[:, partner], num_exact[:, partner]]
    return total / _CROSSINGS / torch.arange(1, len(partners) + 1)


def _counts(partner: Tensor, num_partners: int) -> Tensor:
    """Return how many of the first directions up to each belong to each partner: (n,) -> (n,
    num_partners).
    """
    return torch.nn.functional.one_hot(partner, num_partners).cumsum(0)


def _drawn_eigenvalues(pairs: _TypeEigenpairs, generator: torch.Generator) -> Tensor:
    """Draw eigenvalues (k,) within their errors, which are as large as the eigenvalue where nothing
    is known.
    """
    values = pairs.eigenvalues.double().cpu()
    errors = pairs.uncertainty.eigenvalue_std[: len(values)]
    errors = torch.where(errors.isnan(), values.abs(), errors)
    drawn = values + errors * torch.randn(len(values), generator=generator)
    return drawn.sort(descending=True).values
