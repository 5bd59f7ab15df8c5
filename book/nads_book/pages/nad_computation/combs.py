"""Why NADs look as they do: strides, poolings and the last average explain the combs."""

from functools import cache
from typing import Literal

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from nads_book import figures
from nads_book.analysis.waves import spectrum_of
from nads_book.evidence import Evidence, evidence
from nads_book.experiments import load_nads
from nads_core.directions import NADs

STEPS = np.arange(17)  # vertical frequencies of images of 32 rows
TEETH = STEPS % 4 == 0


def rows_of(nads: NADs) -> np.ndarray:
    """Return the energy of C by row of its spectrum, in percent: of 0 to 16 cycles."""
    spectrum = spectrum_of(nads)
    rows = 100 * spectrum.sum(1) / spectrum.sum()  # of −16 to 15
    return np.array([float(rows[16 - k] + rows[(16 + k) % 32]) / 2 for k in range(17)])


def comb_share(nads: NADs, step: int = 4) -> float:
    """Return the energy of C at frequencies that are multiples of a step, but for the constant."""
    spectrum = spectrum_of(nads)
    size = len(spectrum)
    teeth = (torch.arange(size) - size // 2) % step == 0
    lattice = teeth[:, None] & teeth
    lattice[size // 2, size // 2] = False
    return float(spectrum[lattice].sum() / spectrum.sum())


def small_network(
    strides: bool = True,
    global_average: bool = True,
    padding: Literal["zeros", "reflect", "replicate", "circular"] = "zeros",
) -> nn.Module:
    """Return three convolutions that halve the resolution of 1 × 32 × 32, and a linear layer.

    Args:
        strides: whether they keep every other pixel; otherwise they average pairs of pixels.
        global_average: whether the linear layer sees an average over places; otherwise all places.
        padding: padding mode of the convolutions.
    """
    layers: list[nn.Module] = []
    channels = 1
    for width in (16, 32, 32):
        stride = 2 if strides else 1
        layers.append(nn.Conv2d(channels, width, 3, stride=stride, padding=1, padding_mode=padding))
        layers.append(nn.ReLU())
        if not strides:
            layers.append(nn.AvgPool2d(2))
        channels = width
    places = 1 if global_average else 4
    layers += [nn.AdaptiveAvgPool2d(places), nn.Flatten(), nn.Linear(32 * places**2, 1)]
    return nn.Sequential(*layers)


@cache
def measured() -> dict[str, np.ndarray]:
    """Return `rows_of` the NADs that ship, of the networks that are predicted."""
    return {label: rows_of(load_nads(label)) for label in predicted()}


def predicted() -> dict[str, np.ndarray]:
    """Return the energy by row that strides and poolings alone predict, in percent."""
    passed = np.cos(np.pi * STEPS / 32) ** 2 * np.cos(np.pi * STEPS / 16) ** 2
    whole = passed[0] + passed[16] + 2 * passed[1:16].sum()
    return {
        "ResNet-18": np.where(TEETH, 100 / 8, 0),
        "DenseNet-121": np.where(STEPS == 0, 100.0, 0.0),
        "LeNet": 100 * passed / whole,
    }


def plot_combs() -> Figure:
    """Draw the energy of C by vertical frequency: measured in random networks, and predicted."""
    return figures.plot_curves(
        STEPS,
        {label: {"measured": values} for label, values in measured().items()},
        "energy (% of the total)",
        dashed={label: {"predicted": values} for label, values in predicted().items()},
        yscale="log",
        xlabel="vertical frequency",
        ylim=(0.05, 150),
    )


def comb() -> Evidence:
    """Decide whether ResNet-18's second moment is a comb, and DenseNet-121's one spike of it."""
    resnet = measured()["ResNet-18"]
    gap = resnet[TEETH].min() / resnet[~TEETH].max()
    return evidence(gap > 5 and measured()["DenseNet-121"][0] > 80, gap, size="paper")
