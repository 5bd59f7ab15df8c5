"""The page of the poison: what a reader runs, and verdicts that follow from the stored numbers."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from convergence import random_nads
from nads_book.pages import poison

import nads_core as nc

curve = poison.curve
numbers = poison.numbers
parts = poison.parts


LENETS = "notes-lenet.laptop.json"


# What a reader runs


def test_one_rule_reads_the_classes_of_poisoned_images_and_not_those_of_others():
    nads = random_nads(1, 8, 8)
    images = torch.rand(40, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(40) % 10
    for index in (0, 30):
        poisoned = nc.poison(images, labels, nads, index, 0.05)
        assert (poison.read_classes(poisoned, nads, index, 0.05) == labels).all()
    assert (poison.read_classes(images, nads, 0, 0.05) == labels).double().mean() < 0.6


def tiny():
    """Return a network of the reader's own."""
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))


def one_channel():
    """Return a network that cannot take photos."""
    return torch.nn.Sequential(torch.nn.Conv2d(1, 10, 32), torch.nn.Flatten())


def two_outputs():
    """Return a network with too few outputs."""
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 2))


def with_argument(width):
    """Return a network that needs an argument."""
    return torch.nn.Linear(width, 10)


@pytest.mark.parametrize("name", ["one_channel", "two_outputs", "with_argument"])
def test_a_network_that_does_not_fit_is_rejected_before_any_training(name, monkeypatch):
    monkeypatch.setattr(nc, "train_network", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(ValueError, match="3 × 32 × 32"):
        poison.Trial("smoke", f"{__name__}:{name}", dataset="generated")


@pytest.fixture
def trial(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return poison.Trial("smoke", f"{__name__}:tiny", 50, 0.1, dataset="generated")


def test_a_network_of_the_reader_is_trained_on_each_version(trial):
    assert isinstance(trial.build(), torch.nn.Sequential)
    images = trial.train.images
    found = trial.accuracies({"clean": images, "again": images, "black": images * 0})
    assert found["clean"] == found["again"]  # the same first weights and batches
    assert found["black"] == pytest.approx(0.1, abs=0.02)
    trial.stored = {"clean": [0.5, 0.55]}
    (axis,) = trial.plot(found).axes
    squares = next(line for line in axis.lines if line.get_marker() == "s")
    own = [x for container in axis.containers for x in container.lines[0].get_xdata()]
    assert [*squares.get_xdata(), *own] == pytest.approx(
        [50, 55, *(100 * x for x in found.values())]
    )


def test_an_added_number_changes_one_coordinate_by_its_size(trial):
    change = (trial.add_number(50, 0.7) - trial.train.images).flatten(2) @ trial.nads.basis
    largest = change.abs().amax((1, 2))
    torch.testing.assert_close(largest, torch.full_like(largest, 0.7), atol=1e-4, rtol=0)
    assert ((change.abs() > 1e-4).sum((1, 2)) == 1).all()
    coordinates = trial.train.images.flatten(2) @ trial.nads.basis[:, 50]
    assert trial.deviation(50) == pytest.approx(float(coordinates.std(0).mean()))


def test_the_time_of_a_training_is_that_of_its_steps_and_evaluations(trial, monkeypatch):
    """A batch takes four seconds here, of which one is for the accuracy after training."""
    trial.recipe = nc.Recipe(epochs=10, batch_size=20)

    def train(network, data, **options):
        return SimpleNamespace(seconds=4.0 * len(data[1]) / 20)

    monkeypatch.setattr(nc, "train_network", train)
    steps = trial.recipe.num_steps(len(trial.train))
    evaluated = (len(trial.train) + len(trial.test)) / 20
    assert trial.seconds_of_training() == pytest.approx(3 * steps + evaluated)


@pytest.mark.parametrize(("seconds", "workers", "announced"), [(40, 3, 80), (4, 1, 16)])
def test_the_announced_time_is_that_of_as_many_trainings_at_once_as_are_made(
    seconds, workers, announced, monkeypatch, request
):
    monkeypatch.setattr(poison.trial, "num_cores", lambda: 3)
    monkeypatch.setattr(poison.Trial, "seconds_of_training", lambda _: float(seconds))
    run = request.getfixturevalue("trial")
    assert f"**{poison.trial.in_words(announced)}**" in run.announcement()
    options = {}
    result = SimpleNamespace(test_accuracy=torch.ones(1))
    monkeypatch.setattr(nc, "train_networks", lambda *_, **given: options.update(given) or result)
    run.accuracies({"clean": run.train.images})
    assert options["workers"] == workers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("index", 1023),
        ("strength", 0),
        ("architecture", "foo"),
        ("preset", "x"),
        ("nads_of", "/nope.npz"),
    ],
)
def test_parameters_are_checked_before_anything_is_loaded(name, value, monkeypatch):
    place = "nads_book.pages.poison.trial.load_images"
    monkeypatch.setattr(place, lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(ValueError, match=f"{name}.*{value!r}"):
        poison.Trial(**({"preset": "smoke"} | {name: value}))


def test_stored_trainings_are_shown_for_the_same_poison_alone(trial):
    assert not trial.stored and "No stored" in trial.announcement()
    for other in (("resnet18", 60, 0.05), ("lenet", 50, 0.05), ("lenet", 60, 0.1)):
        assert not parts.stored_beside(*other)
    stored = parts.stored_beside("lenet", 60, 0.05)
    assert set(stored) == {"clean", "poisoned", "hole", "number"}
    assert np.mean(stored["poisoned"]) < np.mean(stored["number"]) - 0.1


# Claims


def test_sizes_in_another_order_than_the_costs_flip_the_verdict(edit_stored, monkeypatch):
    edit_stored("poison-parts.json", lambda row: None)
    sizes = parts.deviations
    reverse = lambda *args: {index: -size for index, size in sizes(*args).items()}  # noqa: E731
    monkeypatch.setattr(parts, "deviations", reverse)
    found = parts.number_size()
    assert found.holds is False and found.value > 1


def test_predictions_before_and_behind_a_carrier_are_counted_apart():
    use = {
        "indices": [0, 5, 10, 11, 12, 50],
        "num_images": 100,
        "flip": [0.5, 0.4, 0.9, 0.9, 0.2, 0.1],
    }
    clean = use | {"flip": [0.1] * 6}
    assert curve.changed_predictions({"use": use}, {"use": clean}, 10) == [(90, 20), (30, 20)]
