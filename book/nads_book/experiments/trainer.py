"""Training with any optimiser of `torch.optim`, step by step."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nads_core.training import Dataset


def training_steps(
    network: nn.Module,
    data: Dataset,
    optimiser: torch.optim.Optimizer,
    batches: Iterable[Tensor],
    *,
    rate: Callable[[int], float] | None = None,
    clip_norm: float | None = None,
) -> Iterator[tuple[int, Tensor]]:
    """Train a network in place with cross-entropy, and pause after every step.

    Args:
        network: module in training mode, from images (N, C, H, W) to logits (N, classes).
        data: training images and labels, on the device of the network.
        optimiser: optimiser of the network's parameters.
        batches: indices of the samples of each step, drawn when the step is due.
        rate: learning rate of a step, counted from 0; that of the optimiser by default.
        clip_norm: upper bound of the norm of the gradient of all weights together; none by default.

    Yields:
        Number of steps done, and the loss of the last one.
    """
    images, labels = data
    for step, batch in enumerate(batches):
        if rate is not None:
            for group in optimiser.param_groups:
                group["lr"] = rate(step)
        optimiser.zero_grad()
        loss = F.cross_entropy(network(images[batch]), labels[batch])
        loss.backward()
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(network.parameters(), clip_norm)
        optimiser.step()
        yield step + 1, loss.detach()
