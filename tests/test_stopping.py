"""Stopping when the directions are known well enough, and readouts that share the layers below."""

import json
import math
from functools import partial
from itertools import islice
from types import SimpleNamespace

import examples
import numpy as np
import pytest
import torch
from examples import convnet, same
from nads_core.directions.covariance import leading_subspace, subspace_overlap
from nads_core.directions.options import ComputeOptions
from nads_core.directions.stopping import StoppingRule, subspace_error
from nads_core.networks.ensembles import Ensemble
from torch import nn

import nads_core as nc
from nads_core.directions.moments import DenseMoments, GramMoments, merged

SHAPE = (1, 8, 8)


def compute(num_networks, estimator, factory=convnet, **options):
    """Compute NADs from networks that are evaluated all at once: it takes a tenth of the time."""
    options |= {"estimator": estimator, "device": "cpu", "evaluation": "vmap"}
    return examples.compute(factory, num_networks, **options)


# --- readouts


def test_readouts_are_orthogonal_with_the_layers_own_variance():
    ensemble = Ensemble(convnet, SHAPE)
    rows = ensemble.draw_readouts(0, 3, 27)  # (64, 27, 27)
    variance = 1 / (3 * 27)  # uniform within 1 / sqrt(27)
    gram = rows @ rows.mT
    expected = (27 * variance * torch.eye(27)).expand_as(gram)
    torch.testing.assert_close(gram, expected, rtol=1e-4, atol=1e-5)
    few = torch.cat([ensemble.draw_readouts(block, 3, 2) for block in range(40)])
    few = few.flatten(0, 1).double()
    moment = few.T @ few / len(few)
    assert (moment / variance - torch.eye(27)).abs().max() < 5 * math.sqrt(2 / len(few))


def shared_bias():
    """Use one bias in two layers."""
    network = nn.Sequential(nn.Conv2d(1, 3, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(27, 3))
    network[3].bias = network[0].bias
    return network


OURS = {"logreg": 1024, "lenet": 84, "vgg11": 512, "resnet18": 512}


def test_readouts_need_a_last_linear_layer():
    assert Ensemble(shared_bias, SHAPE, device="cpu").num_features == 0
    for name, number in OURS.items():
        ensemble = Ensemble(partial(nc.ARCHITECTURES[name].build, 1, 32, 1), (1, 32, 32))
        assert ensemble.num_features == number
    with pytest.raises(ValueError, match="linear layer.*readouts=1"):
        compute(10, nc.SmoothedGradient(4, readouts=2), factory=shared_bias)
    with pytest.raises(ValueError, match="28 readouts .*27"):
        compute(10, nc.SmoothedGradient(4, readouts=28))


# --- the tolerance


def simulated(networks, readouts, contributions, generator):
    """Gradients with one strong direction shared by the readouts, noise that halves as
    contributions double.
    """
    body = torch.randn(networks, 1, 1, 16, generator=generator)
    body[..., 0] *= 4
    sign = torch.randn(networks, readouts, 1, 1, generator=generator)
    return body * sign + 3 * torch.randn(networks, readouts, contributions, 16, generator=generator)


def test_the_error_told_is_the_error_there_is():
    exact = compute(20_000, nc.SmoothedGradient(4), batch_size=1024)
    claimed = []
    true = []
    for seed in range(1, 9):
        options = {"tolerance": 1e-9, "num_leading": 4, "debiasing": "subtract", "symmetries": ()}
        with pytest.warns(UserWarning, match="tolerance 1e-09 not reached after 512 networks"):
            nads = compute(512, nc.SmoothedGradient(4), seed=seed, **options)
        assert nads.provenance["num_networks"] == 512
        claimed.append(nads.provenance["error"])
        true.append(1 - nads.overlap(exact, 4))
    spread = math.hypot(np.std(claimed), np.std(true)) / math.sqrt(8)
    assert abs(np.mean(claimed) - np.mean(true)) < 4 * spread + 0.1 * np.mean(true)


@pytest.mark.parametrize(
    ("criterion", "block_size", "expected"),
    [
        ({"tolerance": 0.05}, 8, [8, 10, 12, 16, 20, 24]),
        ({"tolerance": 0.05}, 1024, [4, 5, 6, 7, 8, 9]),
        # Finding eigenpairs costs more: fewer checks
        ({"num_certain": 3}, 8, [8, 12, 18, 27, 40, 61]),
        ({}, 8, [math.inf]),
    ],
    ids=str,
)
def test_checks_become_rarer(criterion, block_size, expected):
    rule = StoppingRule(SHAPE, ComputeOptions(**criterion))
    assert [*islice(rule.check_schedule(block_size), 6)] == expected


@pytest.mark.parametrize("moments", [DenseMoments, GramMoments])
def test_groups_make_three_pairs_of_halves(moments):
    generator = torch.Generator().manual_seed(0)
    groups = [moments(16) for _ in range(4)]
    for group in groups:
        group.update(simulated(200, 1, 4, generator).flatten(0, 1))
    errors = []
    for halves in (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))):
        parts = [merged([groups[index] for index in half]) for half in halves]
        axes = [leading_subspace(part, 1, (1, 4, 4)) for part in parts]
        errors.append((1 - subspace_overlap(*axes)) / 4)
    expected = np.mean(errors), 2 * np.std(errors, ddof=1)
    assert subspace_error(groups, 1, (), (1, 4, 4)) == pytest.approx(expected)


