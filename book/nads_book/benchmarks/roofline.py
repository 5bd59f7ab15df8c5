"""The roofline: operations and bytes that one network needs at least, and the time that a device's
limits give them.

Operations are the multiplications and additions of convolutions and matrix products; bytes are
those that must move if every layer is one pass over memory: its weights, what it reads and what it
writes. So no program that evaluates the networks layer by layer is faster than ``max(operations /
rate, bytes / bandwidth)``. Drawing random numbers is in the bytes (the weights are written once),
not in the operations.
"""

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from nads_core.directions import Dipole, Estimator, MixedDerivative
from nads_core.networks import Networks

_Result = TypeVar("_Result")

_COLUMNS = ("float32", "tf32", "bfloat16", "float64")  # of the data sheets below


@dataclass(frozen=True)
class Limits:
    """What a device can do at most.

    Args:
        device: name of the device.
        bandwidth: bytes/s of its memory.
        rates: flop/s of dense matrix products, by the precision of their factors.
        cores: number of cores of a CPU; None for a GPU.
    """

    device: str
    bandwidth: float
    rates: dict[str, float]
    cores: int | None = None


# Data sheets, dense; bfloat16 on a T4, which has none, is float32.
DATA_SHEETS = {
    name: Limits(name, bandwidth, dict(zip(_COLUMNS, rates, strict=True)))
    for name, bandwidth, rates in (
        ("H200", 4.8e12, (67e12, 495e12, 989e12, 67e12)),
        ("H100", 3.35e12, (67e12, 495e12, 989e12, 67e12)),
        ("A100", 2.0e12, (19.5e12, 156e12, 312e12, 19.5e12)),
        ("L4", 0.3e12, (30e12, 60e12, 121e12, 0.47e12)),
        ("T4", 0.32e12, (8.1e12, 8.1e12, 8.1e12, 0.25e12)),
    )
}


def data_sheet(device: str) -> Limits | None:
    """Return the limits of a GPU by the name that torch gives it, None for one that is not in the
    table.
    """
    return next(
        (limits for name, limits in DATA_SHEETS.items() if re.search(rf"\b{name}\b", device)), None
    )


def measure_limits(size: int = 1536, megabytes: int = 256) -> Limits:
    """Measure the peak of this machine's CPU, on the threads that torch uses: square matrix
    products, and a copy.

    Args:
        size: number of rows of the matrices.
        megabytes: size of the copy, more than the caches hold.
    """
    rates = {}
    for precision in ("float32", "bfloat16", "float64"):
        left, right = torch.randn(2, size, size).to(getattr(torch, precision))
        out = torch.empty_like(left)
        rates[precision] = 2 * size**3 / _shortest(partial(torch.mm, left, right, out=out))
    source = torch.ones(megabytes * 250_000)
    target = torch.empty_like(source)
    bandwidth = 2 * source.nbytes / _shortest(lambda: target.copy_(source))
    return Limits("CPU", bandwidth, rates | {"tf32": rates["float32"]}, torch.get_num_threads())


def timed(call: Callable[[], _Result], device: torch.device) -> tuple[_Result, float]:
    """Return the result of a call and its seconds, including its work on a GPU."""
    synchronize: Callable[[], None] = (
        torch.cuda.synchronize if device.type == "cuda" else lambda: None
    )
    synchronize()
    start = time.perf_counter()
    result = call()
    synchronize()
    return result, time.perf_counter() - start


def _shortest(call: Callable[[], object]) -> float:
    times = [timed(call, torch.device("cpu"))[1] for _ in range(8)]
    return min(times[1:])


