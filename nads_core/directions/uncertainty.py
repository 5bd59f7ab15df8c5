"""How far a direction is known: its expected squared cosine with the one of the same name for infinitely many networks.

The estimate of C from N networks errs by a symmetric matrix E with entries of variance V_jk / N in C's eigenbasis,
where V_jk is the variance of one network's share; it is measured on the first networks (`FirstNetworks`). The
eigenvectors of diag(levels) + E are simulated and their squared coordinates averaged. Three things would make that
overconfident: first-order perturbation, which diverges at small gaps; replicates that share their networks; and
eigenvalues of a sample, which repel each other. So the simulation draws E afresh and starts from levels that are
smoothed until the eigenvalues which it returns are on average those that were seen.

Only windows of neighbouring ranks are simulated. Mixing with ranks outside of a window is added in first order, and so
is mixing with the rest of the space, the bulk, whose energy is estimated from held-out networks (`BulkSpectrum`).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

CERTAIN = 0.9  # from which on a direction, or the subspace of a band, counts as known
_MEASURES = ("certainty", "agreement", "eigenvalue_std", "leading_certainty")
# Ranks simulated together, and of these on each side for the sake of the others
_WINDOW, _MARGIN = (
    48,
    9,
)
_DRAWS, _CORRECTIONS, _CORRECTION_DRAWS = 16, 3, 4
# Neighbours within a standard deviation, from which on few draws are enough
_CROWD, _FEW_DRAWS = (
    8.0,
    2,
)
_SMOOTHING = 1.5  # in standard deviations of an eigenvalue
_FEWEST_NETWORKS = 3  # number from which variances can be estimated


@dataclass(frozen=True)
class DegenerateCluster:
    """A band: directions of one symmetry type that a run cannot distinguish.

    Args:
        indices: indices of the directions, at least two.
        certainty: certainty of the subspace that they span: expected mean squared cosine of its principal angles with
            that of the directions of the same names, for infinitely many networks.
    """

    indices: tuple[int, ...]
    certainty: float


@dataclass(frozen=True, eq=False)
class DirectionUncertainty:
    """What a run knows about its directions, those of all types in one order.

    Args:
        types: type of each direction, from `SymmetryType.names`.
        certainty: (n,), expected squared cosine of each with the direction of the same type and rank for infinitely
            many networks and inputs; 0 where it is not known.
        agreement: (n,), the same with that direction from another run of the same size. It exceeds the square of the
            certainty where both runs can mistake one direction for the same other.
        eigenvalue_std: (n,), root mean square of the eigenvalue's error; NaN where nothing is known of it.
        leading_certainty: (n,), expected overlap of the first directions up to each with the exact ones.
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
        """Raise a ValueError unless probabilities lie in [0, 1], errors are positive, and types can be printed."""
        for name in _MEASURES:
            values = getattr(self, name)
            if values.shape != (len(self),) or not values.is_floating_point():
                raise ValueError(
                    f"{name} is {values.dtype} {tuple(values.shape)}, expected {len(self)} numbers"
                )
            known = values[~values.isnan()] if name == "eigenvalue_std" else values
            most = math.inf if name == "eigenvalue_std" else 1 + 1e-6
            if not ((known >= 0) & (known <= most)).all():
                raise ValueError(
                    f"{name} has values from {float(known.min()):.3g} to {float(known.max()):.3g}"
                )
        for band in self.bands:
            inside = all(
                isinstance(index, int) and 0 <= index < len(self) for index in band.indices
            )
            if not inside or not 0 <= band.certainty <= 1 + 1e-6:
                raise ValueError(f"band {band} is none of {len(self)} directions")
        if not all(kind.isprintable() for kind in self.types):
            raise ValueError(f"types {self.types[:3]} have characters that cannot be printed")

    def first(self, count: int) -> DirectionUncertainty:
        """Return the uncertainty of the first ``count`` directions, and of what lies among them of each band."""
        inside = [
            (tuple(i for i in band.indices if i < count), band.certainty) for band in self.bands
        ]
        bands = tuple(
            DegenerateCluster(indices, certainty)
            for indices, certainty in inside
            if len(indices) > 1
        )
        measures = {name: getattr(self, name)[:count] for name in _MEASURES}
        return DirectionUncertainty(self.types[:count], bands=bands, **measures)

    def completed(self, count: int) -> DirectionUncertainty:
        """Return the uncertainty of ``count`` directions, of which nothing is known about those that these lack."""
        # Numbers of values to add before and after
        size, missing = (
            len(self),
            (0, count - len(self)),
        )
        # Dimensions, which the others do not add to
        shared = self.leading_certainty * torch.arange(1, size + 1)
        of_all = self.certainty.new_full((missing[1],), float(shared[-1]))
        return DirectionUncertainty(
            self.types + ("rest",) * missing[1], pad(self.certainty, missing), pad(self.agreement, missing),
            pad(self.eigenvalue_std, missing, value=math.nan),
            torch.cat([shared, of_all]) / torch.arange(1, count + 1), self.bands,
        )  # fmt: skip

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