def test_too_few_networks_leave_the_error_of_many_directions_unknown():
    generator = torch.Generator().manual_seed(0)
    groups = [GramMoments(16) for _ in range(4)]
    for group in groups:  # halves of 8 networks span 8 dimensions or fewer
        group.update(simulated(4, 1, 4, generator).flatten(0, 1))
    assert subspace_error(groups, 12, (), (1, 4, 4)) == (math.inf, 0.0)
    assert 0 < subspace_error(groups, 1, (), (1, 4, 4))[0] < 1
    rule = StoppingRule((1, 4, 4), ComputeOptions(tolerance=0.1, num_leading=12))
    met, values = rule.measure(SimpleNamespace(groups=groups))
    assert not met and json.loads(json.dumps(values, allow_nan=False))["error"] is None


def test_a_run_ends_when_the_directions_are_known():
    loose, tight = (
        compute(20_000, nc.SmoothedGradient(4), tolerance=t, num_leading=4) for t in (0.05, 0.02)
    )
    rule = StoppingRule(SHAPE, ComputeOptions(tolerance=0.1))
    checks = [64 * blocks for blocks in islice(rule.check_schedule(64), 40)]
    for nads, tolerance in ((loose, 0.05), (tight, 0.02)):
        assert nads.provenance["error_interval"][1] <= tolerance
        assert nads.provenance["num_networks"] in checks
    assert loose.provenance["num_networks"] < tight.provenance["num_networks"] < 20_000
    same = compute(tight.provenance["num_networks"], nc.SmoothedGradient(4))
    # The same networks, summed in four groups or in one: apart by rounding, 1e-8 on some
    # processors (by 4e-5 if one network is missing).
    assert tight.overlap(same, 10) > 1 - 1e-6


def test_a_tolerance_is_met_by_the_same_networks_after_an_interruption(tmp_path):
    path = tmp_path / "state.ckpt"
    options = {"tolerance": 0.02, "num_leading": 4}
    with pytest.warns(UserWarning, match="tolerance 0.02 not reached after 320 networks"):
        compute(64 * 5, nc.SmoothedGradient(4), checkpoint=path, **options)
    resumed = compute(20_000, nc.SmoothedGradient(4), checkpoint=path, **options)
    whole = compute(20_000, nc.SmoothedGradient(4), **options)
    assert resumed.provenance["num_networks"] == whole.provenance["num_networks"]
    assert same(resumed, whole)


def test_a_tolerance_needs_a_network_in_each_group():
    with pytest.raises(ValueError, match="193 networks .*192"):
        compute(192, nc.SmoothedGradient(4), tolerance=0.01)


@pytest.mark.parametrize(("dimension", "leading"), [(1, 1), (4, 3), (10, 9), (12, 10)])
def test_the_default_number_of_leading_directions(dimension, leading):
    options = ComputeOptions(tolerance=0.1 if dimension > 1 else None)
    assert StoppingRule((dimension,), options).num_leading == leading
