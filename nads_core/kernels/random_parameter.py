"""How one parameter of a network is drawn by a kernel."""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RandomParameter:
    """How one parameter of a network is drawn: shift + scale * z, with z uniform on (-1, 1) or
    standard normal.

    Both numbers are rounded to float32, as the weights are.
    """

    shape: tuple[int, ...]
    distribution: str
    shift: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name in ("shift", "scale"):
            object.__setattr__(self, name, float(np.float32(getattr(self, name))))

    @property
    def size(self) -> int:
        """Number of elements in one network."""
        return math.prod(self.shape)
