import json
import math

import pytest
import tables
import torch
from costs import main
from nads_book.benchmarks import load_costs, measure_network, prepared
from nads_book.benchmarks.measuring import CASES
from nads_book.benchmarks.own_loop import overlap, own_loop
from nads_book.benchmarks.plain_loop import z_score
from nads_book.benchmarks.roofline import (
    DATA_SHEETS,
    Limits,
    Work,
    count_work,
    data_sheet,
    measure_limits,
)
from torch import nn

import nads_core as nc
from nads_core.networks import Networks

SLOW = Limits("slow", 1e9, dict.fromkeys(("float32", "tf32", "bfloat16", "float64"), 1e9), cores=1)


def lenet():
    return nc.LENET.build(1, 32, 1)


def perceptron():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.ReLU(), nn.Linear(10, 1))


# --- the work that a network needs, counted by hand


def test_work_of_two_linear_layers():
    work = count_work(Networks(perceptron, (1, 8, 8)), nc.SmoothedGradient(6))
    multiplications = 64 * 10 + 10
    assert work.weights == 64 * 10 + 10 + 10 + 1
    assert work.forward == work.backward == 6 * 2 * multiplications
    # One triangle, for the two halves of the inputs.
    assert work.moments == 2 * 2 * 64 * 65 / 2
    assert work.weight_bytes == 4 * work.weights * 3
    assert work.activation_bytes == 4 * 6 * 11 * 2 * 2


def test_work_of_each_estimator_on_lenet():
    networks, num_weights = (
        Networks(lenet, (1, 32, 32)),
        sum(p.numel() for p in lenet().parameters()),
    )
    forward = 2 * (28**2 * 6 * 25 + 10**2 * 16 * 150 + 400 * 120 + 120 * 84 + 84)
    point, dipole, one, many, mixed = (
        count_work(networks, estimator)
        for estimator in (
            nc.PointGradient(),
            nc.Dipole(),
            nc.SmoothedGradient(16),
            nc.SmoothedGradient(16, readouts=8),
            nc.MixedDerivative(16),
        )
    )
    assert point.forward == point.backward == forward
    assert dipole.forward == 2 * 1024 * forward and dipole.backward == 0
    assert point.weight_bytes == 3 * 4 * num_weights
    # Readouts share the forward pass.
    assert many.forward == one.forward == mixed.forward == 16 * forward
    assert many.backward == 8 * one.backward and many.moments == 8 * one.moments
    assert many.weight_bytes == 4 * num_weights * (1 + 1 + 8)
    assert mixed.backward > 3 * one.backward
    halved = Networks(lenet, (1, 32, 32), dtype=torch.bfloat16)
    half = count_work(halved, nc.SmoothedGradient(16), dense=False)
    assert half.weight_bytes == one.weight_bytes / 2 and half.moments == 0
    assert half.activation_bytes == one.activation_bytes / 2


def test_the_larger_of_two_times_is_the_limit():
    work = Work(10, 2e9, 1e9, 1e9, 1e9, 0.5e9, 0.5e9)
    fast_memory = Limits("x", 1e12, SLOW.rates, cores=1)
    assert work.operations_seconds(SLOW) == 4 and work.bytes_seconds(SLOW) == 2
    assert work.seconds(SLOW) == 4 and work.seconds(Limits("x", 0.1e9, SLOW.rates)) == 20
    assert Work(30, 6e9, 3e9, 3e9, 3e9, 1.5e9, 1.5e9).seconds(fast_memory) == 12


def test_limits_are_those_of_a_data_sheet_or_of_a_computer():
    assert data_sheet("NVIDIA H200") is DATA_SHEETS["H200"] and data_sheet("NVIDIA L40S") is None
    limits = measure_limits(128, 4)
    assert limits.cores == torch.get_num_threads() and limits.bandwidth > 0
    assert set(limits.rates) == set(SLOW.rates) and min(limits.rates.values()) > 0


# --- measuring


def test_parts_of_a_network_add_up():
    run = prepared(perceptron, (1, 8, 8), nc.SmoothedGradient(2, readouts=2), device="cpu")
    result = measure_network(run, SLOW, seconds=0.01)
    assert set(result["parts"]) == {"draw", "gradients", "moments"}
    assert result["seconds_per_network"] == sum(result["parts"].values())
    assert min(result["parts"].values()) > 0
    limit = max(result["limit_seconds"].values())
    assert result["times_limit"] == result["seconds_per_network"] / limit
    json.dumps(result)


def test_the_time_that_a_network_takes_is_in_its_gradients():
    def slow(factory=perceptron):
        return nn.Sequential(factory(), Sleep())

    class Sleep(nn.Module):
        def forward(self, x):
            import time

            time.sleep(0.02)
            return x

    run = prepared(slow, (1, 8, 8), nc.PointGradient(), device="cpu")
    assert measure_network(run, SLOW, 0.01)["parts"]["gradients"] > 0.015


def test_the_plain_loop_finds_what_the_library_finds():
    def network():
        pooled = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1)
        return nn.Sequential(nn.Conv2d(1, 16, 3), nn.GELU(), *pooled)

    directions, certainty = own_loop(network, (1, 8, 8), 400, readouts=8)
    options = {"symmetries": (), "device": "cpu", "seed": 1, "progress": False}
    nads = nc.compute_nads(network, (1, 8, 8), 400, **options)
    assert overlap(directions, nads.directions[:1].flatten(1)) > 0.9
    assert 0.8 < certainty[0] <= 1 and nads.certainty[0] > 0.8


# --- the suite, its files and the tables


@pytest.mark.slow
def test_the_suite_writes_a_file_a_case(tmp_path):
    for more in ([], ["--large"]):
        main(["--quick", "--device", "cpu", "--out", str(tmp_path), *more])
    found = load_costs("cost", tmp_path)
    cases = {(cost["architecture"], cost["method"]) for cost in found}
    assert cases == {(name, case) for name in ("logreg", "lenet") for case in CASES}
    assert {"problem", "device", "torch", "commit", "date", "processor"} <= found[0].keys()
    assert [one["eigenvectors"]["kind"] for one in load_costs("scale", tmp_path)] == [
        "dense",
        "gram",
    ]
    (large,) = load_costs("first_directions", tmp_path)
    assert len(large["eigenvalues"]) <= 100 and set(large["first_directions"]) >= {"1"}


@pytest.mark.stored
def test_the_page_has_the_tables_of_the_stored_results():
    text = tables.PAGE.read_text("utf8")
    assert tables.rewrite(text) == text
    with pytest.raises(ValueError, match="zoo"):
        tables.rewrite(text.replace("<!-- table zoo -->", ""))


def test_means_of_equal_samples_are_equal_up_to_rounding():
    equal = torch.full((5,), 2.0)
    assert z_score(2.00001, equal, 10) == 0 and abs(z_score(2.1, equal, 10)) == math.inf
    assert z_score(4.0, torch.tensor([1.0, 3.0]), 2) == pytest.approx(2**0.5)
