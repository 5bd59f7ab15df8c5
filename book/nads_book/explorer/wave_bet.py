"""The bet of the introduction: its reader chooses the waves that a network will learn, and sees the
score.

The first choice is blind. Then the reader sees the energies of random weights, and at last the
accuracies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nads_book.explorer.bundle import element
from nads_book.explorer.data import LABELS
from nads_book.published.waves import LEARNED, predicted_energies, published_accuracies
from nads_core.data.separable import SeparableDatasets

MAPS = Path(__file__).resolve().parents[2] / "_static" / "maps.png"
NETWORKS = ("resnet18", "lenet", "vgg11", "densenet121")  # the first is asked about first
ASKED = 5  # waves that the reader chooses
# What readers without JavaScript see.
STILL = """<noscript><p>\
<img src="../_static/maps.png" width="{width}" height="{height}" alt="{alt}"></p>
<p>{caption}</p></noscript>"""
ALT = (
    "Two rows of four maps, for ResNet-18, LeNet, VGG-11 and DenseNet-121. Waves that are bright "
    "before training are mostly those with a high accuracy after it, and each network has a "
    "pattern of its own."
)
CAPTION = (
    "Each square is one wave, coarse in the middle and fine at the edge. A network learned to find "
    "this wave in noise, or stayed at chance. Below: its accuracy after training. Above: the "
    "energy of the wave in untrained networks: how strongly their output changes along it. The "
    "tasks differ only in the wave, yet ResNet-18 learns waves of eight cycles and fails on "
    "coarser diagonals, and each network has a pattern of its own. Random weights show the pattern "
    "before any training. With JavaScript, this figure is a bet on five waves."
)


def guess_data(name: str) -> dict[str, Any]:
    """Return what a guess is about: energies before training, accuracies after it.

    Args:
        name: name of an architecture of the paper.

    Returns:
        Its name and label, and ``tasks``: [ky, kx, energy, accuracy] of each wave of the published
        grid, k and -k being one. Energies are those of `predicted_energies`, relative to the
        largest. Accuracies are the authors' means of both cells of a wave.
    """
    energies, accuracies = predicted_energies(name), published_accuracies(name)
    largest = max(energies.values())
    tasks = [
        [*k, float(f"{energy / largest:.3g}"), round(accuracies[k], 4)]
        for k, energy in energies.items()
    ]
    return {"name": name, "label": LABELS[name], "tasks": tasks}


class Guess:
    """The guess as HTML, for a page of the book."""

    def _repr_html_(self) -> str:
        config = {
            "networks": [guess_data(name) for name in NETWORKS],
            "asked": ASKED,
            "learned": LEARNED,
            "margin": SeparableDatasets.margin,
            "noise": SeparableDatasets.noise_std,
            "shared": True,
        }
        sentence = f"{still()}This figure is a bet on {ASKED} waves."
        return element("nad-guess", config, sentence, book=True)


def still() -> str:
    """Return what readers without JavaScript see: the maps of all networks, and what they mean."""
    from PIL import Image  # only for a page of the book

    with Image.open(MAPS) as picture:
        width, height = picture.size
    return STILL.format(width=width, height=height, alt=ALT, caption=CAPTION)
