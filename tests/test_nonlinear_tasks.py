"""Tasks that are not linear along two NADs: their data."""

import math

import pytest
from nads_book.studies import nonlinear_tasks
from nads_book.studies.nonlinear_tasks import TASKS

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
