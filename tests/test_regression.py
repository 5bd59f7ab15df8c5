"""Regressions on the output of a layer, against torch's own layers and the formulas of pooling."""

from functools import partial

import torch
from convergence import assert_mean, normal
from nads_book.theory import classifiers, pooling, regression
from test_pooling import signal


def test_strided_convolution_is_torch_s():
    filters = normal(3, 5, dtype=torch.float64)
    x = signal(12)
    matrix = regression.strided_convolution_matrix(filters, 12, 4)
    padded = torch.cat([x, x[:, :4]], 1)[:, None]
    torch.testing.assert_close(
        (x @ matrix.T).view(3, 3, 3), torch.nn.functional.conv1d(padded, filters[:, None], stride=4)
    )


def test_dependent_outputs_cost_nothing_in_the_measured_share():
    direction = torch.zeros(1, 100, dtype=torch.float64)
    direction[0, 0] = 0.1**0.5
    direction[0, 1] = 0.9**0.5
    share, error = regression.measured_energy(
        lambda x: x[:, :1] * torch.linspace(1, 2, 60), direction, 2_000, seed=0
    )
    assert abs(float(share) - 0.1) < 4 * float(error)


def test_pooled_samples_are_distributed_as_stated():
    layer = pooling.pooling_matrix(pooling.prefilter("average", 8, 2), 2)
    v = pooling.direction(1, 8)
    outputs, labels = classifiers.pooled_samples(
        v[None], layer, 1.5, 0.7, 20_000, generator=torch.Generator().manual_seed(0)
    )
    signs = (2 * labels[0] - 1)[:, None]
    assert_mean(signs * outputs[0], 1.5 * layer @ v)
    centred = outputs[0] - 1.5 * signs * (layer @ v)
    covariance = 0.49 * layer @ (torch.eye(8) - torch.outer(v, v)) @ layer.T
    assert_mean(centred[:, :, None] * centred[:, None, :], covariance)


def test_a_trained_classifier_reaches_the_bound_and_no_more():
    h = pooling.prefilter("average", 16, 4)
    waves = torch.stack([pooling.direction(frequency, 16) for frequency in (1, 3)])
    bounds = pooling.bayes_accuracy(torch.tensor([1, 3]), h, 4, 1.0, 1.0)
    error = (bounds * (1 - bounds) / 10_000).sqrt()
    task = (waves, pooling.pooling_matrix(h, 4), 1.0, 1.0, (2_000,))
    for build in (classifiers.linear, classifiers.small_cnn):
        accuracy, _ = classifiers.learning_curve(
            partial(build, 4), *task, num_test=5_000, num_steps=200, seed=0
        )
        reached = accuracy[:, 0]
        assert (reached < bounds + 4 * error).all() and (reached > bounds - 0.03).all()
