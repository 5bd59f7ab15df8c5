"""Seeds that don't collide: one a purpose, from one number that the user gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_sequence(seed: int, *path: int) -> int:
    """Return a 63-bit seed that depends on all of ``(seed, *path)`` and collides with no other path in practice."""
    return int(np.random.SeedSequence((seed, *path)).generate_state(1, np.uint64)[0] >> np.uint64(1))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from torch's global generators as if freshly seeded, and put them back as they were."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