@dataclass(frozen=True)
class Work:
    """What one network needs at least.

    Args:
        weights: numbers drawn.
        forward: flop of the forward passes.
        backward: flop of the passes to the inputs; with `MixedDerivative` of those to the weights
            and back, too.
        moments: flop of the outer products, one triangle of each; 0 on the Gram side.
        weight_bytes: weights written once, and read once a pass.
        activation_bytes: outputs of the layers with weights, written once and read once per pass.
        moment_bytes: the network's vectors, written and read.
        precision: number type of the networks; moments are summed in float64.
    """

    weights: int
    forward: float
    backward: float
    moments: float
    weight_bytes: float
    activation_bytes: float
    moment_bytes: float
    precision: str = "float32"

    def operations_seconds(self, limits: Limits, precision: str | None = None) -> float:
        """Return the time of the operations at the peak rate of a precision, that of the networks
        by default.
        """
        networks = (self.forward + self.backward) / limits.rates[precision or self.precision]
        return networks + self.moments / limits.rates["tf32" if limits.cores is None else "float64"]

    def bytes_seconds(self, limits: Limits) -> float:
        """Return the time of moving the bytes."""
        return (self.weight_bytes + self.activation_bytes + self.moment_bytes) / limits.bandwidth

    def seconds(self, limits: Limits, precision: str | None = None) -> float:
        """Return the larger of the two times: no program takes less."""
        return max(self.operations_seconds(limits, precision), self.bytes_seconds(limits))


def count_work(networks: Networks, estimator: Estimator, dense: bool = True) -> Work:
    """Count what one network needs; nothing is computed.

    Args:
        networks: the networks.
        estimator: estimator that is applied to each.
        dense: whether D x D moments are summed, or vectors kept.
    """
    dimension, item = math.prod(networks.image_shape), networks.dtype.itemsize
    network = networks.draw(0)
    weights = sum(p.numel() for p in network.parameters())
    assert isinstance(estimator.readouts, int)
    one, num_inputs, slope = _one_pass(networks, network), estimator.num_inputs, 0.0
    if isinstance(estimator, Dipole):  # both ends for each pixel, and nothing backward
        num_inputs = 2 * dimension
    elif isinstance(estimator, MixedDerivative):  # on to the weights, and back to the input
        slope = one.mixed
    else:
        slope = estimator.readouts * one.backward
    forward, backward = num_inputs * one.forward, num_inputs * slope
    # What computes twice as much as a forward pass counts as two
    passes_per_input = 1 + backward / forward
    rows = estimator.readouts * min(2, estimator.num_inputs)  # two halves of the inputs
    return Work(
        weights=weights,
        forward=forward,
        backward=backward,
        moments=1.0 * rows * dimension * (dimension + 1) if dense else 0.0,
        weight_bytes=item * weights * (1 + passes_per_input),
        activation_bytes=2.0 * item * num_inputs * passes_per_input * one.activations,
        moment_bytes=2.0 * item * rows * dimension,
        precision=str(networks.dtype).removeprefix("torch."),
    )


@dataclass(frozen=True)
class _OnePass:
    """What one input costs in one network, in flop.

    Args:
        forward: one evaluation.
        backward: derivative from the output to the input.
        mixed: derivative from the output to the weights and on to the input.
        activations: numbers, not flop, that the layers with weights return.
    """

    forward: float
    backward: float
    mixed: float
    activations: int


def _one_pass(networks: Networks, network: nn.Module) -> _OnePass:
    """Count on tensors without values."""
    network = network.to("meta")
    returned = 0

    def count(_module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal returned
        returned += output.numel()

    hooks = [
        layer.register_forward_hook(count)
        for layer in network.modules()
        if any(True for _ in layer.parameters(recurse=False))
        and not isinstance(layer, nn.modules.batchnorm._NormBase)
    ]
    batch = 2
    images = torch.empty(
        batch, *networks.image_shape, dtype=networks.dtype, device="meta", requires_grad=True
    ).clone()

    def scalar() -> Tensor:
        return networks.value(network(images)).sum()

    forward, value = _flop(scalar)
    for hook in hooks:
        hook.remove()
    backward, _ = _flop(lambda: torch.autograd.grad(value, images))
    weights = [parameter.requires_grad_() for parameter in network.parameters()]

    def mixed() -> None:
        slopes = torch.autograd.grad(scalar(), weights, create_graph=True, allow_unused=True)
        along = [(slope * torch.empty_like(slope)).sum() for slope in slopes if slope is not None]
        torch.autograd.grad(torch.stack(along).sum(), images, allow_unused=True)

    return _OnePass(
        forward / batch, backward / batch, (_flop(mixed)[0] - forward) / batch, returned // batch
    )


def _flop(call: Callable[[], _Result]) -> tuple[float, _Result]:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        result = call()
    return float(counter.get_total_flops()), result
