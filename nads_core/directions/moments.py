"""Streaming second moments of the networks' vectors, and the noise in them.

The contributions of network i, independent given the network, are averaged into two halves x_i and
y_i. With their mean m_i = (x_i + y_i) / 2 and half difference d_i = (x_i - y_i) / 2 the moments are

    M = (1/N) sum_i m_i m_i^T    second moment of the means
    W = (1/N) sum_i d_i d_i^T    share of it that is noise of the means

so M - W = (1/N) sum_i (x_i y_i^T + y_i x_i^T) / 2 estimates C = E[E[g|network] E[g|network]^T]
without bias. A single contribution is its own other half, and its noise remains in M. Two halves
take a quarter of the products of eight contributions, whose U-statistic has only half of the noise
of second order. Both kinds have the same statistics: `DenseMoments` as D x D matrices,
`GramMoments` as the vectors themselves, for D larger than their number. `HalfSamples` has vectors
of some networks, for moments of fourth order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from nads_core.runtime import distributed
from nads_core.runtime.arguments import Facts
from nads_core.runtime.threads import threads_for

BUFFERED_ROWS = 512  # rows converted to float64 and multiplied at a time
SAMPLED_NETWORKS = 512  # whose vectors are stored, for moments of fourth order


class _Stored:
    """Tensors and numbers that a checkpoint holds.

    A stored tensor is not changed in place: states share it.
    """

    device = torch.device("cpu")
    _stored: tuple[str, ...]  # names, of attributes that begin with _

    def state_dict(self) -> Facts:
        """Return the state from which `load_state_dict` resumes."""
        return {name: getattr(self, f"_{name}") for name in self._stored}

    def load_state_dict(self, state: Facts) -> None:
        """Restore a state of `state_dict`."""
        for name in self._stored:
            own = tree_map_only(Tensor, lambda tensor: tensor.to(self.device), state[name])
            setattr(self, f"_{name}", own)


class _Accumulator(_Stored):
    """Moments of networks with ``dimension`` pixels, on a device."""

    def __init__(self, dimension: int, device: torch.device | str = "cpu"):
        self.dimension, self.device = dimension, torch.device(device)

    def empty(self) -> Self:
        """Return another accumulator of the same kind, without networks."""
        return type(self)(self.dimension, self.device)


class DenseMoments(_Accumulator):
    """Second moments as two D x D matrices in float64; memory does not depend on the number of
    networks.

    Contributions are buffered until there are enough for one product, so that the sums do not
    depend on the batch size.

    Args:
        dimension: number of pixels, D.
        device: device of the sums.
    """

    _stored = ("num_networks", "buffer", "seen", "noise")

    def __init__(self, dimension: int, device: torch.device | str = "cpu"):
        super().__init__(dimension, device)
        self._num_networks = 0  # in the sums N M and N W
        self._seen = torch.zeros(dimension, dimension, dtype=torch.float64, device=device)
        self._noise = self._seen
        self._buffer: list[tuple[Tensor, Tensor]] = []  # means and spreads

    @property
    def num_networks(self) -> int:
        """The number of networks, those in the buffer included."""
        return self._num_networks + sum(len(means) for means, _ in self._buffer)

    def update(self, contributions: Tensor) -> None:
        """Add networks.

        Args:
            contributions: (B, J, D).
        """
        contributions = contributions.to(self.device)
        capacity = BUFFERED_ROWS // min(2, contributions.shape[1])  # networks of a product
        while len(contributions):
            free = capacity + self._num_networks - self.num_networks
            self._buffer.append(means_and_spreads(contributions[:free]))
            if len(contributions) >= free:
                self._flush()
            contributions = contributions[free:]

    def _flush(self) -> None:
        if self._buffer:
            with threads_for(self.dimension):
                means, spreads = (
                    torch.cat(part).double() for part in zip(*self._buffer, strict=True)
                )
                self._seen = self._seen.addmm(means.T, means)
                self._noise = self._noise.addmm(spreads.T, spreads)
            self._num_networks += len(means)
            self._buffer = []

    def sums(self) -> tuple[Tensor, Tensor]:
        """Return the two (D, D) sums."""
        self._flush()
        return self._seen, self._noise

    def merge(self, other: DenseMoments) -> None:
        """Add the networks of another accumulator, for example another worker's."""
        (seen, noise), (more_seen, more_noise) = self.sums(), other.sums()
        self._seen, self._noise = seen + more_seen, noise + more_noise
        self._num_networks += other.num_networks

    def gather(self) -> None:
        """Replace each process's moments by those of all processes together."""
        self._seen, self._noise = map(distributed.all_reduce, self.sums())
        self._num_networks = sum(distributed.all_gather(self.num_networks))

    def moments(self) -> tuple[Tensor, Tensor]:
        """Return (M, W), each (D, D), divided by the number of networks, not centred."""
        second_moment, noise_moment = self.sums()
        return second_moment / self.num_networks, noise_moment / self.num_networks


