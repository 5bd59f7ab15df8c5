"""A loop of plain automatic differentiation, one network and one input at a time, to which the fast
paths are held.
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor, nn

from nads_core.networks.derivatives import cast
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.evaluator import networks_of
from nads_core.networks.modules import State, state_of
from nads_core.runtime.seeds import seeded

Factory = Callable[[], nn.Module]


def loaded(network: nn.Module, weights: State) -> nn.Module:
    """Give a network weights, in eval mode."""
    network.eval()
    for name, tensor in state_of(network).items():
        if name in weights:
            tensor.data = weights[name].clone()
    return network


def built(ensemble: Ensemble, factory: Factory, block: int = 0, count: int = 3) -> list[nn.Module]:
    """Return the first networks of a block of an ensemble, as modules of their own."""
    if ensemble.from_factory:
        with seeded(ensemble.seed_of(block)):
            networks = [factory() for _ in range(ensemble.block_size)][:count]
        for network in networks:
            network.eval()
    else:
        states = list(networks_of(ensemble.draw(block)))[:count]
        networks = [loaded(factory(), state) for state in states]
    return [network._apply(partial(cast, dtype=ensemble.dtype)) for network in networks]


def first_output(network: nn.Module, images: Tensor) -> Tensor:
    outputs = network(images.clone())
    return outputs[:, 0] if outputs.dim() == 2 else outputs


def values(network: nn.Module, images: Tensor) -> Tensor:
    """Return f at each image alone, (K,)."""
    return torch.cat([first_output(network, x).detach().clone() for x in images.split(1)])


def gradients(network: nn.Module, images: Tensor) -> Tensor:
    """Return the gradient of f at each image alone, (K, C, H, W)."""
    found = []
    for image in images.split(1):
        image = image.clone().requires_grad_()
        found += torch.autograd.grad(first_output(network, image).sum(), image)
    return torch.cat(found)


def with_readouts(network: nn.Module, name: str, readouts: Tensor) -> Iterable[nn.Module]:
    """Yield a network with each of several rows (R, F) as first row of its last layer."""
    weight = network.get_parameter(name)
    for row in readouts:
        weight.data = torch.cat([row[None], weight.data[1:]])
        yield network


def require_own_gradients(
    ensemble: Ensemble, factory: Factory, block: int = 0, readouts: Iterable[int] = ()
) -> None:
    """Raise unless values and gradients of an ensemble's networks, also for each of these numbers
    of readouts, are those of separate modules.
    """
    rows = slice(0, 3)
    shape = ensemble.image_shape
    state = {name: tensor[rows] for name, tensor in ensemble.draw(block).items()}
    images = ensemble.randn(block, 1, 4, *shape)[rows]
    pairs = list(zip(built(ensemble, factory, block), images, strict=True))
    close = partial(torch.testing.assert_close, rtol=1e-6, atol=1e-9)
    close(ensemble.outputs(state, images), torch.stack([values(*pair) for pair in pairs]))
    close(
        ensemble.input_gradients(state, images), torch.stack([gradients(*pair) for pair in pairs])
    )
    for count in readouts:
        drawn = ensemble.draw_readouts(block, 3, count)[rows]
        expected = [
            gradients(changed, x)
            for (network, x), own in zip(pairs, drawn, strict=True)
            for changed in with_readouts(network, ensemble.readout.weight, own)
        ]
        close(ensemble.input_gradients(state, images, drawn), torch.stack(expected))
