"""The guess of the introduction: its reader chooses the waves that a network will learn, and sees the score.

What the reader sees first are the energies of the network's random weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nads_book.experiments import published
from nads_book.experiments.frequency_maps import LEARNED, of_tasks
from nads_book.experiments.waves import predicted_energies
from nads_book.explorer.bundle import element
from nads_book.explorer.data import LABELS

NETWORKS = ("lenet", "vgg11", "resnet18", "densenet121")


def guess_data(name: str) -> dict[str, Any]:
    """Return what a guess is about: energies before training, accuracies after it.

    Args:
        name: name of an architecture of the paper.

    Returns:
        Its label, and ``tasks``: [ky, kx, energy, accuracy] of each wave of the published grid, k and -k being one.
        Energies are those of `predicted_energies`, relative to the largest; accuracies are the authors', means of both
        cells of a wave.
    """
    energies, accuracies = predicted_energies(name), of_tasks(published.fourier_accuracies(name))
    largest = max(energies.values())
    tasks = [[*k, float(f"{energy / largest:.3g}"), round(accuracies[k], 4)] for k, energy in energies.items()]
    return {"label": LABELS[name], "tasks": tasks}


@dataclass
class Guess:
    """The guess as HTML, for a page of the book or the output of a notebook.

    Args:
        names: names of architectures; the first is asked about first.
        asked: number of waves that the reader chooses.
        book: whether a page of the book has it, which loads the program from a file that its pages share.
    """

    names: Sequence[str] = NETWORKS
    asked: int = 5
    book: bool = False

    def _repr_html_(self) -> str:
        config = {"networks": [guess_data(name) for name in self.names], "asked": self.asked, "learned": LEARNED}
        return element("nad-guess", config, "This figure is a question to you.", self.book)