@dataclass(frozen=True)
class BulkSpectrum:
    """Spectrum of the part of the space in which no direction was found.

    Args:
        dimension: dimension of that part, m.
        level: mean of C's eigenvalues there.
        noise: mean variance of the inputs' noise there.
    """

    dimension: int = 0
    level: float = 0.0
    noise: float = 0.0

    def shrink(self, levels: Tensor, noise: Tensor, num_networks: float) -> tuple[Tensor, Tensor]:
        """Return squared cosines (k,) of eigenvectors with the space of the eigenpairs, and shifts (k,) of eigenvalues.

        Source: the spiked covariance model (Paul, Statistica Sinica 2007, theorems 1, 2 and 4). Below its transition an
        eigenvector shows nothing of its level.

        Args:
            levels: (k,), of C without the bulk.
            noise: (k,), of the inputs along the directions.
            num_networks: N, times the vectors over which the share of each is a mean.
        """
        edge, mixing = self._edge(noise, num_networks)
        gaps = torch.maximum(levels - self.level, edge).clamp(min=1e-300)
        retained = (1 - (edge / gaps).square()) / (1 + mixing / gaps)
        return retained.clamp(min=0), mixing + edge.square() / gaps

    def _edge(self, noise: Tensor, num_networks: float) -> tuple[Tensor, float]:
        """Return the gaps (k,) from the bulk's level below which nothing shows, and energy of the bulk per network."""
        mixing = self.dimension / num_networks * (self.level + self.noise)
        return (mixing * (self.level + noise)).clamp(min=0).sqrt(), mixing

    def detected(self, values: Tensor, noise: Tensor, num_networks: float) -> int:
        """Return how many of the first eigenvalues (k,) exceed what the bulk alone gives."""
        edge, mixing = self._edge(noise, num_networks)
        below = (values <= self.level + mixing + 2 * edge).nonzero()
        return int(below[0]) if len(below) else len(values)

    def invert_shrinkage(self, values: Tensor, noise: Tensor, num_networks: float) -> Tensor:
        """Return the levels (k,) that the bulk shifts to these values (k,); the bulk's own where none does."""
        if not self.dimension:
            return values
        edge, mixing = self._edge(noise, num_networks)
        half = (values - self.level - mixing) / 2  # gap^2 - 2 half gap + edge^2 = 0
        root = (half.square() - edge.square()).clamp(min=0).sqrt()
        gaps = (half + root).clamp(min=0)
        return torch.where(values > self.level, self.level + gaps, values)


