"""Seeds that don't collide: one a purpose, from one number that the user gives."""

from __future__ import annotations

import numpy as np


def seed_sequence(seed: int, *path: int) -> int:
    """Return a 63-bit seed that depends on all of ``(seed, *path)`` and collides with no other path in practice."""
    return int(np.random.SeedSequence((seed, *path)).generate_state(1, np.uint64)[0] >> np.uint64(1))
