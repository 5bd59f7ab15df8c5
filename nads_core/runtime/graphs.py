"""CUDA graphs: many kernels that are launched at once."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

_WARM_UP = 3  # calls before the capture, in which libraries choose their algorithms


def capture(
    function: Callable[[], Tensor], changed: Sequence[Tensor], device: torch.device
) -> Callable[[], Tensor]:
    """Return a function that repeats a call as a CUDA graph; on a device without graphs, the
    function itself.

    Args:
        function: reads and writes tensors that stay where they are, and returns the same tensor at
            every call.
        changed: all tensors that it changes; they keep their values while the graph is made.
        device: device of all tensors.

    Raises:
        RuntimeError: if the function waits for the device, for example to read a value.
    """
    if device.type != "cuda":
        return function
    before = [tensor.clone() for tensor in changed]
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP):
            function()
        # A capture that fails leaves the device's random generator unusable, so fail before it
        with waits_raise():
            function()
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    # Without a stream, torch captures what runs on the device that is current, not on this one
    with torch.cuda.graph(graph, stream=side):
        result = function()
    for tensor, value in zip(changed, before, strict=True):
        tensor.copy_(value)

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay


@contextmanager
def waits_raise() -> Iterator[None]:
    """Let operations on a GPU raise a RuntimeError if the CPU waits for their result."""
    with warnings.catch_warnings():
        # Raised as an error, torch's warning that not all are found would leave the mode as it is
        warnings.filterwarnings("ignore", "Synchronization debug mode")
        mode = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(mode)
