"""Stopping: what the directions must reach, and after which numbers of blocks to check."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import torch

from nads_core.directions.covariance import leading_subspace, subspace_overlap
from nads_core.directions.eigenpairs import Eigenpairs
from nads_core.directions.moments import Moments, merged
from nads_core.directions.options import ComputeOptions
from nads_core.runtime.arguments import Facts, Shape

if TYPE_CHECKING:
    from nads_core.directions.accumulation import Accumulation

GROUPS = 4  # groups of networks, whose halves estimate the error that a tolerance is about
_FIRST_CHECK = 64  # networks


@dataclass(frozen=True)
class StoppingRule:
    """When a run has enough networks; by default it draws all that were asked for.

    Args:
        image_shape: shape of an input.
        options: options of the run: the criterion, and the method of the directions themselves.
        symmetries: symmetries that the second moment is averaged over.

    Raises:
        ValueError: if the criterion does not fit the number of directions, or there are two.
    """

    image_shape: Shape
    options: ComputeOptions
    symmetries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        dimension, options = math.prod(self.image_shape), self.options
        tolerance, num_certain = options.tolerance, options.num_certain
        num_directions = options.num_directions or dimension
        if num_certain is not None and num_certain > num_directions:
            raise ValueError(
                f"num_certain = {num_certain} exceeds the {num_directions} directions requested"
            )
        if tolerance is None:
            if options.num_leading is not None:
                raise ValueError(
                    f"num_leading = {options.num_leading} needs a tolerance, which is about them"
                )
            return
        if num_certain is not None:
            raise ValueError("tolerance and num_certain are two criteria: choose one of them")
        if not (isinstance(tolerance, Real) and 0 < tolerance <= 0.1):
            raise ValueError(
                f"tolerance must be in (0, 0.1], which halves resolve, got {tolerance!r}"
            )
        # All of them span the whole space, whatever the networks
        if self.num_leading >= dimension:
            raise ValueError(
                f"num_leading must be at most {dimension - 1} of {dimension} directions, "
                f"got {self.num_leading}"
            )

    @property
    def num_leading(self) -> int:
        """Number of directions that a tolerance is about: 10 by default, or all but one of
        fewer.
        """
        return self.options.num_leading or min(10, max(1, math.prod(self.image_shape) - 1))

    def check_schedule(self, block_size: int) -> Iterator[float]:
        """Yield the numbers of blocks after which to check, however the networks come in."""
        if self.options.tolerance is None and self.options.num_certain is None:
            yield math.inf
            return
        # Finding eigenpairs costs more: fewer checks
        growth = 1.25 if self.options.num_certain is None else 1.5
        networks, last = float(_FIRST_CHECK), 0
        while True:
            last = max(GROUPS, last + 1, round(networks / block_size))
            yield last
            networks *= growth

    def measure(self, state: Accumulation, pairs: Eigenpairs | None = None) -> tuple[bool, Facts]:
        """Return whether a run meets the criterion, and the measured values for the provenance.

        Args:
            state: moments of the networks.
            pairs: eigenpairs of all of them, if they are known.
        """
        tolerance, num_certain = self.options.tolerance, self.options.num_certain
        if num_certain is not None:
            dimension = math.prod(self.image_shape)
            count = dimension if self.symmetries else min(4 * num_certain, dimension)
            pairs = pairs or state.eigenpairs(count, self.options.debiasing, self.symmetries)
            certain = pairs.uncertainty.num_certain
            return certain >= num_certain, {"num_certain": num_certain, "certain": certain}
        if tolerance is None:
            return True, {}
        error, spread = subspace_error(
            state.groups, self.num_leading, self.symmetries, self.image_shape
        )
        values: Facts = {"num_leading": self.num_leading, "error": None, "error_interval": None}
        if math.isfinite(error):  # JSON has no infinity
            values |= {"error": error, "error_interval": [max(0, error - spread), error + spread]}
        return error + spread <= tolerance, values


def subspace_error(
    groups: Sequence[Moments],
    num_directions: int,
    symmetries: tuple[str, ...],
    image_shape: Shape,
) -> tuple[float, float]:
    """Estimate how far the first directions are from those of infinitely many networks.

    Each half of the networks has twice the error of the whole, and the errors of two halves add up:
    1 - overlap of the halves is about four times the error of the whole. Four groups make three
    pairs of halves.

    Returns:
        The mean of 1 - overlap with the exact subspace, and twice its standard deviation over the
        pairs. The error is infinite if a half has fewer directions, as few networks have on the
        Gram side.
    """
    errors = []
    first, *others = groups
    for partner in range(len(others)):
        pair = [first, others[partner]]
        rest = others[:partner] + others[partner + 1 :]
        one, other = (
            leading_subspace(merged(half), num_directions, image_shape, symmetries)
            for half in (pair, rest)
        )
        if min(len(one), len(other)) < num_directions:
            return math.inf, 0.0
        errors.append((1 - subspace_overlap(one, other)) / 4)
    return float(torch.tensor(errors).mean()), 2 * float(torch.tensor(errors).std())