@dataclass(frozen=True)
class TypeUncertainty:
    """What a run knows about the directions of one symmetry type.

    Args:
        certainty: (k,), expected squared cosine of each with the one of its rank for infinitely many networks.
        agreement: (k,), expected squared cosine with the one of its rank from another run of the same size. It exceeds
            the square of ``certainty`` where both runs can mistake one direction for the same other.
        eigenvalue_std: (k,), root mean square of eigenvalue minus true eigenvalue of that rank; NaN where nothing is
            known.
        leading: (k + 1, k + 1), dimensions that the first i found directions share with the first j exact ones.
        bands: (first rank, last rank + 1), each of them of two ranks at least.
    """

    certainty: Tensor
    agreement: Tensor
    eigenvalue_std: Tensor
    leading: Tensor
    bands: list[tuple[int, int]]

    def clusters(self, indices: list[int]) -> Iterator[DegenerateCluster]:
        """Yield the bands of directions with these indices, one for each rank as far as they were asked for."""
        for first, last in self.bands:
            if len(inside := tuple(indices[first:last])) > 1:
                last = first + len(inside)
                shared = (
                    self.leading[last, last] - self.leading[first, last] - self.leading[last, first]
                )
                yield DegenerateCluster(
                    inside, float(shared + self.leading[first, first]) / len(inside)
                )

    def until(self, rank: int) -> TypeUncertainty:
        """Return the uncertainty when nothing is claimed about ranks from this one on."""
        return self.extended(len(self.certainty), rank)

    def extended(self, count: int, known: int | None = None) -> TypeUncertainty:
        """Return the uncertainty of at least ``count`` ranks, of which only those before ``known`` are claimed.

        By default ``known`` is the number of ranks here.
        """
        size = len(self.certainty)
        known, count = size if known is None else min(known, size), max(count, size)
        missing = (0, count - known)  # numbers of values to add before and after
        # An unknown direction shares no dimension
        nearest = torch.arange(count + 1).clamp(max=known)
        bands = [(first, min(last, known)) for first, last in self.bands if first + 1 < known]
        return TypeUncertainty(
            pad(self.certainty[:known], missing), pad(self.agreement[:known], missing),
            pad(self.eigenvalue_std[:known], missing, value=math.nan), self.leading[nearest][:, nearest],
            [*bands, *([(known, count)] if count - known > 1 else [])],
        )  # fmt: skip


def certify(
    eigenvalues: Tensor,
    noise: Tensor,
    variances: Tensor,
    num_networks: float,
    num_averaged: int = 1,
    bulk: BulkSpectrum | None = None,
    growth: float = 1,
    kept: Tensor | None = None,
) -> TypeUncertainty:
    """Simulate how far the directions of a type are known.

    Args:
        eigenvalues: (k,), without the noise of inputs; about descending, as shrinking leaves them.
        noise: (k,), of the inputs along the directions.
        variances: V, (k, k).
        num_networks: N.
        num_averaged: partners times readouts, P R: number of vectors over which the share of a network is a mean.
        bulk: part of the space in which no direction was found.
        growth: sample-size multiplier to extrapolate to, with the levels that these networks show.
        kept: (k, k), share of the variances that remains after shrinking, see `shrunk_variance`; by default all.
    """
    values, noise = (
        eigenvalues.double().cpu().sort(descending=True).values,
        noise.double().cpu().clamp(min=0),
    )
    count, bulk = len(values), bulk or BulkSpectrum()
    while bulk.dimension and (
        known := bulk.detected(values, noise, num_networks * num_averaged)
    ) < len(values):
        # The others belong to the bulk
        bulk = replace(bulk, dimension=bulk.dimension + len(values) - known)
        values, noise, variances = values[:known], noise[:known], variances[:known, :known]
    if not len(values):
        leading, nothing = (
            torch.zeros(1, 1, dtype=torch.float64),
            torch.zeros(0, dtype=torch.float64),
        )
        return TypeUncertainty(nothing, nothing, nothing, leading, []).extended(count)
    power, independent = values.clamp(min=0) + noise, 1 / num_averaged  # see `_SamplingError`
    ratios = (variances.double().cpu() / power.outer(power).clamp(min=1e-300)).clamp(
        min=independent, max=50
    )
    ratios.diagonal().clamp_(min=2 * independent)
    if kept is not None:
        ratios *= kept[: len(values), : len(values)].cpu()
    model = _SamplingError(noise, ratios, num_networks, num_averaged, bulk)
    _, error, overlaps = model.simulated(model.true_levels(values), _DRAWS, 1, growth)
    if _may_be_equal(values, noise, num_networks / float(ratios.mean())):
        # Those of random directions
        overlaps = torch.full_like(overlaps, 1 / (len(values) + bulk.dimension))
    certainty = overlaps.mean(0)  # (k, k)
    # Of two simulated runs: a square would count one of them twice
    agreement = (overlaps[0] * overlaps[1]).sum(1)
    leading = pad(certainty.cumsum(0).cumsum(1), (1, 0, 1, 0))
    uncertainty = TypeUncertainty(
        certainty.diagonal(), agreement, error, leading, _bands(certainty)
    )
    return (uncertainty if num_networks >= _FEWEST_NETWORKS else uncertainty.until(0)).extended(
        count
    )


