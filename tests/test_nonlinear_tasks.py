"""Tasks that are not linear along two NADs: data, and the rule."""

import math

import pytest
import torch
from nads_book.studies import nonlinear_tasks
from nads_book.studies.nonlinear_tasks import FIRST_NADS, NETWORKS, NONLINEAR, TASKS

import nads_core as nc

SCORE = nonlinear_tasks.NonlinearTasks().score
DIRECTIONS = nc.load_nads("lenet").directions[:2]


def along(images):
    return images.flatten(1) @ DIRECTIONS.flatten(1).T


@pytest.mark.parametrize("task", TASKS)
def test_labels_depend_on_both_coordinates_as_the_task_says(task):
    images, labels = nonlinear_tasks.sampled(task, DIRECTIONS, 4_000, seed=1)
    a, b = along(images).T
    rules = {
        "xor": a * b > 0,
        "product": a * b > 0,
        "ring": a.square() + b.square() > (3 * math.sqrt(1.6)) ** 2,
        "linear": a > 0,
    }
    assert bool((rules[task] == (labels == 1)).all()) and int(labels.sum()) == 2_000
    size = float((a.square() + b.square()).mean().sqrt())
    assert size == pytest.approx(3 * math.sqrt(2), rel=0.04)  # as large in all tasks
    rest = images.flatten(1) - along(images) @ DIRECTIONS.flatten(1)
    assert float(rest.square().sum(1).mean() / 1_022) == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("task", NONLINEAR)
def test_no_linear_classifier_is_better_than_guessing(task):
    images, labels = nonlinear_tasks.sampled(task, DIRECTIONS, 20_000, seed=2)
    design = torch.cat([along(images), torch.ones(len(labels), 1)], 1)
    weights = torch.linalg.lstsq(design, 2.0 * labels[:, None] - 1).solution
    right = ((design @ weights)[:, 0] > 0) == (labels == 1)
    assert abs(float(right.double().mean()) - 0.5) < 0.02


def test_both_halves_share_their_noise():
    images, labels = nonlinear_tasks.sampled("ring", DIRECTIONS, 10, seed=3)
    rest = images.flatten(1) - along(images) @ DIRECTIONS.flatten(1)
    torch.testing.assert_close(rest[:5], rest[5:], atol=1e-5, rtol=0)
    assert labels.tolist() == [0] * 5 + [1] * 5


def test_a_wave_has_its_own_frequency():
    wave = nc.fourier_direction((3, 4), size=32)
    assert nonlinear_tasks.mean_frequency(wave[None]) == pytest.approx(5, rel=1e-4)


def rows(last, frequency=lambda place: place):
    """Return rows of networks that learn each task up to a pair, less well from pair to pair."""
    return [
        {"network": network, "task": task, "first": first, "frequency": frequency(place)}
        | {"test_accuracy": 1 - 0.01 * place if place <= last[task] else 0.52 - 0.001 * place}
        for network in NETWORKS
        for task in TASKS
        for place, first in enumerate(FIRST_NADS)
    ]


LAST = {"xor": 4, "ring": 4, "product": 2, "linear": 5}


def test_the_rule_is_met_by_networks_that_learn_in_order():
    met = SCORE(rows(LAST)).met
    assert all(met.values()) and len(met) == 8


def test_the_order_must_be_that_of_nads():
    reverse = [
        row | {"first": FIRST_NADS[-1 - FIRST_NADS.index(row["first"])]} for row in rows(LAST)
    ]
    met = SCORE(reverse).met
    assert not any(met[f"{network}, {task}"] for network in NETWORKS for task in NONLINEAR)


def test_frequency_can_be_ahead_and_a_task_later_than_the_linear_one():
    shuffled = [dict(row) for row in rows(LAST)]
    for (
        row
    ) in shuffled:  # two pairs change places: the order by frequency is exact, that of NADs is not
        row["frequency"] = -row["test_accuracy"]
        if row["first"] in (0, 4):
            row["test_accuracy"] = 0.95 + 0.01 * FIRST_NADS.index(row["first"])
            row["frequency"] = -row["test_accuracy"]
    met = SCORE(shuffled).met
    assert met["order ahead of frequency"] is False
    assert SCORE(rows(LAST | {"xor": 6})).met["no later than linear"] is False


def test_tasks_that_are_too_easy_or_incomplete_decide_nothing():
    met = SCORE(rows(LAST | {"xor": 7})).met
    assert met["lenet, xor"] is None and met["lenet, ring"] is True
    some = [row for row in rows(LAST) if row["first"] != 400 or row["task"] != "ring"]
    met = SCORE(some).met
    assert met["cnn, ring"] is None and met["order ahead of frequency"] is None
