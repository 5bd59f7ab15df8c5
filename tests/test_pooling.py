"""The pooling operator, eq. (1) and Theorem 1, against loops, torch's own layers, and a covariance
matrix by hand.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from convergence import normal
from nads_book.theory import deep_linear, pooling
from torch.testing import assert_close

from nads_core.data.fourier import fourier_direction

SIZES = ((8, 2), (8, 8), (12, 3), (15, 5), (24, 4), (7, 1))


def signal(size, seed=0):
    return normal(3, size, seed=seed, dtype=torch.float64)


def mahalanobis_accuracy(layer, direction, margin, noise_std):
    """Phi(delta / 2) from the class covariance itself; 1 where the means differ in a direction
    without noise.
    """
    size = len(direction)
    covariance = (
        noise_std**2 * layer @ (torch.eye(size) - torch.outer(direction, direction)) @ layer.T
    )
    values, vectors = torch.linalg.eigh(covariance)
    means = (vectors.T @ layer @ direction).square()
    noisy = values > 1e-10 * noise_std**2
    if means[~noisy].sum() > 1e-10:
        return 1.0
    return float(torch.special.ndtr(margin * (means[noisy] / values[noisy]).sum().sqrt()))


# The operator


@pytest.mark.parametrize("size, stride", SIZES)
@pytest.mark.parametrize("name", pooling.PREFILTERS)
def test_pool_equals_a_loop(size, stride, name):
    h = pooling.prefilter(name, size, stride)
    x = signal(size)
    loop = torch.zeros(3, size // stride, dtype=torch.float64)
    for j, n in itertools.product(range(size // stride), range(size)):
        loop[:, j] += h[(j * stride - n) % size] * x[:, n]
    assert_close(pooling.pool(x, h, stride), loop)


# Theorem 1


@pytest.mark.parametrize("size, stride", SIZES)
@pytest.mark.parametrize("name", pooling.PREFILTERS)
@pytest.mark.parametrize("phase", (None, 0.0, 0.7))
def test_accuracy_equals_the_mahalanobis_distance_at_every_frequency(size, stride, name, phase):
    h = pooling.prefilter(name, size, stride)
    layer = pooling.pooling_matrix(h, stride)
    closed = pooling.bayes_accuracy(torch.arange(-size, 2 * size), h, stride, 1.3, 0.9, phase=phase)
    assert closed.dtype == torch.float64 and float(h.sum()) == pytest.approx(1)
    grid = np.arange(4).reshape(2, 2)
    by_numpy = pooling.bayes_accuracy(grid, h.numpy(), stride, 1.3, 0.9, phase=phase)
    assert torch.equal(by_numpy.flatten(), closed[size : size + 4])
    for frequency, accuracy in zip(range(-size, 2 * size), closed.tolist(), strict=True):
        by_hand = mahalanobis_accuracy(layer, pooling.direction(frequency, size, phase), 1.3, 0.9)
        assert accuracy == pytest.approx(by_hand, abs=1e-7)


@pytest.mark.parametrize("size, stride", ((8, 2), (8, 4), (6, 3)))
@pytest.mark.parametrize("name", pooling.PREFILTERS)
def test_accuracy_on_images(size, stride, name):
    h = pooling.prefilter(name, size, stride)
    matrix = pooling.pooling_matrix(h, stride)
    pairs = torch.cartesian_prod(torch.arange(size), torch.arange(size))
    images = torch.stack(
        [fourier_direction(tuple(pair), size).double().flatten() for pair in pairs.tolist()]
    )
    images /= images.norm(dim=1, keepdim=True)  # from float32
    by_angle = pooling.bayes_accuracy_after(torch.kron(matrix, matrix), images, 1.0, 1.0)
    closed = torch.special.ndtr(pooling.gamma_2d(pairs, h, stride))
    finite = (by_angle < 1 - 1e-6) & (
        closed < 1 - 1e-6
    )  # float32 directions do not lie exactly in the row space
    assert_close(closed[finite], by_angle[finite], atol=1e-5, rtol=0)
    assert ((by_angle > 0.99) == (closed > 0.99)).all()


H = pooling.prefilter("average", 12, 4)


@pytest.mark.parametrize(
    ("call", "error", "shown"),
    [
        (lambda: pooling.bayes_accuracy(1, H, 5), ValueError, "stride 5 .*size 12"),
        (lambda: pooling.bayes_accuracy(1.5, H, 4), TypeError, "torch.float"),
        (lambda: pooling.bayes_accuracy(1, H, 4, 1.0, 0), ValueError, "noise_std 0"),
        (lambda: pooling.bayes_accuracy_after(torch.eye(4), torch.ones(4)), ValueError, "norm 2"),
        (lambda: pooling.direction(0, 8, -math.pi / 2), ValueError, "no wave with phase"),
        (lambda: deep_linear.gradient_covariance(H, 5), ValueError, "stride 5 .*size 12"),
        (lambda: deep_linear.zeta(1.0, H), TypeError, "integers"),
        (lambda: deep_linear.gradient_covariance(H + 0j, 2), ValueError, "magnitude"),
    ],
)
def test_errors_say_what_to_do(call, error, shown):
    with pytest.raises(error, match=shown):
        call()
