"""What the authors published: numbers to compare ours with.

The test accuracies of Figs. 1 and 6 and the leading 64 directions of LeNet and ResNet-18, in 16
bit, ship with this package (see the NOTICE of this folder: they are the authors', under the Apache
License 2.0). Complete sets of directions are read from the folder that the environment variable
``NADS_REFERENCE`` names. Numbers that exist only as pictures in the paper (Ortiz-Jimenez, Modas,
Moosavi-Dezfooli and Frossard, NeurIPS 2020) were read off them, to about a point.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

# Fig. 7: accuracy on clean CIFAR-10 of a ResNet-18 by NAD index of the carrier, epsilon = 0.05.
# Neighbouring indices scatter by 10 to 15 points below index 300, and by 5 above.
POISON_RESNET18 = {
    0: 0.17,
    10: 0.36,
    50: 0.42,
    100: 0.42,
    200: 0.49,
    250: 0.66,
    300: 0.78,
    350: 0.72,
    400: 0.80,
    600: 0.79,
    800: 0.78,
    1000: 0.79,
}
# Fig. 8: accuracy on CIFAR-10, and on its flipped version.
FLIP = {
    "lenet": (0.69, 0.48),
    "vgg11": (0.87, 0.53),
    "resnet18": (0.89, 0.58),
    "densenet121": (0.92, 0.56),
}
# Fig. 3: range of the accuracy over the DFT directions without pooling.
NO_POOLING = {"lenet": (1.0, 1.0), "resnet18": (0.88, 1.0)}

_FILES = {"lenet": "LeNet", "vgg11": "VGG11", "resnet18": "ResNet18"}  # of the directions


def _column(figure: str, keys: list[str], architecture: str) -> dict[Any, float]:
    """Return accuracies of a figure by place, in [0, 1]."""
    path = Path(__file__).with_name(f"{figure}.csv")
    table = pd.read_csv(path, index_col=keys, float_precision="round_trip")
    if architecture not in table:
        known = ", ".join(table.columns)
        raise ValueError(f"nothing was published for {architecture!r} there: choose from {known}")
    return (table[architecture] / 100).to_dict()


@cache
def fourier_accuracies(architecture: str) -> dict[tuple[int, int], float]:
    """Return the test accuracy on D(v) at each frequency (ky, kx) of Fig. 1, in [0, 1]: 256 cells
    of a grid.

    Args:
        architecture: "logreg", "lenet", "vgg11", "resnet18" or "densenet121".

    Raises:
        ValueError: for another one.
    """
    return _column("fig1", ["ky", "kx"], architecture)


@cache
def nad_accuracies(architecture: str) -> dict[int, float]:
    """Return the test accuracy on D(u_i) at NAD indices i of Fig. 6, in [0, 1].

    The published table has a value at each of 1,023 indices. Those above 10 that are not 10 + 4 n
    lie on straight lines between their neighbours, to the last digit, so 264 directions were
    measured: these.

    Args:
        architecture: "lenet", "vgg11", "resnet18" or "densenet121".

    Raises:
        ValueError: for another one.
    """
    values = _column("fig6", ["index"], architecture).items()
    return {i: value for i, value in values if i <= 10 or (i - 10) % 4 == 0}


def directions(architecture: str, num_required: int = 1) -> Tensor | None:
    """Return the authors' NADs (n, 1, 32, 32), all 1,023 where NADS_REFERENCE has them, otherwise
    the leading 64.

    Args:
        architecture: "lenet" or "resnet18"; with NADS_REFERENCE also "vgg11".
        num_required: number of directions below which the result is None, such as 1,023 for a
            complete set.
    """
    folder = os.environ.get("NADS_REFERENCE") or os.devnull
    complete = Path(folder, f"{_FILES.get(architecture)}_published_nads.npz")
    path = complete if complete.exists() else Path(__file__).with_name(f"{architecture}.npz")
    if not path.exists():
        return None
    with np.load(path) as file:
        found = torch.from_numpy(file["nads"]).float()
    if len(found) < num_required:
        return None
    return torch.nn.functional.normalize(found, dim=1).view(-1, 1, 32, 32)
