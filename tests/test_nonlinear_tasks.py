"""Tasks that are not linear along two NADs: their data."""

import math

import pytest
import torch
from nads_book.studies import nonlinear_tasks
from nads_book.studies.nonlinear_tasks import NONLINEAR, TASKS

import nads_core as nc

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
