import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from costs import first_directions, main
from nads_book.benchmarks import (
    load_costs,
    measure_eigenvectors,
    measure_network,
    seconds_per_step,
)
from nads_book.benchmarks.roofline import (
    DATA_SHEETS,
    Limits,
    Work,
    count_work,
    data_sheet,
    measure_limits,
)
from tables import rewrite, tables
from torch import nn

import nads_core as nc
from nads_core.directions import Passes
from nads_core.networks.ensembles import Ensemble

ROOT = Path(__file__).parent.parent
SLOW = Limits("slow", 1e9, dict.fromkeys(("float32", "tf32", "bfloat16", "float64"), 1e9), cores=1)


def lenet() -> nn.Module:
    return nc.LENET.build(1, 32, 1)


def ensemble(build=lenet, shape=(1, 32, 32), **options) -> Ensemble:
    return Ensemble(build, shape, device="cpu", **options)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.ReLU(), nn.Linear(10, 1))


# --- the work that a network needs, counted by hand


def test_work_of_two_linear_layers():
    work = count_work(ensemble(perceptron, (1, 8, 8)), nc.SmoothedGradient(6))
    multiplications = 64 * 10 + 10
    assert work.weights == 64 * 10 + 10 + 10 + 1
    assert work.forward == work.backward == 6 * 2 * multiplications
    assert (
        work.moments == 2 * 2 * 64 * 65 / 2
    )  # one triangle, for the mean of two halves and their half difference
    assert work.weight_bytes == 4 * work.weights * 3
    assert work.activation_bytes == 4 * 6 * 11 * 2 * 2


def test_work_of_lenet():
    forward = 2 * (28**2 * 6 * 25 + 10**2 * 16 * 150 + 400 * 120 + 120 * 84 + 84)
    networks = ensemble()
    one, dipole = count_work(networks, nc.PointGradient()), count_work(networks, nc.Dipole())
    assert one.forward == one.backward == forward
    assert dipole.forward == 2 * 1024 * forward and dipole.backward == 0
    assert one.weight_bytes == 3 * 4 * networks.num_parameters


def test_readouts_share_the_forward_pass():
    networks = ensemble()
    one, many = (count_work(networks, nc.SmoothedGradient(16, readouts=r)) for r in (1, 8))
    assert (
        many.forward == one.forward
        and many.backward == 8 * one.backward
        and many.moments == 8 * one.moments
    )
    assert many.weight_bytes == 4 * networks.num_parameters * (1 + 1 + 8)


def test_work_of_an_estimator_of_ones_own_is_what_it_says():
    class Thrice(nc.PointGradient):
        num_contributions = 3

        def passes(self, dimension):
            return Passes(forward=dimension, backward=5)

    networks = ensemble(perceptron, (1, 8, 8))
    one, own = count_work(networks, nc.PointGradient()), count_work(networks, Thrice())
    assert own.forward == 64 * one.forward and own.backward == 5 * one.backward
    assert own.moments == 2 * one.moments


def test_resnet18_with_sixteen_inputs_is_35_gigaflop():
    work = count_work(ensemble(partial(nc.RESNET18.build, 1, 32, 1)), nc.SmoothedGradient(16))
    assert work.forward + work.backward == pytest.approx(35.5e9, rel=0.01)


def test_mixed_derivative_passes_through_the_network_more_than_twice():
    networks = ensemble()
    mixed, smoothed = (
        count_work(networks, kind(16)) for kind in (nc.MixedDerivative, nc.SmoothedGradient)
    )
    assert mixed.forward == smoothed.forward and mixed.backward > 3 * smoothed.backward


def test_bfloat16_halves_the_bytes_and_vectors_need_no_outer_products():
    single, half = (
        count_work(ensemble(dtype=d), nc.SmoothedGradient(4))
        for d in (torch.float32, torch.bfloat16)
    )
    assert (
        half.weight_bytes == single.weight_bytes / 2
        and half.activation_bytes == single.activation_bytes / 2
    )
    assert count_work(ensemble(), nc.SmoothedGradient(4), dense=False).moments == 0