class GramMoments(_Accumulator):
    """Second moments as vectors, two per network, for inputs with more pixels than there are
    vectors.

    Memory: `needed_bytes`; 2 N D numbers for the vectors, and for eigenpairs the Gram matrix of the
    2 N vectors. The vectors are never copied. R readouts of a network count as R networks.
    """

    _stored = ("means", "spreads")

    def __init__(self, dimension: int, device: torch.device | str = "cpu"):
        super().__init__(dimension, device)
        self._means: list[Tensor] = []
        self._spreads: list[Tensor] = []

    @staticmethod
    def needed_bytes(
        dimension: int,
        num_networks: int,
        num_directions: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> int:
        """Return the largest number of bytes that ``num_networks`` networks and ``num_directions``
        eigenvectors take.

        2 N D numbers of ``dtype``, D for each direction, and five matrices (2 N)^2 in float64: the
        Gram matrix, its eigenvectors and the work space of LAPACK.
        """
        vectors = 2 * num_networks
        return dtype.itemsize * (vectors + num_directions) * dimension + 5 * 8 * vectors**2

    @property
    def num_networks(self) -> int:
        """The number of networks."""
        return sum(len(means) for means in self._means)

    def update(self, contributions: Tensor) -> None:
        """Add networks: (B, J, D)."""
        means, spreads = means_and_spreads(contributions.to(self.device))
        self._means.append(means)
        if len(spreads):
            self._spreads.append(spreads)

    def merge(self, other: GramMoments) -> None:
        """Add the networks of another accumulator."""
        self._means += other._means
        self._spreads += other._spreads

    def gather(self) -> None:
        """Replace each process's moments by those of all processes together."""
        states = distributed.all_gather(self.state_dict())
        self.load_state_dict(
            {key: [tensor for state in states for tensor in state[key]] for key in states[0]}
        )

    def vectors(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the vectors, not copied: blocks (B, D) of means, and of spreads where J > 1.

        With all blocks below each other, M = means^T means / N and W = spreads^T spreads / N.
        """
        return list(self._means), list(self._spreads)


Moments = DenseMoments | GramMoments


def split_halves(contributions: Tensor) -> tuple[Tensor, Tensor]:
    """(..., J, D) -> two estimates (..., D), of equal and uncorrelated noise, whose mean is that of
    all contributions.

    They are the means x, y of the first h and of the last J - h contributions; one contribution is
    its own other half. For odd J, x and y have noise of variance v / h and v / (J - h). With s = h
    / J and t = sqrt(h (J - h)) / J,

        a = (s + t) x + (1 - s - t) y,      b = (s - t) x + (1 - s + t) y

    have the mean s x + (1 - s) y, the covariance (s^2 - t^2) / h + ((1 - s)^2 - t^2) / (J - h) = 0
    (times v), and equal variances, since (s + t)^2 - (s - t)^2 = 4 s t = 4 h t / J and (1 - s +
    t)^2 - (1 - s - t)^2 = 4 (J - h) t / J.
    """
    count = contributions.shape[-2]
    if count == 1:
        only = contributions[..., 0, :]
        return only, only
    half = count // 2
    x = contributions[..., :half, :].mean(-2)
    y = contributions[..., half:, :].mean(-2)
    s = half / count
    t = math.sqrt(half * (count - half)) / count  # s = t = 1/2 for even J: a = x, b = y
    return (s + t) * x + (1 - s - t) * y, (s - t) * x + (1 - s + t) * y


def means_and_spreads(contributions: Tensor) -> tuple[Tensor, Tensor]:
    """(B, J, D) -> means (B, D), and half differences (B, D), or none for J = 1."""
    x, y = split_halves(contributions)
    return (x + y) / 2, (x - y)[: len(x) if contributions.shape[1] > 1 else 0] / 2


def merged(groups: Sequence[Moments]) -> Moments:
    """Return the moments of all networks of several accumulators of one kind."""
    if len(groups) == 1:
        return groups[0]
    whole = groups[0].empty()
    for group in groups:
        whole.merge(group)  # type: ignore[arg-type]  # all groups are of one kind
    return whole


class HalfSamples(_Stored):
    """The vectors of the first networks of a computation, for moments of fourth order.

    Their halves x, y are stored: (x y^T + y x^T) / 2 is an estimate of g g^T without the noise of
    the inputs.
    """

    _stored = ("blocks", "num_contributions")

    def __init__(self) -> None:
        self._blocks: dict[int, Tensor] = {}  # number of the block -> (B, R, 2, D)
        self._num_contributions = 1

    @property
    def num_halves(self) -> int:
        """The number of independent halves of a vector: 1 for a single contribution, or 2."""
        return min(2, self._num_contributions)

    def normalised(self) -> HalfSamples:
        """Return the same networks with each vector divided by its norm, so that all have equal
        weight.
        """
        other = HalfSamples()
        other._num_contributions = self._num_contributions
        halves = self.halves()
        # (n, R, 1, 1)
        norms = halves.mean(2, keepdim=True).double().norm(dim=3, keepdim=True).clamp(min=1e-300)
        other._blocks = {0: (halves / norms).float()}
        return other

    def update(self, block: int, block_size: int, contributions: Tensor, readouts: int) -> None:
        """Store the networks of a block if they are among the first.

        Args:
            block: number of the block.
            block_size: size of all blocks but the last.
            contributions: (B * readouts, J, D).
            readouts: number of readouts per network, R.
        """
        if not self.wants(block, block_size):
            return
        vectors = contributions.unflatten(0, (-1, readouts))  # (B, R, J, D)
        vectors = vectors[: SAMPLED_NETWORKS - block * block_size]
        self._num_contributions = vectors.shape[2]
        self._blocks[block] = torch.stack(split_halves(vectors), dim=2).float().cpu()

    @staticmethod
    def wants(block: int, block_size: int) -> bool:
        """Whether a block has networks that are stored."""
        return block * block_size < SAMPLED_NETWORKS

    def gather(self) -> None:
        """Replace each process's networks by those of all processes together."""
        for state in distributed.all_gather(self.state_dict()):
            self._blocks |= state["blocks"]
            self._num_contributions = max(self._num_contributions, state["num_contributions"])

    def halves(self) -> Tensor:
        """Return (n, R, 2, D), in the order of the networks' numbers."""
        return torch.cat([self._blocks[block] for block in sorted(self._blocks)])


def effective_share(networks: float, squares: float, fourths: float) -> float:
    """Return the effective number of networks over their number, (sum |g|^2)^2 / (N sum |g|^4),
    from 1 / N to 1.

    Args:
        networks: N.
        squares: sum over networks of |g|^2, the squared norm of their vector.
        fourths: sum over networks of |g|^4.
    """
    return squares**2 / (networks * fourths) if fourths else 1.0
