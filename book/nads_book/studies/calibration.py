"""How well two runs agree on NADs; ``benchmarks/reliability.py`` measures how well their uncertainty is calibrated."""

import torch
from torch import Tensor

from nads_core.directions.nads import NADs


def agreement(first: NADs, second: NADs) -> tuple[Tensor, Tensor]:
    """Return the squared cosines (n,) of the directions of one run with those of another.

    Returns:
        With the direction of the same index, and with the direction of the same name.
    """
    place = {name: index for index, name in enumerate(second.names)}
    squares = (first.directions.flatten(1) @ second.directions.flatten(1).T).square()
    named = torch.stack([squares[index, place[name]] for index, name in enumerate(first.names)])
    return squares.diagonal(), named
