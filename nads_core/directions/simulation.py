"""How far the directions of one symmetry type are known, by simulating what sampling does to them.

The estimate of C from N networks errs by a symmetric matrix E. In C's eigenbasis its entries have
the variance V_jk / N, where V_jk is the variance of one network's share (`share_variance`),
measured on the first networks. The eigenvectors of diag(levels) + E are simulated, and their
squared coordinates averaged:

    certainty_j = E [(eigenvector j of diag(levels) + E)_j^2].

Three things would make that overconfident: first-order perturbation, which diverges at small gaps;
replicates that share their networks; and eigenvalues of a sample, which repel each other. So E is
drawn afresh, and the levels are smoothed and corrected until the eigenvalues that the simulation
returns are on average those that were seen.

Only windows of neighbouring ranks are simulated. Mixing with ranks outside of a window is added in
first order, and so is mixing with the rest of the space (`bulk`), whose energy is estimated from
held-out networks. A tail of more ranks than a window that could be a sample of equal levels is not
simulated: its directions are random within their common space (benchmarks/flat_tails.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from nads_core.directions.bulk import BulkSpectrum, count_before
from nads_core.directions.uncertainty import CERTAIN, DegenerateCluster

_WINDOW = 48  # ranks that are simulated together
_MARGIN = 9  # of these, ranks on each side that are simulated for the sake of the others
_CORRECTIONS = 3  # of the levels
_CROWD = 8.0  # neighbours within a standard deviation, from which on few draws are enough
_FEW_DRAWS = 2
_SMOOTHING = 1.5  # in standard deviations of an eigenvalue
_FEWEST_NETWORKS = 3  # from which variances can be estimated
# Networks of equal weight along a direction, from which on anything is claimed of it: what single
# networks hold, others do not share (benchmarks/heavy_tails.py --few)
FEWEST_ALONG = 8
_LARGEST_RATIO = 50  # of a variance to p_j p_k, beyond which heavy tails are not resolved
_TINY = 1e-300  # avoids a division by zero


class _Draws(NamedTuple):
    """How E is drawn: how often, an even number; by which seed, from which every window has
    another; and whether in pairs E, -E.
    """

    number: int
    seed: int
    paired: bool


_OF_RESULT = _Draws(16, seed=1, paired=False)
_OF_CORRECTION = _Draws(4, seed=0, paired=True)  # each, of the levels


@dataclass(frozen=True)
class SampleSize:
    """How many networks a run has drawn, and how many to predict for.

    Args:
        num_networks: N.
        num_averaged: partners times readouts, P R: number of vectors over which the share of a
            network is a mean.
        growth: number of networks to predict for, over N, with the levels that these networks show.
    """

    num_networks: float
    num_averaged: int = 1
    growth: float = 1

    @property
    def num_vectors(self) -> float:
        """N P R."""
        return self.num_networks * self.num_averaged

    def grown(self) -> SampleSize:
        """Return the sample to predict for."""
        return replace(self, num_networks=self.growth * self.num_networks)


@dataclass(frozen=True)
class TypeUncertainty:
    """What a run knows about the directions of one symmetry type.

    Args:
        certainty: (k,), expected squared cosine of each with the one of its rank for infinitely
            many networks.
        agreement: (k,), expected squared cosine with the one of its rank from another run of the
            same size. It exceeds the square of ``certainty`` where both runs can mistake one
            direction for the same other.
        eigenvalue_std: (k,), root mean square of eigenvalue minus true eigenvalue of that rank; NaN
            where nothing is known.
        leading: (k + 1, k + 1), dimensions that the first i found directions share with the first j
            exact ones.
        bands: (first rank, last rank + 1), each of them of two ranks at least.
    """

    certainty: Tensor
    agreement: Tensor
    eigenvalue_std: Tensor
    leading: Tensor
    bands: list[tuple[int, int]]

    def clusters(self, indices: list[int]) -> Iterator[DegenerateCluster]:
        """Yield the bands of directions with these indices, one for each rank as far as they were
        asked for.
        """
        for first, last in self.bands:
            inside = tuple(indices[first:last])
            if len(inside) > 1:
                # A sum over a block, from sums over the first ranks
                block, end = self.leading, first + len(inside)
                without = block[end, end] - block[first, end] - block[end, first]
                shared = float(without + block[first, first])
                yield DegenerateCluster(inside, shared / len(inside))

    def extended(self, count: int = 0, known: int | None = None) -> TypeUncertainty:
        """Return the uncertainty of at least ``count`` ranks, of which only those before ``known``
        are claimed.

        By default all ranks are that are here, and no others.
        """
        size = len(self.certainty)
        known = size if known is None else min(known, size)
        count = max(count, size)
        added = (0, count - known)  # numbers of values before and after
        # A direction of which nothing is known shares no dimension: `leading` stays as it is at the
        # last known one.
        nearest = torch.arange(count + 1).clamp(max=known)
        bands = [(first, min(last, known)) for first, last in self.bands if first + 1 < known]
        if count - known > 1:
            bands.append((known, count))
        return TypeUncertainty(
            certainty=pad(self.certainty[:known], added),
            agreement=pad(self.agreement[:known], added),
            eigenvalue_std=pad(self.eigenvalue_std[:known], added, value=math.nan),
            leading=self.leading[nearest][:, nearest],
            bands=bands,
        )


def estimate_uncertainty(
    eigenvalues: Tensor,
    noise: Tensor,
    variances: Tensor,
    sample: SampleSize,
    bulk: BulkSpectrum,
    beyond: Tensor,
) -> TypeUncertainty:
    """Simulate how far the directions of a type are known.

    Args:
        eigenvalues: (k,), without the noise of inputs; about descending.
        noise: (k,), of the inputs along the directions.
        variances: V, (k, k).
        sample: number of networks and of their vectors.
        bulk: part of the space in which no direction was found.
        beyond: (k,), what the eigenvalues have beyond all that the networks of ``variances``, the
            first ones, let expect; at most 0 where they have nothing.
    """
    values = eigenvalues.double().cpu().sort(descending=True).values
    noise = noise.double().cpu().clamp(min=0)
    count = len(values)
    shown, bulk = _shown(values, noise, sample.num_vectors, bulk)
    values, noise, variances = values[:shown], noise[:shown], variances[:shown, :shown]
    ratios = _variance_ratios(values, noise, variances, sample.num_averaged)
    model = _SamplingError(noise, ratios, sample, bulk)
    levels = model.true_levels(values)
    of_more = replace(model, sample=sample.grown())
    simulated = of_more.simulated(levels, _OF_RESULT)
    # A shift that changes sign is not known to vanish: no error is smaller than its mean over the
    # ranks that the run does not distinguish.
    errors = simulated.squared_errors.clamp(min=0)
    errors = torch.maximum(errors, _neighbours(levels, of_more.spread(levels)) @ errors)

    flat = _start_of_flat_tail(values, noise, sample.num_networks / float(ratios.mean()))
    # (2, k, k), of two halves of the draws
    overlaps = _random_from(flat, simulated.overlaps, bulk.dimension)
    certainty = overlaps.mean(0)  # (k, k)
    uncertainty = TypeUncertainty(
        certainty=certainty.diagonal(),
        # E (u . u')^2 of the directions u, u' of two runs is the sum over k of E u_k^2 E u'_k^2,
        # because signs are random. The square of the mean would count a draw as both runs.
        agreement=(overlaps[0] * overlaps[1]).sum(1),
        eigenvalue_std=errors.sqrt(),
        leading=pad(certainty.cumsum(0).cumsum(1), (1, 0, 1, 0)),
        bands=_bands(certainty),
    )
    if sample.num_networks < _FEWEST_NETWORKS:
        return uncertainty.extended(known=0).extended(count)
    power = values.clamp(min=0) + noise
    along = networks_along(power, variances.diagonal(), sample, beyond[:shown].double().cpu())
    claimed = uncertainty.extended(count, count_before(along < FEWEST_ALONG))
    return replace(claimed, eigenvalue_std=uncertainty.extended(count).eigenvalue_std)


def networks_along(power: Tensor, variance: Tensor, sample: SampleSize, beyond: Tensor) -> Tensor:
    """Return how many networks of equal weight hold each direction (k,).

    With the energies z_i of N networks along a direction, of mean p = ``power`` and variance V,

        (sum z_i)^2 / sum z_i^2 = N / (1 + V / p^2).

    Variances are those of the first networks. What the mean of all has beyond theirs and beyond
    chance, e = ``beyond``, may be held by a single other network, which adds (N e)^2 to the sum of
    squares.

    A forecast for more networks than these has no more of them, because its levels are theirs.
    """
    num_networks = sample.num_networks * min(1, sample.growth)
    variance = variance.double().cpu() + sample.num_networks * beyond.clamp(min=0).square()
    return num_networks / (1 + variance / power.clamp(min=_TINY**0.5).square())


def _shown(
    values: Tensor, noise: Tensor, num_vectors: float, bulk: BulkSpectrum
) -> tuple[int, BulkSpectrum]:
    """Return how many eigenvalues (k,) the bulk does not explain, and the bulk with the others in
    it.
    """
    shown = len(values)
    while bulk.dimension:
        detected = bulk.detected(values[:shown], noise[:shown], num_vectors)
        if detected == shown:
            break
        bulk = replace(bulk, dimension=bulk.dimension + shown - detected)
        shown = detected
    return shown, bulk


def _variance_ratios(values: Tensor, noise: Tensor, variances: Tensor, num_averaged: int) -> Tensor:
    """Return V_jk / (p_j p_k), (k, k), with the power p = level + noise.

    Independent Gaussian numbers give 1 / num_averaged, and twice that on the diagonal. The ratios
    are at least these: in a basis that was fitted to the same networks products of two directions
    come out too small. Networks with lighter tails are claimed less than they keep.
    """
    power = values.clamp(min=0) + noise
    independent = 1 / num_averaged
    ratios = variances.double().cpu() / power.outer(power).clamp(min=_TINY)
    ratios = ratios.clamp(min=independent, max=_LARGEST_RATIO)
    ratios.diagonal().clamp_(min=2 * independent)
    return ratios


class _Simulated(NamedTuple):
    """What the eigenpairs of diag(levels) + E are like.

    Args:
        eigenvalues: (k,), mean eigenvalues.
        squared_errors: (k,), mean squares of what they miss the levels by.
        overlaps: (2, k, k), mean squared coordinates of the eigenvectors, a row for each, over two
            halves of the draws.
    """

    eigenvalues: Tensor
    squared_errors: Tensor
    overlaps: Tensor

    def shifted(self, shift: Tensor, levels: Tensor) -> _Simulated:
        """Return the same with eigenvalues shifted by s (k,).

        E (value + s - level)^2 = E (value - level)^2 + 2 s (E value - level) + s^2.
        """
        bias = self.eigenvalues - levels
        squared_errors = self.squared_errors + 2 * shift * bias + shift.square()
        return self._replace(eigenvalues=self.eigenvalues + shift, squared_errors=squared_errors)


@dataclass(frozen=True)
class _SamplingError:
    """The error E of C from N networks, for any levels that C may have.

    A sample stretches its own spectrum, and the variances of a network's share with it. Their ratio
    to the power along two directions does not change.

    Args:
        noise: (k,), variance of the inputs' noise along the directions.
        ratios: (k, k), see `_variance_ratios`.
        sample: number of networks and of their vectors.
        bulk: part of the space in which no direction was found.
    """

    noise: Tensor
    ratios: Tensor
    sample: SampleSize
    bulk: BulkSpectrum

    def true_levels(self, values: Tensor) -> Tensor:
        """Return the levels (k,) whose simulated eigenvalues are on average these values (k,).

        Eigenvalues of a sample repel each other. So levels start from smoothed values, and each
        correction subtracts what the simulation adds on average: levels <- smoothed(values -
        (simulated mean - levels)).

        The excess is of second order in E. Draws in pairs E, -E remove the first order, E_jj, which
        would give the same ranks the same error in every run.
        """
        levels = self._without_bulk(values, values)
        for _ in range(_CORRECTIONS):
            simulated = self.simulated(levels, _OF_CORRECTION)
            excess = simulated.eigenvalues - levels
            levels = self._without_bulk(values - excess, levels)
        return levels

    def simulated(self, levels: Tensor, draws: _Draws) -> _Simulated:
        """Simulate the eigenpairs, with the mixing by way of the bulk."""
        power = levels.clamp(min=0) + self.noise
        # Variance of an entry of E: V_jk / N, with V_jk = ratio_jk p_j p_k.
        variances = self.ratios * power.outer(power) / self.sample.num_networks
        retained, shift = self.bulk.shrink(levels, self.noise, self.sample.num_vectors)
        # Two directions also mix through the bulk, in second order: s_j s_k / m, and twice that for
        # j = k.
        through = shift.outer(shift) / max(1, self.bulk.dimension)
        variances = variances + through + through.diagonal().diag()
        simulated = _simulate(levels, variances, retained, draws)
        errors = simulated.shifted(shift, levels).squared_errors
        return simulated._replace(squared_errors=errors)  # `true_levels` inverts the shift itself

    def _without_bulk(self, values: Tensor, levels: Tensor) -> Tensor:
        """Return smoothed levels (k,) that the bulk shifts to these values (k,)."""
        visible = self.bulk.invert_shrinkage(values, self.noise, self.sample.num_vectors)
        return _smoothed(visible, self.spread(levels))

    def spread(self, levels: Tensor) -> Tensor:
        """Return the standard deviation (k,) of an eigenvalue, in first order: sqrt(V_jj / N)."""
        power = levels.clamp(min=0) + self.noise
        return power * (self.ratios.diagonal() / self.sample.num_networks).sqrt()


def _start_of_flat_tail(values: Tensor, noise: Tensor, num_vectors: float) -> int:
    """Return the first rank from which on eigenvalues (k,), of more ranks than a window has, could
    be those of a sample of equal levels; k if there is none.

    There the simulation would take what sampling spreads for differences between levels. Source:
    Marchenko and Pastur (1967): t equal levels p give n vectors eigenvalues up to p (1 + sqrt(t /
    n))^2. Here the noise spreads, too, and the first r directions, which are fitted to the same
    vectors, leave n - r of them to the tail:

        edge = level + (level + noise) ((1 + sqrt(t / (n - r)))^2 - 1).
    """
    sizes = torch.arange(len(values), 0, -1)  # t, of the tail from each rank on
    of_ranks = torch.stack([values, values + noise])
    level, power = of_ranks.flip(1).cumsum(1).flip(1) / sizes  # means over each tail
    left = (num_vectors - torch.arange(len(values))).clamp(min=1)  # n - r
    edge = level + power * ((1 + (sizes / left).sqrt()) ** 2 - 1)
    # The largest one scatters around the edge
    return count_before((values <= 1.05 * edge) & (sizes > _WINDOW))


def _random_from(first: int, overlaps: Tensor, num_unseen: int) -> Tensor:
    """Return squared coordinates (2, k, k) where the eigenvectors from one rank on are random in
    the space of these ranks and of ``num_unseen`` dimensions beside.

    A direction of the head has equal shares of all directions of the tail, and they of it. The rest
    of a direction of the tail is spread over t + m dimensions: (1 - its share of the head) / (t +
    m).
    """
    head, tail, overlaps = slice(first), slice(first, None), overlaps.clone()
    overlaps[:, head, tail] = overlaps[:, head, tail].mean(2, keepdim=True)
    overlaps[:, tail, head] = overlaps[:, tail, head].mean(1, keepdim=True)
    of_head = overlaps[:, tail, head].sum(2, keepdim=True)
    overlaps[:, tail, tail] = (1 - of_head) / (overlaps.shape[1] - first + num_unseen)
    return overlaps


def _neighbours(values: Tensor, spread: Tensor) -> Tensor:
    """Return weights (k, k) of the values j within about one ``spread`` (k,) of value i, with sum
    1: exp(-((v_j - v_i) / (1.5 spread_i))^2 / 2).
    """
    distances = (values - values[:, None]) / (_SMOOTHING * spread[:, None]).clamp(min=_TINY)
    weights = torch.exp(-0.5 * distances**2)
    return weights / weights.sum(1, keepdim=True)


def _smoothed(values: Tensor, spread: Tensor) -> Tensor:
    """Return values (k,) by regression on their rank, local to those within about one ``spread``
    (k,), descending.
    """
    ranks = torch.arange(len(values), dtype=values.dtype)
    weights = _neighbours(values, spread)
    mean_rank = weights @ ranks
    mean = weights @ values
    # Slope of the weighted least squares line through the values: cov(rank, value) / var(rank)
    rank_variance = weights @ ranks.square() - mean_rank.square()
    slope = (weights @ (ranks * values) - mean_rank * mean) / rank_variance
    fitted = mean + slope * (ranks - mean_rank)  # NaN where there is a single rank
    return torch.where(rank_variance > 1e-6, fitted, values).sort(descending=True).values


class _Window(NamedTuple):
    """Neighbouring ranks that are simulated together, and those of them for which the results
    count.
    """

    simulated: slice
    counted: slice


def _windows(size: int) -> list[_Window]:
    """Return windows of up to `_WINDOW` ranks that overlap by two margins; each rank counts in one
    of them.
    """
    width = min(_WINDOW, size)
    starts = sorted({*range(0, size - width, _WINDOW - 2 * _MARGIN), size - width}) if size else []
    # Neighbouring windows share the ranks from one's start to the other's stop: results change in
    # the middle.
    middles = [(one + width + other) // 2 for one, other in itertools.pairwise(starts)]
    counted = itertools.starmap(slice, itertools.pairwise([0, *middles, size]))
    simulated = [slice(start, start + width) for start in starts]
    return list(map(_Window, simulated, counted))


def _simulate(levels: Tensor, variances: Tensor, retained: Tensor, draws: _Draws) -> _Simulated:
    """Simulate the eigenpairs of diag(levels) + E, window by window.

    Args:
        levels: (k,), descending.
        variances: variances of E's entries, (k, k).
        retained: (k,), squared cosines with the space of the eigenpairs.
        draws: how E is drawn.
    """
    size = len(levels)
    mean = torch.zeros_like(levels)
    squared_error = torch.zeros_like(levels)
    overlaps = torch.zeros(2, size, size, dtype=torch.float64)
    near = torch.zeros(size, size, dtype=torch.bool)
    for number, (window, ranks) in enumerate(_windows(size)):
        of_window = draws._replace(seed=2 * number + draws.seed)
        values, squares = _draw_window(levels[window], variances[window, window], of_window)
        inner = slice(ranks.start - window.start, ranks.stop - window.start)
        values = values[:, inner].double()
        mean[ranks] = values.mean(0)
        squared_error[ranks] = (values - levels[ranks]).square().mean(0)
        for run in range(2):
            half = squares[run::2].mean(0)  # (components, ranks)
            overlaps[run, ranks, window] = half.T[inner].double()
        near[ranks, window] = True
    # Ranks outside of the window: the squared sine of first order, V_jk / (V_jk + gap^2)
    gaps = levels - levels[:, None]
    mixing = variances / (variances + gaps.square()).clamp(min=_TINY)
    far = mixing.masked_fill(near, 0)
    # They repel the eigenvalue in second order, sum_k V_jk / (level_j - level_k), and share its
    # eigenvector.
    shift = -(far * gaps).sum(1)
    share = retained / (1 + far.sum(1))
    simulated = _Simulated(mean, squared_error, (overlaps + far) * share[:, None])
    return simulated.shifted(shift, levels)


def _draw_window(levels: Tensor, variances: Tensor, draws: _Draws) -> tuple[Tensor, Tensor]:
    """Draw eigenvalues (draws, w), descending, and squared coordinates (draws, w components, w
    eigenvectors).
    """
    width, count = len(levels), draws.number
    # Where a direction mixes with dozens of neighbours, the mean over few draws says as much:
    # nothing is known.
    crowd = float(variances.diagonal().mean().sqrt() * width / (levels[0] - levels[-1]))
    if crowd >= _CROWD:
        count = _FEW_DRAWS
    generator = torch.Generator().manual_seed(draws.seed)
    noise = torch.randn(count // (1 + draws.paired), width, width, generator=generator)
    noise = noise.triu() + noise.triu(1).mT  # symmetric, entries of variance 1
    if draws.paired:
        noise = torch.cat([noise, -noise])
    matrices = noise * variances.sqrt().float() + torch.diag(levels.float())
    values, vectors = torch.linalg.eigh(matrices)  # ascending
    return values.flip(1), vectors.flip(2).square()


def _bands(overlaps: Tensor) -> list[tuple[int, int]]:
    """Split the ranks, from the first on, into the shortest runs of ranks whose subspace is known.

    A subspace of r of the n remaining ranks is known if its overlap with the exact one covers at
    least `CERTAIN` of the way from r / n, the overlap of a random subspace, to 1. The last run may
    be known less well.
    """
    size, first = len(overlaps), 0
    bands = []
    while first < size:
        ranks = torch.arange(1, size - first + 1)
        inside = overlaps[first:, first:].cumsum(0).cumsum(1).diagonal() / ranks
        chance = ranks / (size - first)
        known = inside - chance >= CERTAIN * (1 - chance)
        length = min(count_before(known) + 1, size - first)
        if length > 1:
            bands.append((first, first + length))
        first += length
    return bands
