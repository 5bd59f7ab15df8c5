"""The contest on architecture search: published baselines, its split, and correlations that are
known.
"""

import numpy as np
import pytest
import torch
from nads_book.studies import nas
from nads_book.studies import nas_contest as nas_score


def test_published_baselines_are_reproduced_to_the_third_decimal():
    table = nas_score.proxies()["cifar10"]
    columns = {
        name: np.array([record[name] for record in table.values()])
        for name in next(iter(table.values()))
    }
    found = nas_score.compare(columns | {"noise": columns["jacov"]}, "noise")
    published = {
        "jacov": 0.747,
        "synflow": 0.737,
        "params": 0.693,
        "flops": 0.663,
        "rank sum": 0.876,
    }
    assert {name: round(found[name][0], 3) for name in published} == published
    assert found["over jacov"] == (0, 0, 0) and found["alone"] == found["jacov"]
    assert 0.42 < min(found[f"upper half, {name}"][0] for name in nas_score.BASELINES)
    assert max(found[f"upper half, {name}"][0] for name in nas_score.BASELINES) < 0.495


def wrong_networks(every):
    """Return a part of the cells and keys whose networks have other numbers of parameters than the
    tables say.
    """

    def count(network):
        return sum(parameter.numel() for parameter in network.parameters())

    sizes = {"cifar10": 10, "cifar100": 100, "ImageNet16-120": 120}
    cells = [
        (cell, name, round(1e6 * record["params"]))
        for name in sizes
        for cell, record in list(nas.proxies()[name].items())[::every]
    ]
    keys = nas.macro_keys()[::every]
    with torch.device("meta"):  # parameters without values
        wrong = [
            (name, cell)
            for cell, name, params in cells
            if count(nas.nas_bench_201(cell, sizes[name])) != params
        ]
        macro = nas.macro()
        wrong += [
            key for key in keys if count(nas.nas_bench_macro(key)) != round(macro[key]["params"])
        ]
    assert every > 1 or len(cells) + len(keys) == 3 * 491 + 300
    return wrong


@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.slow)])
def test_networks_have_as_many_parameters_as_the_tables_say(every):
    assert wrong_networks(every) == []


def test_weights_are_those_behind_the_stored_rows():
    torch.manual_seed(0)
    weights = torch.nn.utils.parameters_to_vector(nas.nas_bench_201("012340").parameters())
    assert weights.double().sum().item() == pytest.approx(1419.46593, rel=1e-6)


def test_a_cell_is_the_sum_over_its_paths():
    cell = nas.Cell("040000", 4).eval()  # pooling on edge (0, 2); identities on all others
    x = torch.randn(2, 4, 8, 8)
    second = cell.edges[1](x) + x  # node 2: from node 0 by pooling, and from node 1
    assert torch.allclose(cell(x), x + x + second)
    assert not nas.Cell("111111", 4)(x).any()


@pytest.mark.parametrize("cell", ["04033", "0403322", "040335", "cell"])
def test_what_is_no_cell_is_rejected_before_any_network_is_built(cell):
    with pytest.raises(ValueError, match=cell):
        nas.nas_bench_201(cell)


def test_operations_on_no_path_are_not_counted():
    assert [nas.on_paths(cell) for cell in ("111111", "110111", "224112", "414011")] == [
        "",
        "0",
        "242",
        "4",
    ]
    assert nas.on_paths("234234") == "234234"  # no edge is missing


def test_isomorphic_cells_are_in_the_same_half():
    classes = {cell: row["class"] for cell, row in nas_score.all_cells().items()}
    cells = list(nas_score.proxies()["cifar10"])
    halves = {}
    for cell in classes:
        halves.setdefault(classes[cell], set()).add(nas_score.chosen_on(cell))
    assert all(len(half) == 1 for half in halves.values()) and len(halves) < len(classes)
    assert 0.4 < np.mean([nas_score.chosen_on(cell) for cell in cells]) < 0.6


def test_a_score_that_adds_something_raises_the_sum():
    generator = np.random.default_rng(1)
    accuracy = generator.normal(size=300)
    known = {name: accuracy + generator.normal(size=300) for name in (*nas_score.BASELINES, "good")}
    columns = known | {"val_accuracy": accuracy, "noise": generator.normal(size=300)}
    good, noise = (nas_score.compare(columns, name) for name in ("good", "noise"))
    assert good["gain"][1] > 0 > noise["gain"][2]
    assert noise["alone"][1] < 0 < noise["alone"][2]


def test_networks_without_a_path_rank_last():
    row = {"between": 2.0, "within": 4.0, "trace": 1.0, "squares": 0.5, "heaviness": 1.5}
    row |= {"between_each": 1.0, "components_10": 0.3, "components_50": 0.6}
    found = nas_score.scores(row)
    rejected = nas_score.scores({"rejected": "no path"})
    assert found["between over within"] == 0.5 and found["more directions"] == -0.5
    assert all(rejected[name] < value for name, value in found.items())
    assert nas_score.ranks(np.array([-np.inf, 3, 1, -np.inf])) == pytest.approx(
        [0.25, 0.875, 0.625, 0.25]
    )
