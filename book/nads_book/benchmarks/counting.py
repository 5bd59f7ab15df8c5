"""The work of one network: its multiplications and additions in convolutions and matrix products.

Random numbers and elementwise operations are not counted.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from nads_core.directions import Dipole, Estimator, MixedDerivative
from nads_core.networks import Networks


def count_work(networks: Networks, estimator: Estimator) -> dict[str, float]:
    """Count the flop of one network; nothing is computed.

    Args:
        networks: the networks.
        estimator: estimator that is applied to each.

    Returns:
        Flop of the ``forward`` passes, and of the ``backward`` passes to the inputs (with
        `MixedDerivative` of those to the weights and back).
    """
    network = networks.draw(0).to("meta")
    batch = torch.empty(2, *networks.image_shape, dtype=networks.dtype, device="meta")
    images = batch.requires_grad_().clone()  # a layer may change its input
    weights = [parameter.requires_grad_() for parameter in network.parameters()]

    def scalar() -> torch.Tensor:
        return networks.value(network(images)).sum()

    def mixed() -> None:
        slopes = torch.autograd.grad(scalar(), weights, create_graph=True, allow_unused=True)
        along = [(slope * torch.empty_like(slope)).sum() for slope in slopes if slope is not None]
        torch.autograd.grad(torch.stack(along).sum(), images, allow_unused=True)

    forward, value = _flop(scalar)
    num_inputs, readouts = estimator.num_inputs, estimator.readouts
    assert isinstance(readouts, int)
    if isinstance(estimator, Dipole):  # both ends for each pixel, and nothing backward
        num_inputs, backward = 2 * math.prod(networks.image_shape), 0.0
    elif isinstance(estimator, MixedDerivative):
        backward = _flop(mixed)[0] - forward
    else:
        backward = readouts * _flop(lambda: torch.autograd.grad(value, images))[0]
    return {"forward": num_inputs * forward, "backward": num_inputs * backward}


def _flop(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the flop of a call with two inputs, for each of them, and its result."""
    from torch.utils.flop_counter import FlopCounterMode  # which takes a second to import

    with FlopCounterMode(display=False) as counter:
        result = call()
    return counter.get_total_flops() / 2, result
