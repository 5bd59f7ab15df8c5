"""What is asked of the first networks of a factory, before many are drawn.

Each check has one message, with the value that was found, its cause and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from nads_core.kernels import faster_layers
from nads_core.networks.network import INPUTS, Network, Networks
from nads_core.networks.readouts import (
    InPlaceWrites,
    Readout,
    drawn_stds,
    find_readout,
    relative,
)
from nads_core.runtime.seeds import generator_states

_TRIED = 128  # networks, of which one has to depend on its input
_AGREEMENT = 1e-3  # of an input alone and in its batch, relative


def checked(networks: Networks, num_inputs: int, antithetic: bool) -> tuple[Networks, str]:
    """Return networks that can be evaluated: with the layers of a CPU that are faster, and with the
    last layer of which others can be drawn.

    Args:
        networks: the networks.
        num_inputs: number of inputs at which each is evaluated at once.
        antithetic: whether inputs come in opposite pairs.

    Returns:
        The networks, and why no other last layers can be drawn, "" if they can.

    Raises:
        TypeError: if the factory does not return a network.
        ValueError: for networks that are not drawn anew at each call, are not reproduced by their
            seed, mix the inputs of a batch, do not depend on their input, or return NaN.
    """
    if torch.is_inference_mode_enabled():
        raise ValueError("gradients are needed: leave torch.inference_mode() for this call")
    given = isinstance(networks.source, tuple)
    if isinstance(networks.source, tuple):
        names = (
            name for net in networks.source for name, p in net.named_parameters() if p.requires_grad
        )
        networks = replace(networks, varying=tuple(dict.fromkeys(names)))
        first = Network(networks, 0)
    else:
        one, other = (networks.build(index) for index in range(2))
        parts = ({*each.modules(), *each.parameters(), *each.buffers()} for each in (one, other))
        networks = replace(networks, shared=not set.isdisjoint(*parts))
        trainable = [name for name, p in one.named_parameters() if p.requires_grad]
        if networks.shared:  # the second one may have taken the place of the first
            first, second = (Network(networks, index) for index in range(2))
        else:
            first, second = Network(networks, 0, one), Network(networks, 1, other)
        with InPlaceWrites() as writes:
            rebuilt = networks.build(0)
        stds = drawn_stds(writes, rebuilt)
        again = Network(networks, 0, rebuilt)
        # Before their first call, which may make a buffer
        states = [dict(each.module.state_dict()) for each in (first, again, second)]
    images = networks.randn(0, INPUTS, max(2, num_inputs), *networks.image_shape)
    values = require_outputs(first, images)
    few = images[:2]
    if not given:
        outputs = [each.outputs(few) for each in (first, again, second)]
        different = _require_drawn(states, outputs)
        varying = tuple(name for name in trainable if name in different)
        networks = replace(networks, varying=varying)
    _require_independent(first, images, values)
    _require_dependence(networks, first, antithetic)
    if networks.device.type == "cpu":
        slopes = first.input_gradients(few)
        faster_layers(first.module)
        # Where pixels of a max pooling are equal gradients can change
        same = relative(slopes, first.input_gradients(few)) <= _AGREEMENT
        networks = replace(networks, faster=same)
    if given or callable(networks.output):
        return networks, "the networks are given" if given else "output is a function"
    found = find_readout(again.module, stds, few)
    if isinstance(found, Readout):
        return replace(networks, readout=found), ""
    return networks, found


def require_outputs(network: Network, images: Tensor) -> Tensor:
    """Return f, (K,), of K inputs; raise a ValueError unless a network maps (K, *image_shape) to
    real and finite numbers, each time the same.
    """
    networks = network.networks
    try:
        raw = network.module(images.clone())
    except Exception as error:  # whatever the network's author chose to raise
        raise ValueError(
            f"the network rejected inputs of shape {tuple(images.shape)} ({error}): is image_shape "
            f"{networks.image_shape} right? A network of several inputs needs a wrapper of one"
        ) from error
    values = networks.value(raw).detach().clone()
    if values.shape != images.shape[:1] or not values.is_floating_point():
        raise ValueError(
            f"f must be one real number for each of {len(images)} inputs, got {values.dtype} of "
            f"shape {tuple(values.shape)}: name another output"
        )
    if not values.isfinite().all():
        raise ValueError(
            f"network 0 returned NaN or infinite values for {int((~values.isfinite()).sum())} of "
            f"{len(images)} Gaussian inputs: check its initialisation and divisions, and that eval "
            "mode is meant"
        )
    states = generator_states()
    buffers = {name: buffer.clone() for name, buffer in network.module.named_buffers()}
    few, again = (network.outputs(images[:2]) for _ in range(2))
    for name, buffer in network.module.named_buffers():
        if name not in buffers or not torch.equal(buffer, buffers[name]):
            raise ValueError(
                f"the buffer {name} changes at each call in eval mode, so f depends on the inputs "
                "before: keep it fixed there, as batch normalisation does its running statistics"
            )
    if states != generator_states() or not torch.equal(few, again):
        raise ValueError(
            f"two evaluations of one network differ by {relative(few, again):.1g}: it draws "
            "random numbers in eval mode, or changes with each call (is dropout always on?)"
        )
    return values


def _require_drawn(states: list[dict[str, Tensor]], outputs: list[Tensor]) -> list[str]:
    """Return the names of the weights and buffers that differ between networks; raise a ValueError
    if no number does, or the seed does not determine them.

    Args:
        states: weights and buffers of network 0, of network 0 built again, and of network 1.
        outputs: f of each at the same inputs.
    """
    changed, different = (
        [
            name
            for name, value in states[0].items()
            if name not in other
            or value.shape != other[name].shape
            or not torch.equal(value, other[name])
        ]
        for other in states[1:]
    )
    if changed or not torch.equal(outputs[0], outputs[1]):
        what = f"in {changed[0]}" if changed else "in a plain attribute"
        raise ValueError(
            f"network 0, built twice under the same seed, differs {what}: draw random numbers from "
            "the global generators of torch, numpy or random, which are seeded, and keep nothing "
            "between calls of the factory"
        )
    if not different and torch.equal(outputs[0], outputs[2]):
        raise ValueError(
            "the factory returned the same weights for networks 0 and 1: it has to draw new ones "
            "at each call, as `lambda: MyNet()` does"
        )
    return different


def _require_independent(network: Network, images: Tensor, values: Tensor) -> None:
    """Raise a ValueError unless f and its gradient at an input are the same alone and in a batch,
    where f is ``values``.
    """
    allowed = max(_AGREEMENT, 4 * torch.finfo(images.dtype).eps)
    ends = [0, -1]
    with _leaf_outputs(network.module) as together:
        gradients = network.input_gradients(images)[0, ends]
    with _leaf_outputs(network.module) as first:
        # Two copies of an input: norms over the batch, and squeezed outputs, do not allow just one
        pairs = [torch.stack([one, one]) for one in images[ends]]
        own_values = torch.stack([network.outputs(pair)[0] for pair in pairs])
        own_gradients = torch.stack([network.input_gradients(pair)[0, 0] for pair in pairs])
    difference = max(relative(own_values, values[ends]), relative(own_gradients, gradients))
    if difference > allowed:
        mixed = [
            name
            for name, outputs in together.items()
            if name in first
            and outputs.shape[1:] == first[name].shape[1:]
            and relative(first[name][:1], outputs[:1]) > allowed
        ]
        layer = "the network mixes"
        if mixed:
            kind = type(network.module.get_submodule(mixed[0])).__name__
            layer = f"the layer {mixed[0]!r} ({kind}) mixes"
        raise ValueError(
            f"f or its gradient at one input, alone and in a batch of {len(images)}, differ by "
            f"{difference:.1g} (allowed {allowed:.1g}): {layer} the inputs of a batch (batch norm "
            "without running statistics, batch_first, a stopping rule for the whole batch?)"
        )


@contextmanager
def _leaf_outputs(network: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the first output of each layer without children, by name, while the context lasts."""
    outputs: dict[str, Tensor] = {}
    hooks = []

    def keep(name: str, result: object) -> None:
        if isinstance(result, Tensor) and result.dim():
            outputs.setdefault(name, result.detach().clone())

    for name, layer in network.named_modules():
        if not (any(layer.children()) or isinstance(layer, torch.jit.ScriptModule)):  # has no hooks
            hooks.append(layer.register_forward_hook(lambda _, __, out, name=name: keep(name, out)))
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


