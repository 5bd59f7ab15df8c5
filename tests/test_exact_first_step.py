"""The first step by exact derivatives (`nads_book.studies.exact_first_step`)."""

import pytest
import torch
from convergence import normal
from nads_book.studies import exact_first_step, geometry
from torch import nn
from torch.testing import assert_close

# The first forward derivative imports functions that torch compiles in a way that it deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")


def small_network(norm):
    """Return a convolutional network in double precision, smooth so that differences converge."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3) if norm else nn.Identity()]
    layers += [nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(48, 2)]
    return nn.Sequential(*layers).double()


@pytest.mark.parametrize("norm", [False, True])
def test_the_derivative_is_the_limit_of_small_steps(norm):
    images = normal(6, 1, 8, 8, seed=1).double()
    inputs = normal(2, 3, 1, 8, 8, seed=2).double()
    before, change = exact_first_step.gradients_and_change(small_network(norm), images, inputs)

    def after(rate):
        """Return the gradients after one step of plain training with both labels."""
        network = small_network(norm).train()
        logits = network(images)
        loss = sum(nn.functional.cross_entropy(logits, torch.full((6,), y)) for y in (0, 1)) / 2
        loss.backward()
        with torch.no_grad():
            for weight in network.parameters():
                weight -= rate * weight.grad
        # Norms have the statistics of the training images.
        features = network[0](images).detach().movedim(1, 0).flatten(1)
        network[1].running_mean = features.mean(1)
        network[1].running_var = features.var(1, unbiased=False)
        x = inputs.flatten(0, 1).clone().requires_grad_()
        logits = network.eval()(x)
        (found,) = torch.autograd.grad((logits[:, 1] - logits[:, 0]).sum(), x)
        return found.unflatten(0, (2, 3)).mean(1).flatten(1)

    assert_close(before, after(0.0))
    rate = 1e-4
    assert_close(change, (after(rate) - after(-rate)) / (2 * rate), rtol=1e-5, atol=1e-9)


def test_the_second_moment_moves_as_the_gradients_do():
    gradients, changes = normal(2, 5, 2, 7, seed=3).double()
    step = 1e-6
    moments = [geometry.moment(gradients + sign * step * changes) for sign in (1, -1)]
    found = exact_first_step.moment_change(gradients, changes)
    assert_close(found, (moments[0] - moments[1]) / (2 * step), rtol=1e-6, atol=1e-8)
