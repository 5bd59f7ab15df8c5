"""Networks with frozen first filters, their directions, and the score of the preregistered
experiment.
"""

import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from nads_book.experiments import Context
from nads_book.studies import experiment, trainings
from nads_book.studies.gain import first_layers, frozen_network, load_design
from nads_book.studies.presets import MODELS
from nads_book.theory.first_step import filter_gain
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
    return {name: tensor.clone() for name, tensor in first_layers(network)[0].state_dict().items()}


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


def test_first_stage_is_what_comes_before_the_first_stride():
    network = experiment("stage-resnet18", "narrow").build()
    trained = {name for name, _ in network.named_parameters() if "conv" in name}
    assert "blocks.2.conv1.weight" in trained and network.blocks[2].conv1.stride == (2, 2)
    assert not any(name.startswith(("conv1", "blocks.0.", "blocks.1.")) for name in trained)


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