@dataclass(frozen=True)
class _SamplingError:
    """The error E of C from N networks, for any levels that C may have.

    A sample stretches its own spectrum, and the variances of a network's share with it. Their ratio to the power along
    two directions does not change; it is at least that of independent Gaussian numbers: 1 / num_averaged, and twice
    on the diagonal.

    Args:
        noise: (k,), variance of the inputs' noise along the directions.
        ratios: (k, k), variance V_jk of a network's share over p_j p_k, where p = levels + noise is the power.
        num_networks: N.
        num_averaged: number of vectors over which the share of a network is a mean.
        bulk: part of the space in which no direction was found.
    """

    noise: Tensor
    ratios: Tensor
    num_networks: float
    num_averaged: int
    bulk: BulkSpectrum

    def true_levels(self, values: Tensor) -> Tensor:
        """Return the levels (k,) whose simulated eigenvalues are on average these values (k,).

        Eigenvalues of a sample repel each other. So levels start from smoothed values, and each correction subtracts
        what the simulation adds on average.
        """

        def corrected(excess: Tensor | float, levels: Tensor) -> Tensor:
            visible = self.bulk.invert_shrinkage(
                values - excess, self.noise, self.num_networks * self.num_averaged
            )
            return _smoothed(visible, self._spread(levels))

        levels = corrected(0, values)
        for _ in range(_CORRECTIONS):
            mean, _, _ = self.simulated(levels, _CORRECTION_DRAWS, 0)
            levels = corrected(mean - levels, levels)
        return levels

    def simulated(
        self, levels: Tensor, draws: int, seed: int, growth: float = 1
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what `_simulated` does for ``growth`` times as many networks, with the mixing by way of the bulk."""
        count = growth * self.num_networks
        power = levels.clamp(min=0) + self.noise
        variances = self.ratios * power.outer(power) / count  # of the entries of E
        retained, shift = torch.ones_like(levels), torch.zeros_like(levels)
        if self.bulk.dimension:
            retained, shift = self.bulk.shrink(levels, self.noise, count * self.num_averaged)
            through = shift.outer(shift) / self.bulk.dimension  # (k, k), mixing of second order
            variances = variances + through + through.diagonal().diag()
        mean, error, overlaps = _simulated(levels, variances, retained, draws, seed)
        return mean, (error.square() + shift.square()).sqrt(), overlaps

    def _spread(self, levels: Tensor) -> Tensor:
        """Return the standard deviations (k,) of eigenvalues, in first order."""
        return (levels.clamp(min=0) + self.noise) * (
            self.ratios.diagonal() / self.num_networks
        ).sqrt()


def _may_be_equal(values: Tensor, noise: Tensor, num_vectors: float) -> bool:
    """Whether a sample of k equal levels could have these eigenvalues (k,), of more ranks than are simulated together.

    The simulation would take what sampling spreads for differences between levels. Source: Marchenko and Pastur (1967):
    equal levels p give n vectors eigenvalues up to p (1 + sqrt(k / n))^2, with noise as in `BulkSpectrum`.
    """
    edge = values.mean() + (values + noise).mean() * (
        (1 + (len(values) / num_vectors) ** 0.5) ** 2 - 1
    )
    # Around which the largest one scatters
    return len(values) > _WINDOW and bool(values[0] <= 1.05 * edge)


def _smoothed(values: Tensor, spread: Tensor) -> Tensor:
    """Return values (k,) by regression on their rank, local to those that are within about one ``spread`` (k,)."""
    ranks = torch.arange(len(values), dtype=values.dtype)
    # (k, k)
    distances = (values - values[:, None]) / (_SMOOTHING * spread[:, None]).clamp(min=1e-300)
    weights = torch.exp(-0.5 * distances**2)
    weights /= weights.sum(1, keepdim=True)
    mean_rank, mean = weights @ ranks, weights @ values
    rank_spread = weights @ ranks.square() - mean_rank.square()
    slope = (weights @ (ranks * values) - mean_rank * mean) / rank_spread.clamp(min=1e-9)
    return (
        torch.where(rank_spread > 1e-6, mean + slope * (ranks - mean_rank), values)
        .sort(descending=True)
        .values
    )


def _simulated(
    levels: Tensor, variances: Tensor, shown: Tensor, draws: int, seed: int
) -> tuple[Tensor, ...]:
    """Return what the eigenpairs of diag(levels) + E are like, window by window.

    Args:
        levels: (k,), descending.
        variances: variances of E's entries, (k, k).
        shown: (k,), squared cosines with the space of the eigenpairs.
        draws: number of draws, even.
        seed: seed of the draws, from which every window has another.

    Returns:
        Mean eigenvalues (k,); root mean squares (k,) of what they miss the levels by; and mean squared coordinates
        (2, k, k) of the eigenvectors, a row for each, over two halves of the draws.
    """
    size = len(levels)
    width = min(_WINDOW, size)
    starts = (
        sorted({*range(0, size - width, width - 2 * _MARGIN), size - width})
        if size > width
        else [0]
    )
    bounds = [0, *((a + width + b) // 2 for a, b in zip(starts, starts[1:], strict=False)), size]
    gaps = levels - levels[:, None]
    # The squared sine of first order, at large gaps
    mixing = variances / (variances + gaps.square()).clamp(min=1e-300)  # (k, k)
    inside = torch.zeros(size, size, dtype=torch.bool)
    mean, error, overlaps = (
        torch.zeros_like(levels),
        torch.zeros_like(levels),
        torch.zeros(2, *mixing.shape).double(),
    )
    for number, (start, first, last) in enumerate(zip(starts, bounds, bounds[1:], strict=False)):
        window, inner = slice(start, start + width), slice(first - start, last - start)
        spread = variances[window, window]
        # Where a direction mixes with dozens of neighbours, the mean over few draws says as much: nothing is known
        gap = (levels[window][0] - levels[window][-1]).clamp(min=1e-300)
        crowd = float(spread.diagonal().mean().sqrt() * width / gap)
        generator = torch.Generator().manual_seed(2 * number + seed)
        noise = torch.randn(
            draws if crowd < _CROWD else min(draws, _FEW_DRAWS), width, width, generator=generator
        )
        noise = noise.triu() + noise.triu(1).mT  # symmetric, entries of variance 1
        matrices = noise * spread.sqrt().float() + torch.diag(levels[window].float())
        values, vectors = torch.linalg.eigh(matrices)  # ascending
        values = values.flip(1)[:, inner].double()
        mean[first:last] = values.mean(0)
        error[first:last] = (values - levels[first:last]).square().mean(0)
        squares = vectors.flip(2).square()
        for run in range(2):
            overlaps[run, first:last, window] = squares[run::2].mean(0).T[inner].double()
        inside[first:last, window] = True
    far = mixing.masked_fill(inside, 0)
    shift = (far * gaps).sum(1)  # the far ones repel in second order
    return (
        mean - shift,
        (error + shift.square()).sqrt(),
        (overlaps + far) * (shown / (1 + far.sum(1)))[:, None],
    )


def _bands(overlaps: Tensor) -> list[tuple[int, int]]:
    """Split the ranks, from the first on, into the shortest runs of ranks whose subspace is known.

    A subspace is known if its overlap with the exact one covers at least `CERTAIN` of the way from the overlap of a
    random subspace to 1. The last run may be known less well.
    """
    size, bands, first = len(overlaps), [], 0
    while first < size:
        ranks = torch.arange(1, size - first + 1)
        inside = overlaps[first:, first:].cumsum(0).cumsum(1).diagonal() / ranks
        chance = ranks / (size - first)
        known = (inside - chance >= CERTAIN * (1 - chance)).nonzero()
        length = int(known[0]) + 1 if len(known) else size - first
        if length > 1:
            bands.append((first, first + length))
        first += length
    return bands
