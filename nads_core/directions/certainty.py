"""How far a direction is known: its expected squared cosine with the one of the same name for infinitely many networks.

The estimate of C from N networks errs by a symmetric matrix E with entries of variance V_jk / N in C's eigenbasis,
where V_jk is the variance of one network's share; it is measured on the first networks (`FirstNetworks`). The
eigenvectors of diag(levels) + E are simulated and their squared coordinates averaged. Three things would make that
overconfident: first-order perturbation, which diverges at small gaps; replicates that share their networks; and
eigenvalues of a sample, which repel each other. So the simulation draws E afresh and starts from levels that are
smoothed until the eigenvalues which it returns are on average those that were seen.

Far neighbours are added in first order: the simulation goes through windows of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from nads_core.machinery import distributed

SAMPLED_NETWORKS = 512
BAND_CERTAINTY = 0.9  # of a subspace that counts as known
_WINDOW, _MARGIN = 48, 9  # ranks simulated together, and of these on each side for the sake of the others
_DRAWS, _CORRECTIONS, _CORRECTION_DRAWS = 16, 3, 3
_CROWD, _FEW_DRAWS = 8.0, 2  # neighbours within a standard deviation, from which on few draws are enough
_SMOOTHING = 1.5  # in standard deviations of an eigenvalue


class FirstNetworks:
    """The vectors of the first networks of a computation, for moments of fourth order.

    The contributions of a network are averaged into two halves x, y (an odd one is left out): (x y^T + y x^T) / 2 is an
    estimate of its g g^T without the noise of its inputs. One contribution is its own other half.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, Tensor] = {}  # number of the block -> (B, R, 2, D)
        self.num_contributions = 1

    def update(self, block: int, block_size: int, contributions: Tensor, readouts: int) -> None:
        """Keep the networks of a block if they are among the first.

        Args:
            block: its number.
            block_size: of all blocks but the last.
            contributions: (B * readouts, J, D).
            readouts: R.
        """
        if not self.wants(block, block_size) or block in self._blocks:
            return
        vectors = contributions.unflatten(0, (-1, readouts))  # (B, R, J, D)
        vectors = vectors[: SAMPLED_NETWORKS - block * block_size]
        self.num_contributions = vectors.shape[2]
        half = self.num_contributions // 2
        halves = (
            [vectors[:, :, :half].mean(2), vectors[:, :, half : 2 * half].mean(2)] if half else [vectors[:, :, 0]] * 2
        )
        self._blocks[block] = torch.stack(halves, dim=2).float().cpu()

    @staticmethod
    def wants(block: int, block_size: int) -> bool:
        """Whether a block has networks that are kept."""
        return block * block_size < SAMPLED_NETWORKS

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {"blocks": dict(self._blocks), "num_contributions": self.num_contributions}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._blocks, self.num_contributions = dict(state["blocks"]), state["num_contributions"]

    def gather(self) -> None:
        """Replace each process's networks by those of all processes together."""
        for state in distributed.collected(self.state_dict()):
            self._blocks |= state["blocks"]
            self.num_contributions = max(self.num_contributions, state["num_contributions"])

    def halves(self) -> Tensor:
        """Return (n, R, 2, D), in the order of the networks' numbers."""
        return torch.cat([self._blocks[block] for block in sorted(self._blocks)])


