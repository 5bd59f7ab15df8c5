"""The deep linear model, against loops, automatic differentiation and hand calculations."""

import math

import pytest
import torch
from convergence import assert_mean, normal
from nads_book.studies.calibration import DeepLinear
from nads_book.theory import deep_linear
from nads_book.theory.descent import gradient_descent

RESPONSE = torch.tensor([1.0, 0.8, 0.5, 0.2, 0.0, 0.3], dtype=torch.float64)


@pytest.mark.parametrize("stride", (1, 2, 3, 6))
def test_output_equals_a_loop(stride):
    theta, phi, x = normal(3, 6).double()
    theta = theta[: 6 // stride]
    loop = sum(
        theta[i % (6 // stride)] * RESPONSE[i] * phi[i] * x[i] for i in range(6)
    ) / math.sqrt(stride)
    assert float(deep_linear.deep_linear_output(theta, phi, x, RESPONSE, stride)) == pytest.approx(
        float(loop)
    )


def test_the_model_as_a_network_has_the_covariance_of_eq_4():
    response = torch.linspace(1, 2, 8)
    networks = [DeepLinear(response) for _ in range(4_000)]
    x = torch.randn(3, 8)
    expected = deep_linear.deep_linear_output(
        networks[0].theta, networks[0].phi, x, response.double()
    )
    torch.testing.assert_close(networks[0](x)[:, 0], expected)
    inputs = torch.zeros(1, 8, requires_grad=True)
    gradients = torch.cat(
        [torch.autograd.grad(network(inputs).sum(), inputs)[0] for network in networks]
    )
    products = gradients[:, :, None] * gradients[:, None]
    assert_mean(products.double(), deep_linear.gradient_covariance(response))


def test_gradient_descent_follows_automatic_differentiation():
    run = gradient_descent(
        torch.tensor([1]), RESPONSE, 2, learning_rate=0.05, num_steps=4, num_runs=1, seed=3
    )
    generator = torch.Generator().manual_seed(3)
    theta, phi = (
        torch.randn(1, n, generator=generator, dtype=torch.float64)[0].requires_grad_()
        for n in (3, 6)
    )
    for expected in run.losses[0, 0]:
        beta = theta.repeat(2) * RESPONSE * phi / math.sqrt(2)
        loss = 1 - 2 * beta[1] + beta[1] ** 2 + 0.25 * beta.square().sum()
        assert float(loss.detach()) == pytest.approx(float(expected))
        slopes = torch.autograd.grad(loss, (theta, phi))
        theta, phi = (
            (p - 0.05 * s).detach().requires_grad_()
            for p, s in zip((theta, phi), slopes, strict=True)
        )


def test_iterations_end_where_the_loss_stays_near_its_optimum():
    args = dict(num_steps=60, num_runs=3, seed=0)
    run = gradient_descent(
        torch.tensor([0, 2]), RESPONSE, 2, learning_rate=0.05, batch_size=4, **args
    )
    line = run.optimum + 0.1 * (1 - run.optimum)
    for losses, iterations in zip(
        run.losses.flatten(0, 1).tolist(), run.iterations.flatten().tolist(), strict=True
    ):
        assert iterations == 1 + max(
            (step for step, loss in enumerate(losses) if loss > line), default=-1
        )
    assert 0 < run.iterations.min() < 60
    still = gradient_descent(torch.tensor([0]), RESPONSE, 2, learning_rate=1e-9, **args)
    assert (still.iterations == 61).all()
