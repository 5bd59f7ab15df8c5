"""The factorial of chapter 12: its design, its analysis on made-up accuracies, and one training."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from nads_book.studies import forgetting as script
from nads_book.studies.forgetting import (
    CELLS,
    MIDDLE,
    SEEDS,
    WAVES,
    Cell,
    accuracies,
    contrasts,
    effects,
    orders,
    waves,
)

import nads_core as nc

ENERGIES = np.geomspace(1, 0.01, WAVES)


def rows(accuracy):
    return [
        {
            "cell": asdict(cell),
            "wave": list(wave),
            "seed": seed,
            "test_accuracies": [0.5, accuracy(cell, place, seed)],
        }
        for cell in CELLS
        for place, wave in enumerate(waves())
        for seed in SEEDS
    ]


def test_contrasts_compare_cells_that_differ_in_one_factor():
    sides = contrasts()
    for name, (first, second) in sides.items():
        assert first and len(first) == len(second), name
    for treated, without in zip(*sides["label noise"], strict=True):
        assert replace(treated, label_noise=0.0) == without
    for treated, without in zip(*sides["weight decay"], strict=True):
        assert replace(treated, weight_decay=0.0) == without
    for low, usual in zip(*sides["low rate, sgd"], strict=True):
        assert low.rate < usual.rate and replace(low, rate=usual.rate) == usual


def test_energies_order_accuracies():
    falling = np.linspace(0.9, 0.5, WAVES)
    found = orders(ENERGIES, np.stack([falling, falling]))
    assert (
        found["area"] == 1
        and found["correlation"] == pytest.approx(1)
        and found["learned"] == sum(falling > 0.55)
    )
    assert orders(ENERGIES, np.stack([falling[::-1]] * 2))["area"] == 0
    assert np.isnan(orders(ENERGIES, np.full((2, WAVES), 0.5))["area"])  # nothing is learned


def test_effects_are_those_put_in(monkeypatch):
    generator = np.random.default_rng(0)
    noise = generator.normal(0, 0.002, (len(CELLS), WAVES, len(SEEDS)))

    def accuracy(cell, place, seed):
        value = 0.9 - 0.02 * place - 0.05 * bool(cell.label_noise)
        value += 0.03 * (cell.optimiser == "sgd" and cell.rate == 2.0)
        if cell.optimiser == "adam":  # the reverse order
            value = 0.9 - 0.02 * (WAVES - 1 - place)
        return value + noise[CELLS.index(cell), place, seed]

    monkeypatch.setattr(script, "DRAWS", 100)
    found = effects(accuracies(rows(accuracy)))
    value, low, high = found["label noise"]["middle"]  # the cells of Adam have none
    assert value == pytest.approx(-5 * 2 / 3, abs=0.2) and low < value < high
    assert found["high rate, sgd"]["middle"][0] == pytest.approx(3, abs=0.2)
    assert found["weight decay"]["middle"][0] == pytest.approx(0, abs=0.2)
    assert found["adam"]["correlation"][0] == pytest.approx(-2, abs=0.1)
    assert found["adam"]["correlation"][2] < -1.5


def test_trainings_in_a_shared_step_agree_with_single_ones(monkeypatch):
    """Easy data, few epochs: what is compared has left chance, and rounding has not grown yet."""
    monkeypatch.setattr(script, "NUM_SAMPLES", 1_000)
    monkeypatch.setattr(script, "NOISE_STD", 0.4)
    monkeypatch.setattr(
        nc, "SEPARABLE_RECIPE", replace(nc.SEPARABLE_RECIPE, epochs=5, clip_norm=0.1)
    )
    cells = [
        Cell("logreg", label_noise=0.2, weight_decay=0.1),
        Cell("logreg", "momentum", rate=0.05, overlap=1.0),
        Cell("logreg", "adam", rate=1e-3, weight_decay=20.0),
        Cell("lenet", "adam", rate=1e-3, label_noise=0.2),
    ]
    learned = 0
    for cell in cells:
        tasks = [(waves()[0], seed) for seed in SEEDS]
        monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
        together = script.train_together(cell, tasks, torch.device("cpu"))
        assert not torch.backends.cudnn.allow_tf32
        for task, row in zip(tasks, together, strict=True):
            alone = script.train_one(cell, *task)
            assert row["train_accuracy"] == pytest.approx(alone["train_accuracy"], abs=0.005)
            reached = [value for value in alone["test_accuracies"] if value is not None]
            assert [
                value for value in row["test_accuracies"] if value is not None
            ] == pytest.approx(reached, abs=0.01)
            learned += reached[-1] > 0.6
    assert learned >= 6


def test_a_margin_that_varies_makes_classes_overlap():
    direction = nc.fourier_direction((0, 4), size=32)
    images, labels = script.dataset(direction, Cell(), 0)
    separated = (images * direction).sum((1, 2, 3)) * (2 * labels - 1)
    torch.testing.assert_close(separated, torch.ones_like(separated), atol=1e-4, rtol=0)
    images, labels = script.dataset(direction, Cell(overlap=1.0), 0)
    margins = (images * direction).sum((1, 2, 3)) * (2 * labels - 1)
    assert (
        float((margins < 0).double().mean()) == pytest.approx(0.159, abs=0.02)
        and float(margins.std()) > 0.9
    )
    assert MIDDLE == slice(4, -4)


def test_the_registered_rule_compares_effects_with_their_ranges(monkeypatch):
    """Label noise that costs ten points more than the other treatments, and an incomplete
    design.
    """
    monkeypatch.setattr(script, "DRAWS", 20)
    study = script.Forgetting()
    everything = rows(lambda cell, place, seed: 0.9 - 0.02 * place - 0.1 * bool(cell.label_noise))
    evidence = study.score(everything)
    assert evidence.estimates["label noise"]["middle"][0] == pytest.approx(-10, abs=1e-6)
    ranges = study.registered["effects"]
    low, high = ranges["label noise"]["middle"]
    assert evidence.met["label noise, middle"] == (low <= -10 <= high)
    assert len(evidence.met) == 2 * len(ranges) == 2 * len(contrasts())
    with pytest.raises(ValueError, match="1 of 1376"):
        study.score(everything[1:])
