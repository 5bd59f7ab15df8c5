"""The figure of the introduction that shows how NADs are made."""

from __future__ import annotations

import math

import numpy as np
import torch
from matplotlib.figure import Figure

from nads_book.explorer.wave_bet import guess_data
from nads_book.figures.learning import frequency_grid
from nads_book.figures.style import DIVERGING, SEQUENTIAL, bare, is_narrow, subplots
from nads_book.theory.reference import average_gradient
from nads_core import RESNET18, load_nads


def how_nads_are_made() -> dict[str, np.ndarray]:
    """Compute what the strip shows of ResNet-18: title -> signed picture, or logarithms of
    energies.

    These are the first filters of one random network, its gradient, the energies of the waves in
    the gradients of thousands of networks, and the first directions.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = RESNET18.build().eval()
        gradient = average_gradient(network, torch.randn(16, 1, 32, 32)).view(32, 32)
    filters = next(weight for weight in network.parameters() if weight.dim() == 4).detach()[:, 0]
    waves = frequency_grid(
        {(ky, kx): energy for ky, kx, energy, _ in guess_data("resnet18")["tasks"]}
    )
    first = load_nads("resnet18").directions[:4, 0]
    return {
        "One network with\nrandom weights": mosaic(filters.numpy()),
        "Its gradient: how much\neach pixel matters": gradient.numpy(),
        "Thousands of gradients:\nthe energy of each wave": np.log10(waves),
        "What they share:\nthe first four NADs": mosaic(first.numpy()),
    }


def mosaic(pictures: np.ndarray) -> np.ndarray:
    """Put n pictures (n, H, W) into a square, each scaled to its largest value, with a line of NaN
    between them.
    """
    side = math.isqrt(len(pictures))
    scaled = pictures / np.abs(pictures).max((1, 2), keepdims=True)
    padded = np.pad(scaled, ((0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    rows = padded.reshape(side, side, *padded.shape[1:])
    return np.concatenate(np.concatenate(rows, axis=1), axis=1)[:-1, :-1]


def plot_strip(pictures: dict[str, np.ndarray]) -> Figure:
    """Draw how NADs are made, one picture after another."""
    figure, (axes,) = subplots(1, len(pictures), 2.25, grid=None)
    for axis, (number, (title, picture)) in zip(axes, enumerate(pictures.items(), 1), strict=True):
        if np.nanmax(picture) <= 0:
            axis.imshow(picture, cmap=SEQUENTIAL)
        else:
            largest = np.nanmax(np.abs(picture))
            axis.imshow(picture, cmap=DIVERGING, vmin=-largest, vmax=largest)
        axis.set_title(f"{number}. {title}", fontsize=8, loc="left")
        bare(axis)
        if number < len(pictures) and not is_narrow():
            place = {"xycoords": "axes fraction", "va": "center", "annotation_clip": False}
            axis.annotate("→", (1.02, 0.5), fontsize=14, **place)
    return figure
