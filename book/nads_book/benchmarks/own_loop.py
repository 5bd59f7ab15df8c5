"""NADs by a plain loop of PyTorch, which the library is compared with."""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

_GROUPS, _AT_ONCE = 8, 16  # groups, and networks between two products


def own_loop(
    factory: Callable[[], nn.Module],
    image_shape: tuple[int, ...],
    count: int,
    readouts: int = 1,
    device: torch.device | str = "cpu",
) -> tuple[Tensor, Tensor]:
    """Return directions (D, D), in rows, and their certainties (D,), from one network at a time.

    The method is that of the library, without its symmetries, faster layers and processes: products
    of two halves of each network's inputs, in eight groups, and certainties from their splits.

    Args:
        factory: function that returns a new network.
        image_shape: shape of an input.
        count: number of networks.
        readouts: number of orthogonal last layers per network.
        device: device of the networks.
    """
    size, buffer = math.prod(image_shape), []
    sums = torch.zeros(_GROUPS, size, size, dtype=torch.float64, device=device)
    for index in range(count):
        torch.manual_seed(index)
        network = factory().eval().requires_grad_(False).to(device)
        half = torch.randn(8, *image_shape, device=device)
        images = torch.stack([half, -half], 1).flatten(0, 1).requires_grad_()
        values = network(images)[:, :1] if readouts == 1 else _heads(network, images, readouts)
        gradients = [
            torch.autograd.grad(value, images, retain_graph=True)[0].flatten(1)
            for value in values.sum(0)
        ]
        buffer.append(torch.stack(torch.stack(gradients).chunk(2, 1)).mean(2))  # (2, R, D)
        if len(buffer) == _AT_ONCE or index == count - 1:
            x, y = torch.cat(buffer, 1).double()
            sums[index // _AT_ONCE % _GROUPS] += x.T @ y
            buffer = []
    shares = (sums + sums.mT) / 2
    return torch.linalg.eigh(shares.sum(0))[1].T.flip(0).cpu(), _certainty(shares)


def _heads(network: nn.Module, images: Tensor, readouts: int) -> Tensor:
    """Return what orthogonal last layers make of what the last layer reads, (K, R)."""
    last = [layer for layer in network.modules() if isinstance(layer, nn.Linear)][-1]
    seen: list[Tensor] = []
    hook = last.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    network(images)
    hook.remove()
    rows = torch.linalg.qr(torch.randn(last.in_features, readouts, device=images.device)).Q
    return seen[0] @ rows * float(last.weight.std()) * last.in_features**0.5


def _certainty(shares: Tensor) -> Tensor:
    """Return certainties (D,) from the splits of the groups into halves."""
    total, overlap = shares.sum(0), torch.zeros_like(shares[0])
    splits = [[0, *rest] for rest in itertools.combinations(range(1, _GROUPS), _GROUPS // 2 - 1)]
    if len(total) > 512:
        splits = [[0, 1, 2, 3], [0, 1, 4, 5], [0, 2, 4, 6]]
    for half in splits:
        part = shares[half].sum(0)
        one, other = (torch.linalg.eigh(moment)[1].flip(1) for moment in (part, total - part))
        overlap += (one.T @ other).square() / len(splits)
    levels, basis = torch.linalg.eigh((overlap + overlap.T) / 2)
    known = ((basis * levels.clamp(min=0).sqrt()) @ basis.T).diagonal().clamp(0, 1)
    return (known + (1 - known) * known.square() / 2).cpu()
