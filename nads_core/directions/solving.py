"""From the moments of a run to its NADs: symmetries that hold, eigenpairs with uncertainty, and the
provenance.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, replace

from torch import Tensor

from nads_core.directions.accumulation import Accumulation
from nads_core.directions.eigenpairs import HEAVY, Eigenpairs, EigenProblem
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
    pairs = EigenProblem(
        state.total(),
        state.half_samples,
        run.num_directions,
        run.image_shape,
        run.asked.options.debiasing,
        symmetries,
        effective_share=state.effective_share,
    ).eigenpairs()
    notes |= {"num_networks": num_networks, "symmetries": list(symmetries)}
    notes |= run.rule.final_value(state.groups, pairs, num_networks)
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
    eigenvalues, uncertainty = pairs.eigenvalues.cpu().float(), pairs.uncertainty
    if state.scale != 1:
        unit = state.scale**-2
        eigenvalues = pairs.eigenvalues.cpu().double() * unit
        uncertainty = replace(
            uncertainty, eigenvalue_std=uncertainty.eigenvalue_std.double() * unit
        )
    return NADs(directions.float().cpu(), eigenvalues, provenance, uncertainty)


def _effective(state: Accumulation, pairs: Eigenpairs, num_networks: int, name: str) -> Facts:
    """Return the effective number of networks, and warn if a few hold the second moment or the
    first direction.
    """
    number = state.effective_share * num_networks
    halves = state.half_samples.halves()  # (n, R, 2, D)
    # Energy of each network along the first direction, (n,)
    along = (halves.mean(2) @ pairs.directions[0].to(halves)).double().square().mean(1)
    mean = along.mean()
    # What the mean of all has beyond that of the first ones may be of one network
    beyond = (pairs.eigenvalues[0].to(mean) - mean).clamp(min=0)
    variance = along.var(correction=0)
    power = mean + beyond
    holding = 0.0
    if power > 0:
        holding = float(networks_along(power, variance, SampleSize(num_networks), beyond))
    if state.effective_share < HEAVY:
        message = (
            f"a few networks hold the second moment of {name}: {num_networks:,} networks have an "
            f"effective number of {number:.2g}, which the certainties use"
        )
        remedy = "more networks help little; equal_weights=True gives all the same weight"
        warnings.warn(f"{message}: {remedy}", stacklevel=4)
    elif holding < FEWEST_ALONG and not pairs.uncertainty.certainty.any():
        warnings.warn(
            f"nothing is claimed of the NADs of {name}: the effective number of networks along "
            f"the first one is {holding:.2g} of {num_networks:,}, and {FEWEST_ALONG} are needed: "
            "draw more networks",
            stacklevel=4,
        )
    silent = 1 - float(halves.flatten(1).any(1).float().mean())
    if silent > _SILENT:
        message = f"{100 * silent:.0f} % of the networks of {name} do not respond to their input"
        warnings.warn(
            f"{message}: they count as zero, and the NADs describe the others", stacklevel=4
        )
    share = {"silent_networks": round(silent, 4)} if silent else {}
    numbers = {"effective_networks": number, "effective_along_first": holding}
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
