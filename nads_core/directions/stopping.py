"""When networks are enough: what is asked of the directions, and after how many networks to ask."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from nads_core.directions.eigenpairs import find_eigenpairs
from nads_core.runtime import distributed

if TYPE_CHECKING:
    from nads_core.directions.accumulation import Accumulation

GROUPS = 4  # of networks, from which a tolerance tells the error
_FIRST_LOOK = 64  # networks


class Goal(Protocol):
    """What is asked of the directions."""

    @property
    def growth(self) -> float:
        """Of the number of networks, from one look to the next."""

    def reached(self, state: Accumulation) -> tuple[bool, str]:
        """Return whether the networks so far are enough, and what to show about them."""


@dataclass(frozen=True)
class Tolerance:
    """Enough are the networks whose first directions are known as a subspace, as halves of the networks tell.

    Args:
        error: largest 1 - overlap with the exact subspace, at the upper end of its interval.
        num_directions: of the subspace.
        image_shape: of the input.
        symmetries: that the second moment is averaged over.
    """

    error: float
    num_directions: int
    image_shape: tuple[int, ...]
    symmetries: tuple[str, ...]
    growth: float = 1.25

    def reached(self, state: Accumulation) -> tuple[bool, str]:
        """Tell by the upper end of the error's interval."""
        error, spread = state.error(self.num_directions, self.symmetries, self.image_shape)
        return error + spread <= self.error, f"error {error:.3f} ± {spread:.3f}"


@dataclass(frozen=True)
class Certain:
    """Enough are the networks from which so many directions are certain, each of them.

    Args:
        num_certain: directions with a certainty of `CERTAIN` at least.
        image_shape: of the input.
        debiasing: as for the directions themselves.
        symmetries: whose types are told apart.
    """

    num_certain: int
    image_shape: tuple[int, ...]
    debiasing: str
    symmetries: tuple[str, ...]
    growth: float = 1.5  # a look costs as much as the directions

    def reached(self, state: Accumulation) -> tuple[bool, str]:
        """Tell by the certificates."""
        among = (
            math.prod(self.image_shape) if self.symmetries else min(4 * self.num_certain, math.prod(self.image_shape))
        )
        found = find_eigenpairs(
            state.total(), state.first_networks, among, self.image_shape, self.debiasing, self.symmetries,
            effective_share=state.effective_share,
        )  # fmt: skip
        count = int(distributed.broadcast(found.certificates.num_certain))  # processors differ in their last bits
        return count >= self.num_certain, f"{count} certain"


class StoppingRule:
    """Looks after certain numbers of blocks, which are the same however the networks come in.

    Args:
        goal: to be reached; without one, no number of networks is enough.
        block_size: networks in a block.
        report: takes what is to be shown beside the progress.
    """

    def __init__(self, goal: Goal | None, block_size: int, report: Callable[[str], object]):
        self._goal, self._report = goal, report
        self._looks: Iterator[float] = looks(block_size, goal.growth) if goal else iter([math.inf])
        self.next_look = next(self._looks)  # in blocks

    def met(self, state: Accumulation) -> bool:
        """Return whether the networks are enough; always False between two looks."""
        if self._goal is None or state.blocks_done < self.next_look:
            return False
        while self.next_look <= state.blocks_done:  # a checkpoint may hold more
            due, self.next_look = self.next_look == state.blocks_done, next(self._looks)
        if not due:
            return False
        enough, shown = self._goal.reached(state)
        self._report(shown)
        return enough


def looks(block_size: int, growth: float = 1.25) -> Iterator[int]:
    """Yield the numbers of blocks after which to look."""
    networks, last = float(_FIRST_LOOK), 0
    while True:
        blocks = max(GROUPS, last + 1, round(networks / block_size))
        yield blocks
        networks, last = networks * growth, blocks
