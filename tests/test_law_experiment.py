"""Networks with frozen first filters, their directions, and the score of the preregistered
experiment.
"""

import copy
import tomllib
from functools import partial

import pytest
import torch
from conftest import ROOT
from nads_book.studies import experiment
from nads_book.studies.gain import first_layers, frozen_network, load_design
from nads_book.studies.presets import MODELS
from nads_book.theory.first_step import filter_gain
from numpy.testing import assert_allclose

import nads_core as nc
from nads_core.runtime.provenance import fingerprint
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import TrainConfig, train_new

REGISTERED = tomllib.loads((ROOT / "book/preregistered/law.toml").read_text("utf8"))
SMALL = nc.Recipe(epochs=2, batch_size=32)


def small_data():
    return nc.SeparableDatasets(torch.ones(1, 1, 32, 32) / 32, 64, margin=1.0, noise_std=1.0)


def weights(network):
    return copy.deepcopy(first_layers(network)[0].state_dict())


def initial(factory, network_id):
    with torch.random.fork_rng():
        torch.manual_seed(seed_sequence(0, 2, network_id))
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
    if name != "cnn":  # whose C does not ship
        nads = nc.load_nads(name)
        energies = nads.energy(directions) / nads.eigenvalues.mean()
        assert_allclose(energies, design["energies"], rtol=1e-3)