def share_variances(coordinates: Tensor, num_contributions: int) -> Tensor:
    """Return V (k, k): the variance of one network's share of the entries of C in a basis.

    Args:
        coordinates: of the halves in that basis, (P, n, R, 2, k), for each partner of a symmetry type; the share of a
            network is the mean over its partners and readouts.
        num_contributions: J, from which the halves were made. Z = (x y^T + y x^T) / 2 has more noise than all pairs of
            contributions, by (J - 2) / (J - 1) times the product of the noise variances, which the difference of the
            halves tells.
    """
    partners, count, readouts = coordinates.shape[:3]
    # In units of the power along each axis fourth powers fit into float32, which halves the time
    unit = coordinates.double().square().mean((0, 1, 2, 3)).sqrt().clamp(min=1e-150)  # (k,)
    rows = (coordinates.double() / unit).float()
    x, y = rows[..., 0, :], rows[..., 1, :]  # (P, n, R, k) each
    excess = max(0.0, (num_contributions - 2) / (num_contributions - 1)) if num_contributions > 1 else 0.0

    def product(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> Tensor:
        """Return the mean over networks of Z Z', elementwise, (k, k), for rows (m, k)."""
        xx, yy, xy, yx = (a * b for a, b in zip(first * 2, second + second[::-1], strict=True))
        total = xx.T @ yy + xy.T @ yx
        if excess:
            noise = ((first[0] - first[1]) / 2) * ((second[0] - second[1]) / 2)
            total = total - 2 * excess * noise.T @ noise
        return (total + total.T).double() / (4 * len(xx))

    square = torch.zeros(len(unit), len(unit), dtype=torch.float64, device=rows.device)  # of the share
    mean = torch.zeros_like(square)
    for p in range(partners):
        own = (x[p].flatten(0, 1), y[p].flatten(0, 1))
        mean += (own[0].T @ own[1]) / (partners * count * readouts)
        for q in range(p, partners):
            same = product(own, (x[q].flatten(0, 1), y[q].flatten(0, 1)))
            if readouts > 1:  # pairs of different readouts stand for all of them
                others = [part.roll(1, dims=1).flatten(0, 1) for part in (x[q], y[q])]
                same = same / readouts + (1 - 1 / readouts) * product(own, (others[0], others[1]))
            square += same * ((1 if p == q else 2) / partners**2)
    units = unit.outer(unit)
    square, mean = square * units.square(), mean * units
    mean = (mean + mean.T) / 2
    # Few networks with heavy tails can give what is no variance
    power = square.diagonal().clamp(min=1e-3 * square.diagonal().abs().max()).sqrt()
    return (square - mean.square()).clamp(min=1e-3 * power.outer(power))


@dataclass(frozen=True)
class Certificate:
    """What a run knows about the directions of one symmetry type.

    Args:
        certainty: (k,), expected squared cosine of each with the one of its rank for infinitely many networks.
        agreement: (k,), expected squared cosine with the one of its rank from another run of the same size. It exceeds
            the square of ``certainty`` where both runs can mistake one direction for the same other.
        eigenvalue_std: (k,), root mean square of eigenvalue minus true eigenvalue of that rank.
        leading: (k,), certainty of the subspace of the first ranks up to each.
        bands: (first rank, last rank + 1, certainty of the subspace), each of them of two ranks at least.
    """

    certainty: Tensor
    agreement: Tensor
    eigenvalue_std: Tensor
    leading: Tensor
    bands: list[tuple[int, int, float]]

    def without(self, uncertified: Tensor) -> Certificate:
        """Return the certificate when nothing is claimed about the ranks where ``uncertified`` (k,) is true."""
        return replace(
            self, certainty=self.certainty.masked_fill(uncertified, 0),
            agreement=self.agreement.masked_fill(uncertified, 0),
        )  # fmt: skip

    def extended(self, count: int) -> Certificate:
        """Return a certificate for ``count`` ranks, of which nothing is known about those that this one lacks."""
        size = len(self.certainty)
        missing = self.certainty.new_zeros(count - size)
        if not len(missing):
            return self
        known = self.leading * torch.arange(1, size + 1)  # of so many dimensions
        leading = torch.cat([known, known[-1] + missing]) / torch.arange(1, count + 1)
        return Certificate(
            torch.cat([self.certainty, missing]), torch.cat([self.agreement, missing]),
            torch.cat([self.eigenvalue_std, missing + self.eigenvalue_std[-1]]), leading, self.bands,
        )  # fmt: skip


def certify(eigenvalues: Tensor, noise: Tensor, variances: Tensor, num_networks: int, count: int) -> Certificate:
    """Simulate how far the first ``count`` directions of a type are known.

    Args:
        eigenvalues: (k,), descending, without the noise of inputs; those beyond ``count`` are their neighbours.
        noise: (k,), of the inputs along the directions.
        variances: V, (k, k).
        num_networks: N.
        count: for how many.
    """
    generator = torch.Generator().manual_seed(0)
    seen, noise = eigenvalues.double().cpu(), noise.double().cpu().clamp(min=0)
    variances = variances.double().cpu() / num_networks
    # The sample stretches its own spectrum, and the variances with it: what is kept of them is their ratio to the power
    # along two directions, which is at least that of independent numbers.
    power = seen.clamp(min=0) + noise
    ratios = (variances * num_networks / power.outer(power).clamp(min=1e-300)).clamp(min=1, max=50)
    ratios.diagonal().clamp_(min=2)

    def current(levels: Tensor) -> Tensor:
        power = levels.clamp(min=0) + noise
        return ratios * power.outer(power) / num_networks

    levels = _smoothed(seen, variances.diagonal().sqrt())
    for _ in range(_CORRECTIONS):
        variances = current(levels)
        mean = _simulated(levels, variances, _CORRECTION_DRAWS, generator)[0]
        levels = _smoothed(levels + (seen - mean), variances.diagonal().sqrt())
    _, error, overlaps = _simulated(levels, current(levels), _DRAWS, generator)
    inside = _inside(overlaps)
    return Certificate(
        overlaps.diagonal()[:count], overlaps.square().sum(1)[:count], error[:count], inside[:count],
        _bands(overlaps[:count, :count]),
    )  # fmt: skip


def _smoothed(values: Tensor, spread: Tensor) -> Tensor:
    """Return values (k,) by regression on their rank, local to those that are within about one ``spread`` (k,)."""
    ranks = torch.arange(len(values), dtype=values.dtype)
    weights = torch.exp(
        -0.5 * ((values - values[:, None]) / (_SMOOTHING * spread[:, None]).clamp(min=1e-300)) ** 2
    )  # (k, k)
    weights /= weights.sum(1, keepdim=True)
    mean_rank, mean = weights @ ranks, weights @ values
    rank_spread = weights @ ranks.square() - mean_rank.square()
    slope = (weights @ (ranks * values) - mean_rank * mean) / rank_spread.clamp(min=1e-9)
    return torch.where(rank_spread > 1e-6, mean + slope * (ranks - mean_rank), values).sort(descending=True).values


def _simulated(
    levels: Tensor, variances: Tensor, draws: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what the eigenpairs of diag(levels) + E are like, window by window.

    Returns:
        Mean eigenvalues (k,); root mean squares (k,) of what they miss the levels by; and mean squared coordinates
        (k, k) of the eigenvectors, a row for each.
    """
    size = len(levels)
    width = min(_WINDOW, size)
    starts = sorted({*range(0, size - width, width - 2 * _MARGIN), size - width}) if size > width else [0]
    bounds = [0, *((a + width + b) // 2 for a, b in zip(starts, starts[1:], strict=False)), size]
    gaps = levels - levels[:, None]
    mixing = variances / (variances + gaps.square()).clamp(
        min=1e-300
    )  # (k, k); at large gaps the squared sine of first order
    inside = torch.zeros(size, size, dtype=torch.bool)
    mean, error, overlaps = torch.zeros_like(levels), torch.zeros_like(levels), torch.zeros_like(mixing)
    for start, first, last in zip(starts, bounds, bounds[1:], strict=False):
        window, kept = slice(start, start + width), slice(first - start, last - start)
        spread = variances[window, window]
        # Where a direction mixes with dozens of neighbours, the mean over few draws says as much: nothing is known
        crowd = float(
            spread.diagonal().mean().sqrt() * width / (levels[window][0] - levels[window][-1]).clamp(min=1e-300)
        )
        number = draws if crowd < _CROWD else min(draws, _FEW_DRAWS)
        noise = torch.randn(number, width, width, generator=generator)
        noise = noise.triu() + noise.triu(1).mT  # symmetric, entries of variance 1
        matrices = noise * spread.sqrt().float() + torch.diag(levels[window].float())
        values, vectors = torch.linalg.eigh(matrices)  # ascending
        values = values.flip(1)[:, kept].double()
        mean[first:last] = values.mean(0)
        error[first:last] = (values - levels[first:last]).square().mean(0)
        overlaps[first:last, window] = vectors.flip(2).square().mean(0).T[kept].double()
        inside[first:last, window] = True
    far = mixing.masked_fill(inside, 0)
    shift = (far * gaps).sum(1)  # the far ones repel in second order
    return mean - shift, (error + shift.square()).sqrt(), (overlaps + far) / (1 + far.sum(1, keepdim=True))


def _inside(overlaps: Tensor) -> Tensor:
    """Return (k,): how much of the first ranks' subspace is in that of the true ones, for all numbers of ranks."""
    size = len(overlaps)
    return overlaps.cumsum(0).cumsum(1).diagonal() / torch.arange(1, size + 1)


def _bands(overlaps: Tensor) -> list[tuple[int, int, float]]:
    """Return the shortest runs of ranks, first ones first, whose subspace is known; the last may be known less well.

    Known is what has at least `BAND_CERTAINTY` of the way from a random subspace of what is left to the exact one.
    """
    size, bands, first = len(overlaps), [], 0
    while first < size:
        inside = _inside(overlaps[first:, first:])
        chance = torch.arange(1, size - first + 1) / (size - first)
        known = (inside - chance >= BAND_CERTAINTY * (1 - chance)).nonzero()
        length = int(known[0]) + 1 if len(known) else size - first
        if length > 1:
            bands.append((first, first + length, float(inside[length - 1])))
        first += length
    return bands
