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
    slope, rate = lemma2.dipole_slope(network, image, v)
    norm = lemma2.dipole_gradient_norms(metric.function, slope[None], rate[None])
    x = image.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(network(x[None])[0, 0], x, create_graph=True)
    q = metric.function((gradient * v).sum().abs())
    direct = torch.autograd.grad(q, list(network.parameters()), allow_unused=True)
    assert float(norm) == pytest.approx(
        float(torch.cat([g.flatten() for g in direct if g is not None]).norm())
    )
