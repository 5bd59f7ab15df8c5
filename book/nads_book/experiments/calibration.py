"""How well the uncertainty of NADs is calibrated, as measured by ``benchmarks/reliability.py``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nads_book.experiments.stored import load_study
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


def measured_agreement() -> dict[str, Any]:
    """Return how shipped NADs agree with an independent run, index by index."""
    return load_study("agreement.json")


def measured_reliability() -> dict[str, dict[str, Any]]:
    """Return the reliability diagrams, by name."""
    return load_study("reliability.json")
