"""The first networks of a computation, kept for what a second moment does not tell: how much the networks differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nads_core.runtime import distributed

SAMPLED_NETWORKS = 512
_FOLDS = 8


class FirstNetworks:
    """The vectors of the first networks of a computation, for moments of fourth order.

    The contributions of a network are averaged into two halves x, y (an odd one is left out): (x y^T + y x^T) / 2 is an
    estimate of its g g^T without the noise of its inputs. One contribution is its own other half.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, Tensor] = {}  # number of the block -> (B, R, 2, D)
        self.num_contributions = 1

    def normalised(self) -> FirstNetworks:
        """Return the same networks with each vector divided by its norm, so that all count alike."""
        other = FirstNetworks()
        other.num_contributions = self.num_contributions
        halves = self.halves()
        norms = halves.mean(2, keepdim=True).double().norm(dim=3, keepdim=True).clamp(min=1e-300)  # (n, R, 1, 1)
        other._blocks = {0: (halves / norms).float()}
        return other

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
    def needed_bytes(dimension: int, num_networks: int, readouts: int = 1) -> int:
        """Return the bytes that the first networks take, with the copy that certificates are made from."""
        return 2 * 4 * 2 * min(num_networks, SAMPLED_NETWORKS) * readouts * dimension

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
        for state in distributed.all_gather(self.state_dict()):
            self._blocks |= state["blocks"]
            self.num_contributions = max(self.num_contributions, state["num_contributions"])

    def halves(self) -> Tensor:
        """Return (n, R, 2, D), in the order of the networks' numbers."""
        return torch.cat([self._blocks[block] for block in sorted(self._blocks)])


def effective_share(powers: Sequence[float] | None, first: FirstNetworks) -> float:
    """Return (sum |g|^2)^2 / (N sum |g|^4): the effective number of networks over their number N, from 1 / N to 1.

    Args:
        powers: N, sum |g|^2 and sum |g|^4 over the networks; None in files that an earlier nads_core wrote.
        first: the first networks, which stand for all of them then.
    """
    if powers is None:
        squares = first.halves().double().mean(2).square().sum(2).mean(1)  # (n,)
        powers = [len(squares), float(squares.sum()), float(squares.square().sum())]
    count, squares, fourths = powers
    return squares**2 / (count * fourths) if fourths else 1.0


def share_variances(coordinates: Tensor, num_contributions: int) -> Tensor:
    """Return V (k, k): the variance of one network's share of the entries of C in a basis.

    Args:
        coordinates: of the halves in that basis, (P, n, R, 2, k), for each partner of a symmetry type; the share of a
            network is the mean over its partners and readouts.
        num_contributions: J, from which the halves were made. Z = (x y^T + y x^T) / 2 has more noise than all pairs of
            contributions, by (J - 2) / (J - 1) times the product of the noise variances (twice that on the diagonal),
            which the difference of the halves tells.
    """
    partners, count, readouts, _, size = coordinates.shape
    if not size:
        return torch.zeros(0, 0, dtype=torch.float64)
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
            surplus = 2 * excess * noise.T @ noise
            if first is second:
                surplus.diagonal().mul_(2 / 3)  # a fourth moment is three squares there, where two are due
            total = total - surplus
        return (total + total.T).double() / (4 * len(xx))

    square = torch.zeros(len(unit), len(unit), dtype=torch.float64, device=rows.device)  # of the share
    mean = torch.zeros_like(square)
    for p in range(partners):
        own = (x[p].flatten(0, 1), y[p].flatten(0, 1))
        mean += (own[0].T @ own[1]) / (partners * count * readouts)
        for q in range(p, partners):
            same = product(own, own if p == q else (x[q].flatten(0, 1), y[q].flatten(0, 1)))
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


def unseen_energies(coordinates: Tensor) -> tuple[float, float]:
    """Return how much energy of a network, and of its inputs' noise, a dimension has that other networks don't span.

    Args:
        coordinates: of the halves, (P, n, R, 2, d); see `share_variances`.
    """
    networks = coordinates.movedim(0, 1).flatten(1, 2)  # (n, P * R, 2, d)
    count, vectors = networks.shape[:2]
    rows = networks.flatten(0, 2)
    gram = (rows @ rows.T).double()
    scale = float(gram.diagonal().mean())
    if not scale > 0:
        return 0.0, 0.0  # of a type without energy
    gram.diagonal().add_(1e-6 * scale)  # halves without noise are equal
    number = torch.arange(count).repeat_interleave(2 * vectors)  # of each row's network
    energy, noise, dimensions = 0.0, 0.0, 0
    for fold in range(min(_FOLDS, count)):
        held = number % min(_FOLDS, count) == fold
        across = gram[held][:, ~held]
        left = gram[held][:, held]
        spanned = 0
        if (~held).any():
            others = gram[~held][:, ~held]
            left = left - across @ torch.linalg.solve(others, across.T)
            spanned = int((torch.linalg.eigvalsh(others) > 1e-5 * others.diagonal().mean()).sum())
        dimensions += max(0, rows.shape[1] - spanned) * int(held.sum()) // (2 * vectors)  # of each network in turn
        x, y = slice(0, None, 2), slice(1, None, 2)
        products = left[x, y].diagonal().sum()  # of the halves of one network
        squares = left[x, x].diagonal().sum() + left[y, y].diagonal().sum()
        energy, noise = energy + float(products) / vectors, noise + float(squares - 2 * products) / (4 * vectors)
    return max(0.0, energy) / max(1, dimensions), max(0.0, noise) / max(1, dimensions)
