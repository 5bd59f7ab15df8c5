"""Vectors of networks by a plain loop without the library, and how far means are apart."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

Factory = Callable[[], nn.Module]
Vector = Callable[[nn.Module, Tensor], Tensor]  # (D,) of a network and its inputs (K, C, H, W)


def plain_vectors(
    factory: Factory,
    image_shape: tuple[int, ...],
    count: int,
    seed: int,
    num_inputs: int,
    vector: Vector,
) -> Tensor:
    """Return two vectors (D,) of each of several newly built networks, from other inputs each:
    (count, 2, D) in float64.

    The inputs have the type of the first weight, if that is a real number.
    """
    vectors = []
    for number in range(count):
        torch.manual_seed(seed + number)
        network = factory().eval()
        dtype = next(network.parameters()).dtype
        inputs = torch.randn(
            2, num_inputs, *image_shape, dtype=dtype if dtype.is_floating_point else torch.float32
        )
        halves = []
        for half in inputs:
            torch.manual_seed(seed + number)  # both have one probe
            halves.append(vector(network, half).double())
        vectors.append(torch.stack(halves))
    return torch.stack(vectors)


def average_gradient(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return (1/K) sum_k grad_x f(x_k), (D,); of one input it is the gradient at a point, of the
    paper's text.
    """
    inputs = inputs.clone().requires_grad_()  # (K, C, H, W)
    (gradients,) = torch.autograd.grad(network(inputs).sum(), inputs)
    return gradients.flatten(1).mean(0)


def standard_error(samples: Tensor, count: int) -> float:
    """Return that of the difference of the means of samples (N,) and of ``count`` others."""
    return float(samples.std()) * math.sqrt(1 / len(samples) + 1 / count)


def z_score(value: float, samples: Tensor, count: int) -> float:
    """Return by how many standard errors a mean of ``count`` networks differs from that of samples
    (N,); without spread, 0 if both are equal up to rounding in float32, and infinity otherwise.
    """
    mean, error = float(samples.mean()), standard_error(samples, count)
    if error:
        return (value - mean) / error
    return 0.0 if math.isclose(value, mean, rel_tol=1e-5, abs_tol=1e-12) else math.inf
