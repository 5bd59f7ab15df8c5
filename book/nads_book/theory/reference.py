"""The method of the paper in plain PyTorch, one network at a time, to be read and to test the fast
engine against.

Source: Ortiz-Jimenez, Modas, Moosavi-Dezfooli and Frossard, "Neural Anisotropy Directions", NeurIPS
2020, section 3.1 and eq. (4). For networks f_theta with random weights theta and Gaussian inputs x,

    g_theta = E_x grad_x f_theta(x),        C = E_theta g_theta g_theta^T,

and the NADs are the eigenvectors of C, in descending order of their eigenvalues. `compute_nads`
estimates the same C for thousands of networks at once, removes the noise of finitely many inputs,
and estimates their certainty.
"""

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call


def compute_reference_nads(
    factory: Callable[[], nn.Module],
    num_networks: int,
    image_shape: tuple[int, ...],
    *,
    num_inputs: int = 16,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """Compute the NADs of an architecture.

    Args:
        factory: function that returns a newly initialised network with one output.
        num_networks: number of networks to draw, N.
        image_shape: shape of one input, (C, H, W).
        num_inputs: number of Gaussian inputs per network, K.
        seed: seed of the weights and inputs.

    Returns:
        Eigenvalues (D,), descending, and orthonormal directions (D, C, H, W).
    """

    def vectors() -> Iterable[Tensor]:
        for _ in range(num_networks):
            network = factory().eval()  # draws the weights
            yield average_gradient(network, torch.randn(num_inputs, *image_shape))

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        eigenvalues, directions = eigenpairs(second_moment(vectors()))
    return eigenvalues, directions.view(-1, *image_shape)


def second_moment(vectors: Iterable[Tensor]) -> Tensor:
    """Return C = (1/N) sum_i g_i g_i^T, (D, D) in float64: uncentred, because g and -g are equally
    likely.
    """
    total, count = torch.zeros(()), 0
    for vector in vectors:
        total, count = total + torch.outer(vector.double(), vector.double()), count + 1
    return total / count


def eigenpairs(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues (D,), descending, and unit eigenvectors as rows (D, D)."""
    eigenvalues, eigenvectors = torch.linalg.eigh(matrix)  # ascending, eigenvectors as columns
    return eigenvalues.flip(0), eigenvectors.flip(1).T


def average_gradient(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return (1/K) sum_k grad_x f(x_k), (D,); of one input it is the gradient at a point, of the
    paper's text.
    """
    inputs = inputs.clone().requires_grad_()  # (K, C, H, W)
    (gradients,) = torch.autograd.grad(network(inputs).sum(), inputs)
    return gradients.flatten(1).mean(0)


def mixed_derivative(network: nn.Module, inputs: Tensor, probe: Mapping[str, Tensor]) -> Tensor:
    """Return (1/K) sum_k grad_x (r . grad_theta f(x_k)), (D,), for a Gaussian probe r of the
    weights (Lemma 2, eq. 5).

    r . grad_theta f is the derivative of f along r, which autograd takes in the length of a step
    along r.
    """
    inputs, step = (
        inputs.clone().requires_grad_(),
        torch.zeros((), dtype=inputs.dtype, requires_grad=True),
    )
    moved = {
        name: weight + step * probe[name]
        for name, weight in network.named_parameters()
        if name in probe
    }
    (along,) = torch.autograd.grad(
        functional_call(network, moved, (inputs,)).sum(), step, create_graph=True
    )
    (gradients,) = torch.autograd.grad(along, inputs)
    return gradients.flatten(1).mean(0)