def test_the_larger_of_two_times_is_the_limit():
    work = Work(10, 2e9, 1e9, 1e9, 1e9, 0.5e9, 0.5e9)
    fast_memory = Limits("x", 1e12, SLOW.rates, cores=1)
    assert work.operations_seconds(SLOW) == 4 and work.bytes_seconds(SLOW) == 2
    assert work.seconds(SLOW) == 4 and work.seconds(Limits("x", 0.1e9, SLOW.rates)) == 20
    assert (
        Work(30, 6e9, 3e9, 3e9, 3e9, 1.5e9, 1.5e9).seconds(fast_memory) == 12
        and work.precision == "float32"
    )


def test_data_sheets_are_found_by_the_names_of_devices():
    assert data_sheet("NVIDIA H200") is DATA_SHEETS["H200"]
    assert data_sheet("NVIDIA L40S") is None


def test_measured_limits_are_those_of_a_computer():
    limits = measure_limits(128, 4)
    assert limits.cores == torch.get_num_threads()
    assert (
        all(1e8 < rate < 1e14 for rate in limits.rates.values()) and 1e8 < limits.bandwidth < 1e13
    )


# --- measuring


@pytest.mark.parametrize(
    "estimator", [nc.SmoothedGradient(2, readouts=2), nc.PointGradient(), nc.Dipole()], ids=repr
)
def test_parts_of_a_network_add_up(estimator):
    result = measure_network(ensemble(perceptron, (1, 8, 8)), estimator, SLOW, seconds=0.01)
    assert result["seconds_per_network"] == sum(result["parts"].values())
    assert (
        set(result["parts"]) == {"draw", "gradients", "moments"}
        and min(result["parts"].values()) > 0
    )
    assert result["times_limit"] == result["seconds_per_network"] / max(
        result["limit_seconds"].values()
    )
    assert result["peak_memory_bytes"] is None or result["peak_memory_bytes"] > 1e7
    json.dumps(result)


def test_the_time_that_a_network_takes_is_in_its_gradients():
    def slow(factory=perceptron):
        return nn.Sequential(factory(), Sleep())

    class Sleep(nn.Module):
        def forward(self, x):
            import time

            time.sleep(0.02)
            return x

    result = measure_network(ensemble(slow, (1, 8, 8)), nc.PointGradient(), SLOW, 0.01)["parts"]
    assert (
        result["gradients"] * torch.get_num_threads() > 0.02
    )  # each thread sleeps for networks of its own


@pytest.mark.parametrize(("dimension", "kind"), [(64, "dense"), (9_000, "gram")])
def test_eigenvectors_of_either_side(dimension, kind):
    result = measure_eigenvectors(dimension, 40, 5)
    assert result["kind"] == kind and result["seconds"] > 0 and result["num_vectors"] == 40


def test_first_directions_of_a_network_with_a_strong_preference():
    class Wave(nn.Module):
        """Sees one direction of a large input, and a little of everything."""

        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.randn(1))
            self.rest = nn.Parameter(1e-3 * torch.randn(3, 56, 56))

        def forward(self, x):
            return self.scale * x.mean((1, 2, 3)) * 97 + (x * self.rest).sum((1, 2, 3))

    nads, result = first_directions(
        Wave,
        (3, 56, 56),
        nc.SmoothedGradient(2),
        256,
        count=3,
        compared=(1,),
        device="cpu",
        progress=False,
    )
    assert len(nads) == 3 and nads.directions.shape[1:] == (3, 56, 56)
    known = result["first_directions"]["1"]
    assert known["half_overlap"] > 0.9 and known["chance"] == 1 / 9408
    with pytest.raises(ValueError, match="256 networks, got num_networks = 255"):
        first_directions(Wave, (3, 56, 56), nc.SmoothedGradient(2), 255, device="cpu")
    flat = torch.ones(1, 3, 56, 56) / 9408**0.5
    assert nads.overlap(flat, 1) > 0.9
    assert result["stated_bytes"] > 2 * 256 * 9408 * 4