def _require_dependence(networks: Networks, first: Network, antithetic: bool) -> None:
    """Raise a ValueError unless f of the first networks depends on the input, and is not even in it
    where opposite inputs are averaged.
    """
    count = len(networks.source) if isinstance(networks.source, tuple) else _TRIED
    for index in range(min(count, _TRIED)):
        network = Network(networks, index) if index else first
        gradients = network.input_gradients(network.inputs(2, antithetic=True))[0]  # (2, D)
        if not gradients.isfinite().all():
            raise ValueError(
                f"the input gradient of network {index} is NaN or infinite: check its activations "
                "at 0 and its divisions"
            )
        size = float(gradients.double().square().mean().sqrt())
        tiny = torch.finfo(networks.dtype).tiny
        if 0 < size < 1e3 * tiny:
            raise ValueError(
                f"the input gradients are near {size:.0e}, too small for {networks.dtype}: use "
                "dtype='float64', or scale the output"
            )
        if size:
            break
    else:
        zero = [
            name
            for name, p in first.module.named_parameters()
            if not p.any() and not name.endswith("bias")
        ]
        cause = f" (all zeros: {', '.join(zero[-3:])})" if zero else ""  # a head comes last
        raise ValueError(
            f"the output of the first {count} networks does not depend on their input{cause}: draw "
            "such a layer in the factory, for example by torch.nn.init.normal_"
        )
    if antithetic and gradients.sum(0).norm() <= 1e-3 * gradients.norm():
        raise ValueError(
            "f(-x) = f(x): gradients at opposite inputs cancel, so their mean is 0. Use "
            "nc.PointGradient(), or an estimator with antithetic=False"
        )
