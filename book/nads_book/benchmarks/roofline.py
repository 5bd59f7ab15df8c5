"""A lower bound of the time that one network takes: its multiplications and additions at the rate
of large matrix products.

Random numbers and elementwise operations are not counted.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from nads_core.directions import Dipole, Estimator, MixedDerivative
from nads_core.networks import Networks

PRECISIONS = ("float32", "bfloat16", "float64")
Rates = dict[str, float]  # flop/s of matrix products, by the precision of their factors


def median_seconds(call: Callable[[], object], seconds: float = 2.0) -> float:
    """Return the median time of calls with this number of threads, the work on a GPU included.

    Args:
        call: function that is measured.
        seconds: duration of the measurement; a longer call is measured once.
    """
    from torch.utils.benchmark import Timer  # warns at import where there is no CUDA

    timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=seconds).median


def measure_rates(size: int = 1536) -> Rates:
    """Measure square matrix products of this machine's CPU, on the threads that torch uses.

    Args:
        size: number of rows of the matrices.
    """
    rates = {}
    for precision in PRECISIONS:
        left, right = torch.randn(2, size, size).to(getattr(torch, precision))
        rates[precision] = 2 * size**3 / median_seconds(partial(torch.mm, left, right), 0.5)
    return rates


def count_work(networks: Networks, estimator: Estimator, dense: bool = True) -> dict[str, float]:
    """Count the flop of one network; nothing is computed.

    Args:
        networks: the networks.
        estimator: estimator that is applied to each.
        dense: whether D x D moments are summed, or vectors kept.

    Returns:
        Flop of the ``forward`` passes, of the ``backward`` passes to the inputs (with
        `MixedDerivative` of those to the weights and back), and of one triangle of the ``moments``.
    """
    dimension = math.prod(networks.image_shape)
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
    rows = readouts * min(2, num_inputs)
    if isinstance(estimator, Dipole):  # both ends for each pixel, and nothing backward
        num_inputs, backward = 2 * dimension, 0.0
    elif isinstance(estimator, MixedDerivative):
        backward = _flop(mixed)[0] - forward
    else:
        backward = readouts * _flop(lambda: torch.autograd.grad(value, images))[0]
    return {
        "forward": num_inputs * forward,
        "backward": num_inputs * backward,
        "moments": 1.0 * rows * dimension * (dimension + 1) if dense else 0.0,
    }


def _flop(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the flop of a call with two inputs, for each of them, and its result."""
    from torch.utils.flop_counter import FlopCounterMode  # which takes a second to import

    with FlopCounterMode(display=False) as counter:
        result = call()
    return counter.get_total_flops() / 2, result


def limit_seconds(work: dict[str, float], rates: Rates, precision: str) -> float:
    """Return the time of the counted work, with networks of a precision and moments in float64."""
    networks = (work["forward"] + work["backward"]) / rates[precision]
    return networks + work["moments"] / rates["float64"]
