"""Stopping: what the directions must reach, and after which numbers of blocks to check."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import torch

from nads_core.directions.covariance import leading_subspace, subspace_overlap
from nads_core.directions.eigenpairs import Eigenpairs, EigenProblem
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

    def measure(self, state: Accumulation) -> tuple[bool, dict[str, float]]:
        """Return whether a run meets the criterion, which must be active, and the measured values
        by name.
        """
        options = self.options
        if options.tolerance is not None:
            error, spread = self.error(state.groups)
            return error + spread <= options.tolerance, {"error": error, "spread": spread}
        assert options.num_certain is not None
        dimension = math.prod(self.image_shape)
        pairs = EigenProblem(
            state.total(),
            state.half_samples,
            dimension if self.symmetries else min(4 * options.num_certain, dimension),
            self.image_shape,
            options.debiasing,
            self.symmetries,
            effective_share=state.effective_share,
        ).eigenpairs()
        count = pairs.uncertainty.num_certain
        return count >= options.num_certain, {"certain": count}

    def final_value(self, groups: Sequence[Moments], pairs: Eigenpairs, num_networks: int) -> Facts:
        """Return the final value of the criterion, if there is one, for the provenance; warn unless
        it is met.
        """
        options, certain = self.options, pairs.uncertainty.num_certain
        after = f"not reached after {num_networks:,} networks"
        if options.num_certain is not None:
            if certain < options.num_certain:
                warnings.warn(
                    f"num_certain {options.num_certain} {after}: {certain} are certain",
                    stacklevel=4,
                )
            return {"num_certain": options.num_certain, "certain": certain}
        if options.tolerance is None:
            return {}
        error, spread = self.error(groups)
        if not error + spread <= options.tolerance:
            reached = f"error {error:.2g}, {error + spread:.2g} at the upper end of its interval"
            warnings.warn(f"tolerance {options.tolerance} {after}: {reached}", stacklevel=4)
        # JSON has no infinity
        interval = [max(0, error - spread), error + spread] if math.isfinite(error) else None
        return {
            "num_leading": self.num_leading,
            "error": interval and error,
            "error_interval": interval,
        }

    def error(self, groups: Sequence[Moments]) -> tuple[float, float]:
        """Return the `subspace_error` of the first ``num_leading`` directions."""
        return subspace_error(groups, self.num_leading, self.symmetries, self.image_shape)


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
