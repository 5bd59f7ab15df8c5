"""The deep linear model, against loops, automatic differentiation and hand calculations."""

import itertools
import math

import pytest
import torch
from convergence import assert_mean
from nads_book import checks
from nads_book.studies.calibration import DeepLinear
from nads_book.theory import deep_linear
from nads_book.theory.descent import gradient_descent

RESPONSE = torch.tensor([1.0, 0.8, 0.5, 0.2, 0.0, 0.3], dtype=torch.float64)


def draws(num, size, stride, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((num, size // stride), (num, size), (num, size))
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize("stride", (1, 2, 3, 6))
def test_output_equals_a_loop(stride):
    theta, phi, x = (t[0] for t in draws(1, 6, stride))
    loop = sum(
        theta[i % (6 // stride)] * RESPONSE[i] * phi[i] * x[i] for i in range(6)
    ) / math.sqrt(stride)
    assert float(deep_linear.deep_linear_output(theta, phi, x, RESPONSE, stride)) == pytest.approx(
        float(loop)
    )


@pytest.mark.parametrize("stride, frequency", tuple(itertools.product((2, 3), (0, 1, 4))))
def test_expected_hessian_of_both_blocks(stride, frequency):
    args = (frequency, RESPONSE, stride, 1.2, 0.7)
    generator = torch.Generator().manual_seed(frequency)
    samples = checks.sample_hessians(*args, 0.9, 1.1, 40_000, generator=generator)
    expected = deep_linear.expected_hessian(*args, theta_std=0.9, phi_std=1.1, block="both")
    alive = samples.std(0) > 0
    assert (expected[~alive] == 0).all()
    assert_mean(samples[:, alive], expected[alive])


def test_blocks_are_parts_of_both():
    args = (torch.tensor([0, 3]), RESPONSE, 2, 1.2, 0.7)
    both = deep_linear.expected_hessian(*args, theta_std=0.9, phi_std=1.1, block="both")
    assert both.shape == (2, 9, 9)
    assert torch.equal(
        both[:, :6, :6], deep_linear.expected_hessian(*args, theta_std=0.9, phi_std=1.1)
    )
    assert torch.equal(
        both[:, 6:, 6:],
        deep_linear.expected_hessian(*args, theta_std=0.9, phi_std=1.1, block="theta"),
    )
    assert torch.equal(both, both.mT)
    assert torch.equal(
        both[1],
        deep_linear.expected_hessian(3, *args[1:], theta_std=0.9, phi_std=1.1, block="both"),
    )


@pytest.mark.parametrize("stride", (1, 2, 3))
def test_gradient_covariance_and_mixed_moment(stride):
    theta, phi, _ = draws(20_000, 6, stride)
    theta, phi = 1.3 * theta, 0.6 * phi
    gradients = theta.repeat(1, stride) * RESPONSE * phi / math.sqrt(stride)
    alive = (gradients.std(0) > 0)[:, None] & (gradients.std(0) > 0)
    expected = deep_linear.gradient_covariance(RESPONSE, stride, theta_std=1.3, phi_std=0.6)
    assert_mean((gradients[:, :, None] * gradients[:, None, :])[:, alive], expected[alive])
    of_phi = (
        theta.repeat(1, stride) * RESPONSE / math.sqrt(stride)
    )  # row of phi[i] has one entry, at x[i]
    of_theta = phi * RESPONSE / math.sqrt(stride)
    moment = deep_linear.mixed_second_moment(
        RESPONSE, stride, theta_std=1.3, phi_std=0.6
    ).diagonal()
    positive = moment > 0
    assert_mean((of_phi.square() + of_theta.square())[:, positive], moment[positive])


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


def test_printed_forms_differ_by_the_stride_and_agree_without_pooling():
    hessian = deep_linear.expected_hessian(1, RESPONSE, 3)
    torch.testing.assert_close(deep_linear.expected_hessian_printed(1, RESPONSE, 3), 3 * hessian)
    for ours, printed in (
        (
            deep_linear.gradient_covariance(RESPONSE, 1),
            deep_linear.gradient_covariance_printed(RESPONSE),
        ),
        (
            deep_linear.mixed_second_moment(RESPONSE, 1),
            deep_linear.mixed_second_moment_printed(RESPONSE, 1),
        ),
        (
            deep_linear.expected_hessian(1, RESPONSE, 1),
            deep_linear.expected_hessian_printed(1, RESPONSE, 1),
        ),
    ):
        torch.testing.assert_close(ours, printed)


def test_zeta_is_a_ratio_of_curvatures():
    both = deep_linear.expected_hessian(torch.arange(6), RESPONSE, 2, 1.2, 0.7)
    noise = deep_linear.expected_hessian(0, RESPONSE, 2, 0.0, 0.7)
    added = both.diagonal(dim1=1, dim2=2).diagonal() - noise.diagonal()
    zeta = deep_linear.zeta(torch.arange(6), RESPONSE, 1.2, 0.7)
    torch.testing.assert_close(zeta, added / noise.max())
    as_in_the_paper = deep_linear.zeta(torch.arange(6), RESPONSE, margin=1.0, noise_std=3.0)
    assert torch.equal(deep_linear.zeta(torch.arange(6), RESPONSE), as_in_the_paper)


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


@pytest.mark.parametrize(
    ("call", "error", "shown"),
    [
        (lambda: deep_linear.gradient_covariance(RESPONSE, 4), ValueError, "stride 4 .*size 6"),
        (lambda: deep_linear.zeta(1.0, RESPONSE), TypeError, "integers"),
        (lambda: deep_linear.gradient_covariance(RESPONSE + 0j, 2), ValueError, "magnitude"),
    ],
)
def test_errors_say_what_to_do(call, error, shown):
    with pytest.raises(error, match=shown):
        call()
