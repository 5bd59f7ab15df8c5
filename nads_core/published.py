"""What the authors published: numbers to compare ours with.

Data files of LTS4/neural-anisotropy-directions are read from the folder that the environment variable
``NADS_REFERENCE`` names, and are not part of this package. Numbers that exist only as pictures in the paper
(Ortiz-Jimenez, Modas, Moosavi-Dezfooli and Frossard, NeurIPS 2020) were read off them, to about a point.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

_COLUMNS = {"lenet": "acc_ln", "resnet18": "acc_rn"}

# Fig. 7: accuracy on clean CIFAR-10 of a ResNet-18 by NAD index of the carrier, epsilon = 0.05. Neighbouring indices
# scatter by 10 to 15 points below index 300, and by 5 above.
POISON_RESNET18 = {0: 0.17, 10: 0.36, 50: 0.42, 100: 0.42, 200: 0.49, 250: 0.66, 300: 0.78, 350: 0.72, 400: 0.80,
                   600: 0.79, 800: 0.78, 1000: 0.79}  # fmt: skip
# Fig. 8: accuracy on CIFAR-10, and on its flipped version.
FLIP = {"lenet": (0.69, 0.48), "resnet18": (0.89, 0.58)}
# Fig. 3: range of the accuracy over the DFT directions without pooling.
NO_POOLING = {"lenet": (1.0, 1.0), "resnet18": (0.88, 1.0)}


def _file(name: str) -> Path | None:
    folder = os.environ.get("NADS_REFERENCE")
    path = Path(folder, name) if folder else None
    return path if path and path.exists() else None


def _rows(name: str) -> list[dict] | None:
    path = _file(name)
    if path is None:
        return None
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def fourier_accuracies(architecture: str) -> dict[tuple[int, int], float] | None:
    """Return the test accuracy at each frequency (ky, kx) of Fig. 1, in [0, 1], for "lenet" or "resnet18".

    None if the authors' file is not at hand, or has no such architecture.
    """
    rows, column = _rows("dft_accuracies_lenet_resnet18.csv"), _COLUMNS.get(architecture)
    if rows is None or column is None:
        return None
    return {(2 * (int(row["y"]) - 8), 2 * (int(row["x"]) - 8)): float(row[column]) / 100 for row in rows}


def nad_accuracies(architecture: str) -> dict[int, float] | None:
    """Return the test accuracy at each NAD index of Fig. 6, in [0, 1]; None as in `fourier_accuracies`."""
    rows, column = _rows("nad_accuracies_lenet_resnet18.csv"), _COLUMNS.get(architecture)
    return rows and column and {int(row["index"]): float(row[column]) / 100 for row in rows}


def directions(architecture: str) -> Tensor | None:
    """Return the authors' NADs (1023, 1, 32, 32) of "lenet" or "resnet18"; None if the file is not at hand."""
    name = {"lenet": "LeNet", "resnet18": "ResNet18"}.get(architecture)
    path = name and _file(f"{name}_published_nads.npz")
    if not path:
        return None
    return torch.from_numpy(np.load(path)["nads"]).float().view(-1, 1, 32, 32)
