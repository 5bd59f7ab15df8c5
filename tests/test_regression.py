"""Regressions on the output of a layer, against torch's own layers and the formulas of pooling."""

from functools import partial

import torch
from convergence import assert_mean
from nads_book.theory import classifiers, regression
from nads_book.theory import pooling as layers

from nads_core.theory import pooling


def signal(size):
    return torch.randn(3, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_strided_convolution_is_torch_s():
    filters = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = signal(12)
    matrix = regression.strided_convolution_matrix(filters, 12, 4)
    padded = torch.cat([x, x[:, :4]], 1)[:, None]
    torch.testing.assert_close(
        (x @ matrix.T).view(3, 3, 3), torch.nn.functional.conv1d(padded, filters[:, None], stride=4)
    )


def test_measured_share_is_the_formula_for_average_pooling():
    directions = torch.stack([layers.direction(frequency, 16) for frequency in (0, 1, 3, 5, 8)])
    share, error = regression.measured_energy(
        lambda x: torch.nn.functional.avg_pool1d(x, 4), directions, 20_000, seed=0
    )
    expected = pooling.retained_energy(
        torch.tensor([0, 1, 3, 5, 8]), pooling.prefilter("average", 16, 4), 4
    )
    assert ((share - expected).abs() < 6 * error + 1e-9).all()


def test_dependent_outputs_cost_nothing_in_the_measured_share():
    direction = torch.zeros(1, 100, dtype=torch.float64)
    direction[0, 0], direction[0, 1] = 0.1**0.5, 0.9**0.5
    share, error = regression.measured_energy(
        lambda x: x[:, :1] * torch.linspace(1, 2, 60), direction, 2_000, seed=0
    )
    assert abs(float(share) - 0.1) < 4 * float(error)


def test_small_cnn_is_made_of_circular_convolutions():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = classifiers.SmallCNN(6).double()
    x = signal(6)

    def convolve(x, linear):
        taps = (
            linear.weight.view(len(linear.weight), 5, -1).movedim(1, 2).flip(2)
        )  # copies are shifts by -2 .. 2
        return torch.nn.functional.conv1d(
            torch.cat([x[..., -2:], x, x[..., :2]], -1), taps, linear.bias
        )

    hidden = convolve(convolve(x[:, None], network.conv1).relu(), network.conv2).relu()
    torch.testing.assert_close(network(x), network.linear(hidden.mT.flatten(1)).squeeze(1))


def test_pooled_samples_are_distributed_as_stated():
    layer = layers.pooling_matrix(pooling.prefilter("average", 8, 2), 2)
    v = layers.direction(1, 8)
    outputs, labels = classifiers.pooled_samples(
        v[None], layer, 1.5, 0.7, 20_000, generator=torch.Generator().manual_seed(0)
    )
    signs = (2 * labels[0] - 1)[:, None]
    assert_mean(signs * outputs[0], 1.5 * layer @ v)
    centred = outputs[0] - 1.5 * signs * (layer @ v)
    covariance = 0.49 * layer @ (torch.eye(8) - torch.outer(v, v)) @ layer.T
    assert_mean(centred[:, :, None] * centred[:, None, :], covariance)


def test_a_trained_linear_classifier_reaches_the_bound_and_no_more():
    h = pooling.prefilter("average", 16, 4)
    waves = torch.stack([layers.direction(frequency, 16) for frequency in (1, 3)])
    bounds = pooling.bayes_accuracy(torch.tensor([1, 3]), h, 4, 1.0, 1.0)
    factory, layer = partial(classifiers.LinearClassifier, 4), layers.pooling_matrix(h, 4)
    options = {"num_test": 5_000, "num_runs": 2, "num_steps": 100, "learning_rate": 0.05, "seed": 0}
    accuracy, _ = classifiers.learning_curve(factory, waves, layer, 1.0, 1.0, (2_000,), **options)
    error = (bounds * (1 - bounds) / 10_000).sqrt()
    assert (accuracy[:, 0] < bounds + 4 * error).all() and (accuracy[:, 0] > bounds - 0.02).all()
