"""What pages draw and compute from a reader's choices, and verdicts that follow from more than one
changed row.
"""

import copy
import dataclasses
import json
import math

import nads_book as nb
import numpy as np
import pytest
import torch
from conftest import ROOT
from convergence import random_nads
from nads_book.experiments import load_study
from nads_book.pages import (
    atlas,
    explorer,
    nads_and_generalization,
    poison_trial,
    pooling_theory,
    training,
)
from torch import nn

import nads_core as nc


def decide(claim):
    return nb.pages.decisions()[claim]()


# 01, 02, 03


def test_the_lines_on_the_page_find_what_the_library_finds():
    notebook = ROOT / "notebooks/02_nads_in_one_page.ipynb"
    cells = json.loads(notebook.read_text("utf8"))["cells"]
    (source,) = [text for c in cells if "def compute_nads" in (text := "".join(c["source"]))]
    names, shape, count = {"torch": torch}, (1, 6, 6), 400
    exec(source, names)

    def network():
        return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(48, 1))

    torch.manual_seed(3)
    values, directions = names["compute_nads"](network, count, 16, shape)
    options = {"estimator": nc.SmoothedGradient(64), "symmetries": (), "progress": False}
    nads = nc.compute_nads(network, shape, count, **options)
    # Networks differ: the trace varies by about sqrt(2 / count) of itself per eigenvalue
    trace = float(nads.eigenvalues.sum())
    assert float(values.sum()) == pytest.approx(trace, rel=4 * (2 / count) ** 0.5)
    assert nads.overlap(directions.float(), 4) > 4 * 4 / 36


# 04, 05, 06


# 07: what a reader runs


def own():
    """Return a network of the reader's own."""
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"architecture": "foo"}, "architecture.*'foo'"),
        ({"preset": "x"}, "preset.*'x'"),
        ({"nads_of": "/nope.npz"}, "/nope.npz"),
        ({"architecture": "torch.nn:Flatten"}, "weights"),
    ],
)
def test_parameters_are_checked_before_any_training(options, shown):
    with pytest.raises((ValueError, FileNotFoundError), match=shown):
        poison_trial.Trial(**{"preset": "smoke", "dataset": "generated"} | options)


@pytest.fixture
def trial(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return poison_trial.Trial("smoke", f"{__name__}:own", dataset="generated")


def test_a_network_of_the_reader_is_trained_on_each_version(trial):
    images = trial.train.images
    found = trial.accuracies({"clean": images, "again": images, "black": images * 0})
    assert found["clean"] == found["again"]  # the same first weights and batches
    assert found["black"] == pytest.approx(0.1, abs=0.02)
    (axis,) = trial.plot(found).axes
    dots = [container.lines[0].get_xdata()[0] for container in axis.containers]
    assert dots == pytest.approx([100 * x for x in found.values()])


def test_one_rule_reads_the_classes_of_poisoned_images_and_not_those_of_others():
    nads, labels = random_nads(1, 8, 8), torch.arange(40) % 10
    images = torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    for index in (0, 30):
        poisoned = nc.poison(images, labels, nads, index, 0.05)
        assert (poison_trial.read_classes(poisoned, nads, index, 0.05) == labels).all()
    assert (poison_trial.read_classes(images, nads, 0, 0.05) == labels).double().mean() < 0.6


@pytest.mark.parametrize(
    ("claim", "module", "name", "change"),
    [
        ("energy-predicts", nads_and_generalization, "energies", np.random.default_rng(0).permuted),
        (
            "silent-waves",
            pooling_theory,
            "published_accuracies",
            lambda found: dict.fromkeys(found, 0.9),
        ),
        (
            "response-orders",
            pooling_theory,
            "published_accuracies",
            lambda found: {k: 1 - value for k, value in found.items()},
        ),
        ("first-step-closed-form", training, "first_change", lambda found: 1.2 * found),
        ("signature", explorer, "overlaps", lambda found: dict.fromkeys(found, (0.99, 0.98, 1.0))),
    ],
)
def test_other_numbers_change_the_verdict(monkeypatch, claim, module, name, change):
    real = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *arguments: change(real(*arguments)))
    assert decide(claim).holds is False


@pytest.mark.parametrize(
    ("claim", "name", "measure", "value"),
    [
        ("downsampling-first", "cnn-global", "alignment", 0.01),
        ("comb-parts", "resnet-flat", "comb", 14.0),
        ("nonlinearities-down", "cnn-linear", "high", 0.9),
    ],
)
def test_an_altered_measure_falsifies_the_claim(monkeypatch, claim, name, measure, value):
    found = atlas.load_atlas()
    measures = copy.deepcopy(found.measures)
    sharp = dataclasses.replace(measures[name][measure], value=value, error=1e-6)
    measures[name][measure] = sharp
    other = dataclasses.replace(found, measures=measures)
    monkeypatch.setattr(atlas, "load_atlas", lambda: other)
    assert not decide(claim).holds


# 11


# 12, 13


def test_accuracies_in_the_order_of_energies_would_let_the_choice_succeed(edit_stored):
    scores = load_study("pooling.json")["prediction"]

    def by_energy(row):
        row["test_accuracy"] = 0.5 + 0.01 * math.log10(scores[row["pooling"]][row["data"]][0])

    edit_stored("pooling.json", by_energy)
    found = decide("energy-chooses-pooling")
    assert not found.holds and found.value == pytest.approx(1)
