"""The first networks of a computation, kept for what a second moment does not tell: how much the networks differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nads_core.runtime import distributed

SAMPLED_NETWORKS = 512


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
