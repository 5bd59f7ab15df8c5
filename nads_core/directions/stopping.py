"""Stopping criteria: what the directions must reach, and after which numbers of blocks to check."""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Self

import torch

from nads_core.directions.covariance import leading_subspace, subspace_overlap
from nads_core.directions.eigenpairs import Eigenpairs, EigenProblem
from nads_core.directions.moments import HalfSamples, Moments, merged
from nads_core.runtime import distributed
from nads_core.runtime.arguments import Facts, Shape, plain, require_integers

GROUPS = 4  # groups of networks, whose halves estimate the error that a tolerance is about
_FIRST_CHECK = 64  # networks


@dataclass(frozen=True)
class StoppingCriterion:
    """When a run has enough networks; without any field it draws all that were asked for.

    Args:
        tolerance: largest 1 - overlap of the first ``num_leading`` directions with their exact
            subspace, at the upper end of its interval (`subspace_error`). Where eigenvalues
            ``num_leading`` and the next are nearly equal, no number of networks separates them:
            choose a number with a gap after it.
        num_leading: number of directions that ``tolerance`` is about; 10 by default, or all but one
            of fewer.
        num_certain: number of directions that must each have a certainty of 0.9 (`NADs.certainty`).
    """

    tolerance: float | None = None
    num_leading: int | None = None
    num_certain: int | None = None

    def resolved(self, dimension: int, num_directions: int) -> Self:
        """Return the criterion with the default of ``num_leading``.

        Raises:
            ValueError: if a field is out of range, or both criteria are given.
        """
        tolerance, num_certain = self.tolerance, self.num_certain
        counts = {"num_leading": self.num_leading, "num_certain": num_certain}
        require_integers(**{name: count for name, count in counts.items() if count is not None})
        if tolerance is not None and not (isinstance(tolerance, Real) and 0 < tolerance <= 0.1):
            raise ValueError(
                f"tolerance must be in (0, 0.1], which halves resolve, got {tolerance!r}"
            )
        num_leading = (
            min(10, max(1, dimension - 1)) if self.num_leading is None else self.num_leading
        )
        # All of them span the whole space, whatever the networks
        limit = dimension - (tolerance is not None)
        if num_leading > limit:
            raise ValueError(
                f"num_leading must be at most {limit} of {dimension} directions, got {num_leading}"
            )
        if self.num_leading is not None and tolerance is None:
            raise ValueError(
                f"num_leading = {self.num_leading} needs a tolerance, which is about them"
            )
        if num_certain is not None and tolerance is not None:
            raise ValueError("tolerance and num_certain are two criteria: choose one of them")
        if num_certain is not None and num_certain > num_directions:
            raise ValueError(
                f"num_certain = {num_certain} exceeds the {num_directions} directions requested"
            )
        return replace(self, num_leading=plain(num_leading), num_certain=plain(num_certain))


@dataclass(frozen=True)
class StoppingRule:
    """A criterion for one run, with what measuring it needs.

    Args:
        criterion: resolved criterion.
        image_shape: shape of an input.
        debiasing: method of the directions themselves.
        symmetries: symmetries that the second moment is averaged over.
    """

    criterion: StoppingCriterion
    image_shape: Shape
    debiasing: str = "shrink"
    symmetries: tuple[str, ...] = ()

    def check_schedule(self, block_size: int) -> Iterator[float]:
        """Yield the numbers of blocks after which to check, however the networks come in."""
        if self.criterion.tolerance is not None:
            return check_schedule(block_size, 1.25)
        return (
            iter([math.inf])
            if self.criterion.num_certain is None
            else check_schedule(block_size, 1.5)
        )

    def measure(
        self, groups: Sequence[Moments], half_samples: HalfSamples, effective_share: float
    ) -> tuple[bool, dict[str, float]]:
        """Return whether the criterion, which must be active, is met by all groups, and the
        measured values by name.
        """
        if self.criterion.tolerance is not None:
            error, spread = self.error(groups)
            # Processors differ in their last bits
            enough = bool(distributed.broadcast(error + spread <= self.criterion.tolerance))
            return enough, {"error": error, "spread": spread}
        assert self.criterion.num_certain is not None
        dimension = math.prod(self.image_shape)
        among = dimension if self.symmetries else min(4 * self.criterion.num_certain, dimension)
        pairs = EigenProblem(
            merged(groups),
            half_samples,
            among,
            self.image_shape,
            self.debiasing,
            self.symmetries,
            effective_share=effective_share,
        ).eigenpairs()
        count = int(distributed.broadcast(pairs.uncertainty.num_certain))
        return count >= self.criterion.num_certain, {"certain": count}

    def final_value(self, groups: Sequence[Moments], pairs: Eigenpairs, num_networks: int) -> Facts:
        """Return the final value of the criterion, if there is one, for the provenance; warn unless
        it is met.
        """
        criterion, certain = self.criterion, pairs.uncertainty.num_certain
        after = f"not reached after {num_networks:,} networks"
        if criterion.num_certain is not None:
            if certain < criterion.num_certain:
                warnings.warn(
                    f"num_certain {criterion.num_certain} {after}: {certain} are certain",
                    stacklevel=4,
                )
            return {"num_certain": criterion.num_certain, "certain": certain}
        if criterion.tolerance is None:
            return {}
        error, spread = self.error(groups)
        if not error + spread <= criterion.tolerance:
            reached = f"error {error:.2g}, {error + spread:.2g} at the upper end of its interval"
            warnings.warn(f"tolerance {criterion.tolerance} {after}: {reached}", stacklevel=4)
        # JSON has no infinity
        interval = [max(0, error - spread), error + spread] if math.isfinite(error) else None
        return {
            "num_leading": criterion.num_leading,
            "error": interval and error,
            "error_interval": interval,
        }

    def error(self, groups: Sequence[Moments]) -> tuple[float, float]:
        """Return the `subspace_error` of the first ``num_leading`` directions."""
        assert self.criterion.num_leading is not None
        return subspace_error(groups, self.criterion.num_leading, self.symmetries, self.image_shape)


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
    for pair in ((0, 1), (0, 2), (0, 3)):
        halves = [
            [g for i, g in enumerate(groups) if (i in pair) == inside] for inside in (True, False)
        ]
        first, second = (
            leading_subspace(merged(half), num_directions, image_shape, symmetries)
            for half in halves
        )
        if min(len(first), len(second)) < num_directions:
            return math.inf, 0.0
        errors.append((1 - subspace_overlap(first, second)) / 4)
    return float(torch.tensor(errors).mean()), 2 * float(torch.tensor(errors).std())


def check_schedule(block_size: int, growth: float = 1.25) -> Iterator[int]:
    """Yield numbers of blocks, each about ``growth`` times the one before."""
    networks, last = float(_FIRST_CHECK), 0
    while True:
        blocks = max(GROUPS, last + 1, round(networks / block_size))
        yield blocks
        networks, last = networks * growth, blocks
