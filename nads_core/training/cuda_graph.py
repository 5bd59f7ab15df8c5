"""Capture of a training step as a CUDA graph, which launches all its kernels at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def capture(
    step: Callable[[Tensor, Tensor], Tensor], batch_size: int, state: list[Tensor]
) -> Callable[[Tensor, Tensor], Tensor]:
    """Record a training step on full batches as a CUDA graph; smaller batches run without it.

    ``state`` holds every tensor that a step changes; warming up restores it.
    """
    device = state[0].device
    indices = torch.arange(batch_size, device=device)
    rate = torch.zeros((), device=device)
    before = [tensor.clone() for tensor in state]
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(3):
            step(indices, rate)
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(indices, rate)
    for tensor, value in zip(state, before, strict=True):
        tensor.copy_(value)

    def replay(batch: Tensor, value: Tensor) -> Tensor:
        if len(batch) != batch_size:
            return step(batch, value)
        indices.copy_(batch)
        rate.copy_(value)
        graph.replay()
        return loss.clone()

    return replay
