"""Seeds, one per purpose, derived from one seed of the user."""

import pickle
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import numpy as np
import torch

Made = TypeVar("Made")
_TRIES = 9  # after which a function has to be one that draws another number at each call
_lock = threading.RLock()  # the global generators belong to the whole process


def seed_sequence(seed: int, *path: int) -> int:
    """Return a 63-bit seed that depends on all of ``(seed, *path)``.

    Numpy pads the numbers with zeros to four: ``seed_sequence(0) == seed_sequence(0, 0)``. So paths
    that end in zeros share the seed of the path without them; paths of one length get different
    seeds in practice.
    """
    return int(
        np.random.SeedSequence((seed, *path)).generate_state(1, np.uint64)[0] >> np.uint64(1)
    )


def generator_state(device: torch.device) -> torch.Tensor:
    """Return the state of the global generator that a network on ``device`` draws from."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def generator_states() -> tuple[object, ...]:
    """Return the states of the global generators of Python, numpy and torch on the CPU."""
    of_numpy = pickle.dumps(np.random.get_state())
    return random.getstate(), of_numpy, torch.get_rng_state().numpy().tobytes()


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed the global generators of torch, numpy and Python for a block, and restore their states
    afterwards; other threads wait for their turn, unless they draw without `seeded` (see `drawn`).

    Those of torch are the generators of the CPU, of the GPUs that this process has used before, and
    of ``device``. A GPU that was not used yet stays unchanged: ``torch.manual_seed`` would leave it
    a seed for its first use.

    Args:
        seed: seed of every generator.
        device: device that also draws numbers.
    """
    kind, cpu = torch.device(device).type, torch.default_generator
    with ExitStack() as at_end:
        at_end.enter_context(_lock)
        at_end.callback(random.setstate, random.getstate())
        random.seed(seed)
        at_end.callback(np.random.set_state, np.random.get_state())
        np.random.seed(seed % 2**32)
        at_end.callback(cpu.set_state, cpu.get_state())
        cpu.manual_seed(seed)
        if kind == "cuda" or torch.cuda.is_initialized():
            at_end.callback(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
            torch.cuda.manual_seed_all(seed)
        if kind == "mps":
            at_end.callback(torch.mps.set_rng_state, torch.mps.get_rng_state())
            torch.mps.manual_seed(seed)
        yield


def drawn(make: Callable[[], Made], seed: int, device: torch.device | str = "cpu") -> Made:
    """Return what a function makes under a seed, in spite of other threads that draw without
    `seeded`, as those of a Dask worker do from Python's `random`.

    Where numbers of Python or numpy were drawn, it is made again, until two in a row drew as many.
    """
    last = None
    for _ in range(_TRIES):
        with seeded(seed, device):
            begin = _next_numbers()
            random.seed(seed)
            np.random.seed(seed % 2**32)
            made = make()
            end = _next_numbers()
        if end in (begin, last):
            break
        last = end
    return made


def _next_numbers() -> tuple[float, float]:
    """Draw a number of Python and one of numpy, which tell where these generators are: in less time
    than their states take.
    """
    return random.random(), np.random.random()
