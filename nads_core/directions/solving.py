"""From the moments of a run to its NADs: symmetries that hold, eigenpairs with uncertainty, and the
provenance.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, replace

import torch
from torch import Tensor

from nads_core.directions.accumulation import Accumulation
from nads_core.directions.eigenpairs import HEAVY, Eigenpairs
from nads_core.directions.moments import DenseMoments
from nads_core.directions.nads import NADs
from nads_core.directions.run import Run
from nads_core.directions.simulation import FEWEST_ALONG, SampleSize, networks_along
from nads_core.directions.symmetry_tests import symmetry_tests
from nads_core.runtime.arguments import Facts, Shape
from nads_core.runtime.provenance import environment

_SILENT = 0.1  # share of networks without a response from which on a warning is issued


def solve(run: Run, state: Accumulation, num_networks: int) -> tuple[Eigenpairs, Facts]:
    """Return the eigenpairs of the second moment, and what the provenance says of them.

    Args:
        run: configuration, networks and estimator.
        state: moments of its networks.
        num_networks: number of networks in ``state``.
    """
    symmetries, notes = run.rule.symmetries, Facts()
    if run.symmetries == "test":
        symmetries, notes["symmetry_tests"] = _tested(state, num_networks, run.image_shape)
    options = run.asked.options
    count = options.num_directions or math.prod(run.image_shape)
    pairs = state.eigenpairs(count, options.debiasing, symmetries)
    met, values = run.rule.measure(state, pairs)
    if not met:
        name = "tolerance" if options.num_certain is None else "num_certain"
        asked = f"{name} {getattr(options, name)}"
        warnings.warn(
            f"{asked} not reached after {num_networks:,} networks: {values}", stacklevel=3
        )
    notes |= {"num_networks": num_networks, "symmetries": list(symmetries)} | values
    notes |= _effective(state, pairs, num_networks, run.evaluator.name)
    return pairs, notes


def nads_of(run: Run, state: Accumulation, pairs: Eigenpairs, notes: Facts) -> NADs:
    """Return the eigenpairs in the scale of the gradients, with how they were computed."""
    description = {key: value for key, value in state.description.items() if key != "groups"}
    provenance = {
        **description,
        "debiasing": pairs.debiasing,
        "seconds": round(state.elapsed(), 1),
        "drawn_on": state.devices,
        **environment(run.ensemble.device),
        **notes,
    }
    # (n, D) -> (n, *image_shape)
    directions = with_signs(pairs.directions).reshape(-1, *run.image_shape)
    # Where float32 would underflow
    unit, dtype = state.scale**-2, torch.float32 if state.scale == 1 else torch.float64
    eigenvalues = (pairs.eigenvalues.double() * unit).to(dtype)
    errors = (pairs.uncertainty.eigenvalue_std.double() * unit).to(dtype)
    uncertainty = replace(pairs.uncertainty, eigenvalue_std=errors)
    return NADs(directions.float().cpu(), eigenvalues, provenance, uncertainty)


def _effective(state: Accumulation, pairs: Eigenpairs, num_networks: int, name: str) -> Facts:
    """Return the effective number of networks, and warn if a few hold the second moment or the
    first direction.
    """
    number = state.effective_share * num_networks
    halves = state.half_samples.halves()  # (n, R, 2, D)
    # Energy of each network along the first direction, (n,)
    along = (halves.mean(2) @ pairs.directions[0].to(halves)).double().square().mean(1)
    mean, variance = along.mean(), along.var(correction=0)
    # What the mean of all has beyond that of the first ones may be of one network
    beyond = (pairs.eigenvalues[0].double() - mean).clamp(min=0)
    power = mean + beyond
    holding = 0.0
    if power > 0:
        holding = float(networks_along(power, variance, SampleSize(num_networks), beyond))
    silent = 1 - float(halves.flatten(1).any(1).float().mean())
    warned = []
    if state.effective_share < HEAVY:
        warned.append(
            f"a few networks hold the second moment of {name}: {num_networks:,} networks have an "
            f"effective number of {number:.2g}, which the certainties use: more networks help "
            "little; equal_weights=True gives all the same weight"
        )
    elif holding < FEWEST_ALONG and not pairs.uncertainty.certainty.any():
        warned.append(
            f"nothing is claimed of the NADs of {name}: the effective number of networks along "
            f"the first one is {holding:.2g} of {num_networks:,}, and {FEWEST_ALONG} are needed: "
            "draw more networks"
        )
    if silent > _SILENT:
        warned.append(
            f"{100 * silent:.0f} % of the networks of {name} do not respond to their input: they "
            "count as zero, and the NADs describe the others"
        )
    for message in warned:
        warnings.warn(message, stacklevel=4)
    numbers = {"effective_networks": number, "effective_along_first": holding}
    share = {"silent_networks": round(silent, 4)} if silent else {}
    return {key: float(f"{value:.4g}") for key, value in numbers.items()} | share


def _tested(
    state: Accumulation, num_networks: int, image_shape: Shape
) -> tuple[tuple[str, ...], Facts]:
    """Return the symmetries that the networks do not contradict, and the results of all tests."""
    moments = state.total()
    assert isinstance(moments, DenseMoments)  # as tests need
    second_moment, noise_moment = moments.moments()
    tests = symmetry_tests(
        second_moment - noise_moment,
        state.self_terms,
        num_networks,
        state.half_samples.halves(),
        image_shape,
    )
    accepted = [symmetry for symmetry, test in tests.items() if test.holds]
    if "transpose" in accepted and len({"flip_rows", "flip_columns"} & set(accepted)) == 1:
        # Its group with one flip has the other flip too, which was rejected
        accepted.remove("transpose")
    # JSON has no infinity; the limit is rounded up, so that it holds
    results = {
        symmetry: asdict(test)
        | {"limit": math.ceil(1e3 * test.limit) / 1e3 if math.isfinite(test.limit) else None}
        for symmetry, test in tests.items()
    }
    return tuple(accepted), results


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
