import pytest
import tables
from costs import main
from nads_book.benchmarks import load_costs
from nads_book.benchmarks.counting import count_work
from nads_book.benchmarks.measuring import CASES
from nads_book.benchmarks.own_loop import own_loop
from torch import nn

import nads_core as nc
from nads_core.networks import Networks

# --- the work that a network needs, counted by hand


def test_work_of_each_estimator_on_lenet():
    networks = Networks(lambda: nc.LENET.build(1, 32, 1), (1, 32, 32))
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
    assert point["forward"] == point["backward"] == forward
    assert dipole["forward"] == 2 * 1024 * forward and dipole["backward"] == 0
    # Readouts share the forward pass.
    assert many["forward"] == one["forward"] == mixed["forward"] == 16 * forward
    assert many["backward"] == 8 * one["backward"]
    assert mixed["backward"] > 3 * one["backward"]


# --- measuring


@pytest.mark.slow
def test_the_plain_loop_finds_what_the_library_finds():
    def network():
        pooled = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1)
        return nn.Sequential(nn.Conv2d(1, 16, 3), nn.GELU(), *pooled)

    directions, certainty = own_loop(network, (1, 8, 8), 400, readouts=8)
    options = {"symmetries": (), "device": "cpu", "seed": 1, "progress": False}
    nads = nc.compute_nads(network, (1, 8, 8), 400, **options)
    assert nads.overlap(directions.view(64, 1, 8, 8), k=1) > 0.9
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


def test_a_card_decides_about_the_kernel_by_the_rule():
    def calls(name, *seconds):
        facts = {"part": "calls", "network": name, "networks": 100, "parts": {"draw": 0.001}}
        kinds = zip(("plain loop", "torch", "triton"), seconds, strict=False)
        return [facts | {"method": method, "seconds": x} for method, x in kinds]

    rows = [*calls("vit", 10, 1, 0.8), *calls("cnn", 10, 1, 0.9), *calls("lenet", 10, 1)]
    table, gains = tables._calls([*rows, {"network": "mlp", "method": "torch", "error": "memory"}])
    told = "With the kernel: vit, cnn. At least 1.2 times as fast: vit. Failed: mlp (torch)."
    assert gains == told
    assert [row[5:7] for row in table] == [["10.0", "1.25"], ["10.0", "1.11"], ["10.0", ""]]
    assert table[0][-1] == "draw 10 %"