# --- the suite, its files and the tables


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    pytest.importorskip("torchvision")
    folder = tmp_path_factory.mktemp("benchmarks") / "results"
    options = ["--quick", "--device", "cpu", "--out", str(folder)]
    assert (
        main([*options, "--architectures", "logreg", "--cases", "smoothed-16-bfloat16", "point"])
        == 0
    )
    assert main([*options, "--large"]) == 0
    return folder


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--large", "--kernels", "triton"], "kernels"),
        (["--large", "--no-scale"], "scale"),
        (["--quick", "--device", "gpu"], "device 'gpu'"),
    ],
)
def test_options_that_do_not_apply_are_rejected(tmp_path, capsys, arguments, named):
    with pytest.raises(SystemExit, match="2"):
        main(["--out", str(tmp_path / "results"), *arguments])
    assert named in capsys.readouterr().err and not (tmp_path / "results").exists()


@pytest.mark.slow
def test_a_file_a_case(results):
    names = {path.name for path in results.iterdir()}
    assert {"cost-logreg-point-cpu.json", "cost-logreg-smoothed-16-bfloat16-cpu.json"} < names
    assert sum(name.startswith("scale-") for name in names) == 2
    assert not any("partial" in name for name in names)
    (cost, _) = load_costs("cost", results)
    assert {"problem", "method", "device", "torch", "commit", "date", "processor"} <= cost.keys()
    (large,) = load_costs("large", results)
    assert len(large["eigenvalues"]) <= 100 and set(large["first_directions"]) >= {"1"}
    (path,) = results.glob("large-*.npz")
    with np.load(path) as pictures:
        assert (
            pictures["directions"].shape[1:] == (3, 56, 56) and np.isfinite(pictures["scale"]).all()
        )


@pytest.mark.slow
def test_tables_hold_what_the_files_say(results):
    page = results.parent / "README.md"
    page.write_text(
        "# Page\n\n<!-- made by python benchmarks/tables.py -->\nold\n<!-- end -->\n\nafter\n"
    )
    text = rewrite(page.read_text(), results)
    assert text.startswith("# Page\n") and text.endswith("\n\nafter\n") and "old" not in text
    for expected in ("| logreg | point |", "smoothed-16-bfloat16", "3 × 56 × 56", "first 100 NADs"):
        assert expected in text
    assert rewrite(text, results) == text
    columns = {
        line.count("|") for line in tables(results).splitlines() if line.startswith("| logreg")
    }
    assert columns == {13, 11}


def test_a_page_without_markers_is_refused():
    with pytest.raises(ValueError, match="lacks the lines"):
        rewrite("# Page", ROOT / "benchmarks" / "results")


def test_the_page_shows_the_files_beside_it():
    page = (ROOT / "benchmarks" / "README.md").read_text("utf8")
    assert rewrite(page, ROOT / "benchmarks" / "results") == page, (
        "run `python benchmarks/tables.py`"
    )


def test_a_step_of_training_is_timed():
    state = torch.get_rng_state()
    assert seconds_per_step(nc.LENET, (1, 16, 16), nc.Recipe(batch_size=2)) > 0
    assert torch.equal(torch.get_rng_state(), state)


def test_models_of_the_zoo_are_right_or_rejected():
    rows = json.loads((ROOT / "benchmarks/results/zoo.json").read_text("utf8"))
    assert len(rows) > 100 and all(row["expected"] for row in rows.values())
    ran = [row for row in rows.values() if row["result"] == "ran"]
    scores = [row[name] for row in ran for name in ("z_trace", "z_energy") if row[name] is not None]
    assert max(map(abs, scores)) < 4 and 0.8 < np.std(scores) < 1.3
    assert all(row["message"] for row in rows.values() if row["result"] != "ran")
