"""The method by plain automatic differentiation, one network and one input at a time, to which the
library is held.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

import nads_core as nc
from nads_core.directions import Estimator
from nads_core.networks.network import INPUTS, PROBES, READOUTS, WEIGHTS, Networks
from nads_core.runtime.seeds import seeded


def built(networks: Networks, index: int) -> nn.Module:
    """Return a network as its factory returns it under its seed, in eval mode."""
    with seeded(networks.seed_of(index, WEIGHTS)):
        network = networks.source()
    network.eval()
    return network._apply(lambda t: t.to(networks.dtype) if t.is_floating_point() else t)


def value(networks: Networks, network: nn.Module, image: Tensor) -> Tensor:
    outputs = network(image[None].clone())
    if callable(networks.output):
        return networks.output(outputs).sum()
    return (outputs if outputs.dim() == 1 else outputs[:, networks.output]).sum()


def gradient(networks: Networks, network: nn.Module, image: Tensor) -> Tensor:
    image = image.clone().requires_grad_()
    f = value(networks, network, image)
    return torch.autograd.grad(f, image)[0].flatten() if f.requires_grad else 0 * image.flatten()


def with_readouts(networks: Networks, network: nn.Module, index: int, count: int) -> Iterator:
    """Yield a network with each of other last layers."""
    if count == 1:
        yield network
        return
    last = network.get_submodule(networks.readout.layer)
    drawn = networks.randn(index, READOUTS, last.in_features, count).double()
    rows = torch.linalg.qr(drawn).Q.T * networks.readout.std * last.in_features**0.5
    for row in rows:
        last.weight.data = torch.cat([row[None], last.weight.data[1:]])
        yield network


def mixed(networks: Networks, network: nn.Module, index: int, image: Tensor) -> Tensor:
    image = image.clone().requires_grad_()
    names = set(networks.varying)
    weights = [p.requires_grad_() for name, p in network.named_parameters() if name in names]
    f = value(networks, network, image)
    slopes = torch.autograd.grad(f, weights, create_graph=True, allow_unused=True)
    moved = torch.zeros((), dtype=image.dtype)
    sizes = [weight.numel() * (1 + weight.is_complex()) for weight in weights]
    probe = networks.randn(index, PROBES, sum(sizes)).split(sizes)
    for own, slope in zip(probe, slopes, strict=True):
        if slope is not None:
            flat = torch.view_as_real(slope.resolve_conj()) if slope.is_complex() else slope
            moved = moved + flat.flatten().to(own) @ own
    return torch.autograd.grad(moved, image)[0].flatten()


def contributions(networks: Networks, estimator: Estimator, index: int) -> Tensor:
    """Return the vectors of one network, (J, R, D)."""
    network, shape = built(networks, index), networks.image_shape
    if isinstance(estimator, nc.Dipole):
        x = (estimator.input_std * networks.randn(index, INPUTS, 1, *shape))[0]
        arms = estimator.step * torch.eye(x.numel(), dtype=x.dtype).view(-1, *shape)
        slopes = [
            value(networks, network, x + arm) - value(networks, network, x - arm) for arm in arms
        ]
        return (torch.stack(slopes) / (2 * estimator.step)).detach()[None, None]
    count = estimator.num_inputs
    drawn = estimator.input_std * networks.randn(
        index, INPUTS, count // 2 if estimator.antithetic else count, *shape
    )
    images = [x for one in drawn for x in ((one, -one) if estimator.antithetic else (one,))]
    if isinstance(estimator, nc.MixedDerivative):
        found = [[mixed(networks, network, index, x) for x in images]]
    else:
        found = [
            [gradient(networks, changed, x) for x in images]
            for changed in with_readouts(networks, network, index, estimator.readouts)
        ]
    pair = 1 + estimator.antithetic
    half = count // pair // 2 * pair
    gradients = torch.stack([torch.stack(each) for each in found])  # (R, K, D)
    halves = [part.mean(1) for part in (gradients[:, :half], gradients[:, half:]) if part.numel()]
    return torch.stack(halves)


def shares(networks: Tensor) -> Tensor:
    """Return the shares of the groups in C, (8, D, D) in float64, from the vectors of networks,
    (N, J, R, D).
    """
    sums = torch.zeros(8, *networks.shape[-1:] * 2, dtype=torch.float64)
    for index, own in enumerate(networks.double()):
        for x, y in zip(own[0], own[-1], strict=True):
            sums[index % 8] += (torch.outer(x, y) + torch.outer(y, x)) / 2
    return sums / networks[:, 0, :, 0].numel()
