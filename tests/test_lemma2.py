"""Lemma 2, for any network: against automatic differentiation and hand calculations."""

import pytest
import torch
from convergence import normal
from nads_book.theory import lemma2
from nads_book.theory.checks import METRICS

from nads_core import LENET


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_gradient_of_the_metric_is_that_of_automatic_differentiation(metric):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = LENET.build(1, 16, 1).eval().double()
    image, v = (normal(1, 16, 16, seed=s, dtype=torch.float64) for s in (0, 1))
    x = image.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(network(x[None])[0, 0], x, create_graph=True)
    slope = (gradient * v).sum()

    def norm_of_gradient(value):
        parts = torch.autograd.grad(
            value, list(network.parameters()), allow_unused=True, retain_graph=True
        )
        return torch.cat([part.flatten() for part in parts if part is not None]).norm()

    rate = norm_of_gradient(slope)
    norm = lemma2.dipole_gradient_norms(metric.function, slope.detach()[None], rate[None])
    direct = norm_of_gradient(metric.function(slope.abs()))
    assert float(norm) == pytest.approx(float(direct))
