"""The second moment of a run, and the NADs that are its eigenvectors."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict

import torch
from torch import Tensor

from nads_core.directions.certainty import FEWEST_NETWORKS
from nads_core.directions.eigenpairs import Uncertainty, eigenpairs
from nads_core.directions.moments import Moments, is_large
from nads_core.directions.nads import NADs
from nads_core.directions.symmetry import SymmetryType, require_symmetries, symmetry_types
from nads_core.directions.symmetry_tests import accepted, symmetry_tests
from nads_core.runtime.arguments import Facts, Shape, is_integer

_SILENT = 0.1  # share of networks without a response from which on a warning is issued


class SecondMoment(Moments):
    """C of some networks, in 8 groups, as `second_moment` computes it."""

    def nads(
        self, symmetries: tuple[str, ...] | str = "auto", num_directions: int | None = None
    ) -> NADs:
        """Return the eigenvectors of C with their certainties.

        Args:
            symmetries: symmetries to average over; "auto" for those that the architecture declares
                or, for a factory, that its networks do not contradict.
            num_directions: number of directions; all by default, or those of positive eigenvalues
                where the vectors are kept.
        """
        values, directions, uncertainty, notes = self.eigenpairs(symmetries, num_directions)
        _warn(self, notes, uncertainty)
        directions = with_signs(directions.float()).reshape(-1, *self.image_shape)
        return NADs(directions, values, self.description | self.provenance | notes, uncertainty)

    def eigenpairs(
        self, symmetries: tuple[str, ...] | str, num_directions: int | None
    ) -> tuple[Tensor, Tensor, Uncertainty, Facts]:
        """Return eigenvalues (n,), directions (n, D), what is known of them, and what the
        provenance says of all.
        """
        count = self.num_networks
        notes: Facts = {"num_networks": count, "certainty": "groups", "symmetries": []}
        if self.silent:
            notes["silent_networks"] = round(self.silent / count, 4)
        require_options(self.image_shape, symmetries, num_directions=num_directions)
        limit = num_directions or self.dimension
        if self.is_large:
            shares, weights = self.span()
            size = shares.shape[-1]
            kind = SymmetryType(("",), (torch.eye(size, dtype=torch.float64),))
            values, coordinates, known = eigenpairs([shares], [kind], count, self.unit)
            notes["negative_share"] = _negative_share(values)
            first = min(limit, int((values > 0).sum()))
            directions = self.in_pixels(coordinates[:first], weights)
            return values[:first], directions, known.first(first), notes
        sums = self.all_sums()
        chosen, tests = chosen_symmetries(self, sums, symmetries)
        kinds = list(symmetry_types(tuple(self.image_shape), chosen))
        blocks = [sums]  # of the one type that there is without symmetries: no copy
        if chosen:
            blocks = [torch.stack([kind.block(share) for share in sums]) for kind in kinds]
        values, directions, known = eigenpairs(blocks, kinds, count, self.unit)
        notes |= tests | {"symmetries": list(chosen), "negative_share": _negative_share(values)}
        return values[:limit], directions[:limit], known.first(limit), notes


def chosen_symmetries(
    moment: SecondMoment, shares: Tensor, symmetries: tuple[str, ...] | str
) -> tuple[tuple[str, ...], Facts]:
    """Return the symmetries to average over, and the results of tests."""
    if symmetries != "auto":
        return tuple(symmetries), {}
    if moment.symmetries is not None:
        return moment.symmetries, {}
    if moment.num_networks < FEWEST_NETWORKS:
        return (), {}
    tests = symmetry_tests(shares, moment.image_shape)
    return accepted(tests), {"symmetry_tests": {name: asdict(t) for name, t in tests.items()}}


def require_options(
    image_shape: Shape, symmetries: tuple[str, ...] | str, **counts: int | None
) -> None:
    """Raise a ValueError unless symmetries are "auto", or inputs of this shape can be averaged over
    them; and numbers of directions, if there are any, are from 1 to D.
    """
    if symmetries != "auto":
        require_symmetries(image_shape, symmetries)  # type: ignore[arg-type]  # a str, too
    if symmetries not in ("auto", ()) and is_large(image_shape):
        raise ValueError(
            f"inputs of {math.prod(image_shape):,} entries are large, and second moments of large "
            "inputs are not averaged over symmetries: leave them out"
        )
    size = math.prod(image_shape)
    for name, count in counts.items():
        if count is not None and not (is_integer(count) and 1 <= count <= size):
            raise ValueError(f"{name} must be an integer from 1 to {size}, got {count!r}")


def _negative_share(values: Tensor) -> float:
    """Return the sum of negative eigenvalues over that of positive ones: noise of the inputs."""
    return round(float(-values.clamp(max=0).sum() / values.clamp(min=1e-300).sum()), 4)


def _warn(moment: SecondMoment, notes: Facts, uncertainty: Uncertainty) -> None:
    """Warn of what leaves the NADs incomplete."""
    name, count = moment.description.get("architecture", "the networks"), moment.num_networks
    warned = []
    if moment.silent > _SILENT * count:
        warned.append(
            f"{100 * moment.silent / count:.0f} % of the networks of {name} do not respond to their"
            " input: they count as zero, and the NADs describe the others"
        )
    if count >= FEWEST_NETWORKS and not uncertainty.certainty.any():
        hidden = moment.provenance.get("num_inputs", 1) > 1 and notes["negative_share"] > 0.5
        remedy = (
            "the noise of the inputs hides their signal: use a larger num_inputs; more networks "
            "help little"
            if hidden
            else "draw more networks, or all directions are equivalent"
        )
        warned.append(f"nothing is claimed of the NADs of {name} from {count:,} networks: {remedy}")
    for message in warned:
        warnings.warn(message, stacklevel=4)


def with_signs(directions: Tensor) -> Tensor:
    """Make the first of the largest entries positive, in place: an antisymmetric one has two, equal
    up to round-off.
    """
    for rows in directions.split(64):  # (64, D): so that no second copy of all is made
        magnitudes = rows.abs()
        largest = (
            (magnitudes > 0.999 * magnitudes.amax(dim=1, keepdim=True))
            .int()
            .argmax(dim=1, keepdim=True)
        )
        rows *= rows.gather(1, largest).sign()
    return directions
