"""Regressions on the output of a layer, against torch's own layers and the formulas of pooling."""

import torch
from convergence import normal
from nads_book.theory import regression
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
