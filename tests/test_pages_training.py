"""The page about training: its verdicts follow from the stored rows, and its live parts from what
they are given.
"""

import html
import json
import zlib
from base64 import b64decode
from dataclasses import replace

import torch
from nads_book.pages import training
from nads_book.studies import experiment

import nads_core as nc

trajectories = training.trajectories
optimisers = training.optimisers
used = training.used
first_step = training.first_step


GEOMETRY = "geometry.json"


def test_the_closed_form_holds_in_simulations_and_a_wrong_one_does_not(monkeypatch):
    assert first_step.first_step_closed_form(count=4_000).holds
    right = first_step.first_change
    monkeypatch.setattr(first_step, "first_change", lambda *arguments: 1.2 * right(*arguments))
    found = first_step.first_step_closed_form(count=4_000)
    assert found.holds is False and found.value > 8


def test_a_treatment_in_the_opposite_order_refutes_lower_rates(edit_stored):
    energies = dict(
        zip(optimisers.forgetting.waves(), optimisers.forgetting.wave_energies(), strict=True)
    )
    cell = optimisers.LOWER[0]

    def turn(row):
        if optimisers.Cell(**row["cell"]) == cell:
            row["test_accuracies"][-1] = 0.65 - 0.8 * energies[tuple(row["wave"])]

    edit_stored("forgetting.json", turn)
    assert (
        optimisers.lower_rates_keep_order().holds is False
        and optimisers.optimisers_not_frequency().holds is False
    )
    assert cell in optimisers.forgetting.refuting(optimisers.tables())


def test_ratios_decide_by_the_registered_limits_in_both_seeds(edit_stored):
    def larger(row):
        if (row["network"], row["seed"]) == ("resnet", 1):
            for one in row["directions"]:
                one["nad"]["turn"] = 1.3 * one["wave"]["turn"]

    rows = edit_stored("used-nads.json", larger)
    found = used.follows_data("resnet")
    low, high = found.interval
    assert found.holds is False and low < found.value < high
    met = experiment("used-nads").score(rows).met
    assert met["resnet: does not use NADs more"] is False
    assert met["vgg11: does not use NADs more"] and not met["vgg11: uses NADs more"]


def test_the_widget_holds_the_pictures_of_each_condition():
    text = html.unescape(training.widget().data)
    config, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    pixels = zlib.decompress(b64decode(config["bytes"]))
    steps = [len(entry["steps"]) for entry in config["entries"].values()]
    assert len(pixels) == sum(steps) * config["shown"] * 1_024
    assert {"lenet|photos", "cnn|learned wave"} <= set(config["entries"])
    assert not any(name.startswith("linear") for name in config["entries"])


def test_networks_that_learn_a_wave_prefer_it():
    torch.manual_seed(0)
    wave, trained = (0, 4), []
    data = nc.separable_dataset(nc.fourier_direction(wave), num_samples=320, noise_std=1.0)
    recipe = replace(nc.SEPARABLE_RECIPE, epochs=1, batch_size=32)
    for number in range(16):
        trained.append(nc.LENET.build(1, 32, 2))
        nc.train_network(trained[-1], data, recipe=recipe, seed=number, progress=False)
    options = {"output": lambda y: y[:, 1] - y[:, 0], "equal_weights": True, "progress": False}
    before, after = nc.load_nads("lenet"), nc.compute_nads(trained, (1, 32, 32), **options)
    energies = [training.own_networks.relative_energy(nads, wave) for nads in (before, after)]
    assert energies[1] > 1.5 * energies[0]
    titles = [axis.get_title() for axis in training.plot_your_training(wave, before, after).axes]
    assert (
        sum("yours" in title for title in titles) == sum("stored" in title for title in titles) == 2
    )
