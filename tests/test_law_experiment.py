"""Networks with frozen first filters, their directions, and the score of the preregistered
experiment.
"""

import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from nads_book.analysis.prediction import GainCorrection, filter_gain, predicted_accuracy
from nads_book.experiments import Context
from nads_book.studies import experiment, trainings
from nads_book.studies.gain import first_layer, frozen_network, judge, load_design
from nads_book.studies.presets import MODELS
from numpy.testing import assert_allclose

import nads_core as nc
from nads_core.runtime.provenance import fingerprint
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import TrainConfig, train_new

FOLDER = Path(__file__).parents[1] / "book" / "preregistered"
REGISTERED = tomllib.loads((FOLDER / "law.toml").read_text("utf8"))
SMALL = nc.Recipe(epochs=2, batch_size=32)
V = torch.ones(1, 32, 32) / 32


def small_data(count=1):
    return nc.SeparableDatasets(V.expand(count, 1, 32, 32), 64, margin=1.0, noise_std=1.0)


def weights(network):
    return {name: tensor.clone() for name, tensor in first_layer(network).state_dict().items()}


def initial(factory, network_id, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed_sequence(seed, 2, network_id))
        return factory()


def same(first, second):
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


@pytest.mark.parametrize("name", ["lenet", "cnn", "resnet18"])
def test_training_does_not_change_frozen_filters(name):
    options = {"width": 2} if name == "resnet18" else {}
    architecture = MODELS[name].variant(**options)
    free = partial(architecture.build, 1, 32, 2)
    config = TrainConfig(SMALL, device=torch.device("cpu"))

    def filters(factory, number):
        network, _ = train_new(factory, number, small_data()[0], None, config)
        return weights(network)

    for taught in (None, weights(initial(free, 5))):
        factory = partial(frozen_network, architecture, taught)
        for number in range(2):
            start = initial(free, number)
            assert same(filters(factory, number), taught or weights(start))
            rest = dict(initial(factory, number).named_parameters())  # begin as a free network's
            assert rest and all(
                torch.equal(values, start.get_parameter(key)) for key, values in rest.items()
            )
    assert not same(filters(free, 0), weights(initial(free, 0)))


def test_arms_have_the_initial_and_the_learned_filters_of_the_free_network(monkeypatch):
    job = experiment("law-lenet", "smoke")
    unit = job.units()[3]
    trained = []
    record = lambda factory, number, *_, **__: trained.append((factory, number)) or (None, None)  # noqa: E731
    monkeypatch.setattr(trainings, "train_new", record)
    monkeypatch.setattr(type(job), "row", lambda self, result: {})
    free = partial(job.architecture.build, 1, 32, 2)
    learned = initial(free, 99)
    assert list(job.measure(unit, Context(), learned)) == ["frozen", "taught"]
    known = initial(free, 3), learned
    for (factory, number), network in zip(trained, known, strict=True):
        assert number == 3
        assert same(weights(initial(factory, number)), weights(network))


def test_the_record_of_one_network_has_numbers():
    data = small_data()
    options = {"recipe": SMALL, "device": "cpu", "progress": False}
    record = experiment("law-lenet", "smoke").row(
        nc.train_networks(nc.LOGREG, data, data, **options)
    )
    assert {type(value) for value in record.values()} == {float}


@pytest.mark.parametrize(("name", "side"), [("lenet", 5), ("cnn", 3), ("resnet18", 3)])
def test_energy_and_gain_of_a_design_are_those_of_its_directions(name, side):
    preset = "narrow" if name == "resnet18" else "paper"
    design = load_design(name)
    job = experiment(f"law-{name}", preset)
    images = design["images"]
    assert REGISTERED["designs"][name] == job.settings()["directions"] == fingerprint(images)
    assert len(job.units()) == len(images) * (1 if name == "resnet18" else 2)
    directions = torch.stack([job.direction(unit) for unit in job.units()[: len(images)]])
    torch.testing.assert_close(directions.flatten(1).norm(dim=1), torch.ones(len(images)))
    assert_allclose(filter_gain(directions, side), design["gains"], rtol=1e-5)
    logs = np.log([design[key] for key in ("energies", "ratios", "gains")])
    assert np.abs(np.corrcoef(logs)[2, :2]).max() < 0.02
    if name != "cnn":  # whose C does not ship
        nads = nc.load_nads(name)
        energies = nads.energy(directions) / nads.eigenvalues.mean()
        assert_allclose(energies, design["energies"], rtol=1e-3)


def rows_of(design, **arms):
    """Return rows in which the accuracy of each arm follows a law up to the noise of trainings."""
    rng = np.random.default_rng(0)
    count = len(design["gains"])
    noisy = {
        arm: np.clip(values + rng.normal(0, 0.01, (2, count)), 0, 1) for arm, values in arms.items()
    }
    rows = []
    for seed, index in np.ndindex(2, count):
        found = {arm: {"test_accuracy": values[seed, index]} for arm, values in noisy.items()}
        rows.append({"index": index, "seed": seed} | found.pop("free") | found)
    return rows


GAIN = {"gain matters, free", "gain brings the law closer, free"}
GAIN |= {"closer than any function of energy, free"}
HALF = "gain matters less than half as much, frozen"
TAUGHT = "gain matters, taught"
FROZEN = {"law is close, frozen", "law is closer than a step, frozen"}


@pytest.mark.parametrize(
    ("free", "frozen", "taught", "failing"),
    [
        ("gain", "law", "gain", set()),
        ("law", "law", "law", GAIN | {HALF, TAUGHT}),
        ("gain", "gain", "law", FROZEN | {HALF, TAUGHT}),  # random filters see the gain, too
        ("none", "none", "none", GAIN | FROZEN | {HALF, TAUGHT, "new directions, free"}),
    ],
)
def test_the_score_meets_the_criteria_of_the_rule_that_accuracies_follow(
    free, frozen, taught, failing
):
    design = load_design("lenet")
    correction = GainCorrection(tuple(REGISTERED["constants"]["with_gain"]))
    ratios = design["ratios"]
    follow = {
        "law": predicted_accuracy(ratios),
        "gain": correction.accuracies(ratios, design["gains"]),
        "none": np.random.default_rng(1).uniform(0.55, 0.95, len(ratios)),
    }
    arms = {"free": follow[free], "frozen": follow[frozen], "taught": follow[taught]}
    rows = rows_of(design, **arms)
    evidence = judge(rows, design, REGISTERED)
    assert len(evidence.met) == 8
    assert {name for name, holds in evidence.met.items() if not holds} == failing
    if not failing:
        found = evidence.estimates
        assert found["free"]["with_gain, all"][0] < 1 < 5 < found["free"]["isotonic, held_out"][0]
        assert found["frozen"]["law, all"][0] < 1 and abs(found["frozen"]["slope"][0]) < 0.3
        with pytest.raises(ValueError, match="2 of 480 .*'index': 7"):
            experiment("law-lenet", "paper").score([row for row in rows if row["index"] != 7])
