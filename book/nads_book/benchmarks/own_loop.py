"""NADs by a loop of one's own, which the library is compared with."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap


def own_loop(
    factory: Callable[[], nn.Module],
    count: int,
    num_inputs: int = 16,
    seed: int = 0,
    *,
    image_shape: tuple[int, ...] = (1, 32, 32),
    batch: int = 32,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Return directions (D, D), in rows, as a competent user of PyTorch computes them in an
    afternoon.

    Networks are drawn by the factory, stacked, and differentiated together by ``torch.func``; the
    second moment is summed in float64.

    Args:
        factory: function that returns a new network.
        count: number of networks.
        num_inputs: number of Gaussian inputs per network, in opposite pairs.
        seed: seed of networks and inputs.
        image_shape: (C, H, W).
        batch: number of networks that are differentiated together.
        device: device of the networks.
    """
    torch.manual_seed(seed)
    template = factory().eval().requires_grad_(False).to(device)

    def total(parameters: dict[str, Tensor], buffers: dict[str, Tensor], images: Tensor) -> Tensor:
        return functional_call(template, (parameters, buffers), (images,)).sum()

    gradients = vmap(grad(total, argnums=2))
    dimension = math.prod(image_shape)
    moment = torch.zeros(dimension, dimension, dtype=torch.float64, device=device)
    for start in range(0, count, batch):
        size = min(batch, count - start)
        networks = [factory().eval().requires_grad_(False).to(device) for _ in range(size)]
        parameters, buffers = stack_module_state(networks)
        inputs = torch.randn(size, num_inputs // 2, *image_shape, device=device)
        images = torch.cat([inputs, -inputs], dim=1)  # (B, K, C, H, W)
        means = gradients(parameters, buffers, images).mean(1).flatten(1).double()  # (B, D)
        moment += means.T @ means
    return torch.linalg.eigh(moment / count).eigenvectors.T.flip(0).cpu()


def overlap(first: Tensor, second: Tensor) -> float:
    """Return the mean squared cosine of the principal angles between all rows of `second` and as
    many of `first`.
    """
    return float((first[: len(second)].double() @ second.double().T).square().sum() / len(second))
