"""The authors' own NADs and ours: how fast the eigenvalues fall, and how far the directions agree.

The authors' accuracies of VGG-11 fall much earlier than ours. Five trainings along their
directions (``law-published.json``) left the reason open. The folder that NADS_REFERENCE names has
the directions.
"""

import csv
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nads_book import published
from nads_book.experiments import (
    Context,
    Row,
    Study,
    Unit,
    rounded,
)
from nads_book.experiments.stored import load_nads

ARCHITECTURES = ("lenet", "vgg11", "resnet18")
COMPLETE = 1023  # directions that the authors published of each network


def authors_directions(name: str) -> Tensor:
    """Return all directions that the authors published of a network.

    Raises:
        FileNotFoundError: if NADS_REFERENCE names no folder with them.
    """
    found = published.directions(name, COMPLETE)
    if found is None:
        raise FileNotFoundError(
            "the complete sets of the authors' directions are needed: NADS_REFERENCE names them"
        )
    return found


SPECTRA = {"lenet": "ln", "vgg11": "vgg", "resnet18": "rn", "densenet121": "dn"}  # their columns


class PublishedSpectra(Study):
    """How fast do the authors' eigenvalues fall, and ours, and how far do they agree
    (NADS_REFERENCE)?

    Their table has singular values of gradients. Its directions are another run than those that
    they published of LeNet, and DenseNet-121's are kept back from us: so it has no overlap here.
    """

    name = "published-spectra"
    on_gpu = False
    design = {"architecture": SPECTRA}

    def run(self, unit: Unit, context: Context) -> Row:
        name = unit["architecture"]
        path = Path(os.environ.get("NADS_REFERENCE") or os.devnull, "nad_accuracies.csv")
        if not path.exists():
            raise FileNotFoundError(
                "the authors' table of Fig. 6 is needed: NADS_REFERENCE names it"
            )
        with path.open(newline="") as file:
            theirs = np.array(
                [float(row[f"eig_{SPECTRA[name]}"]) ** 2 for row in csv.DictReader(file)]
            )
        nads = load_nads(name)
        ours = nads.eigenvalues.double().clamp(min=0).numpy()
        keys = list(published.nad_accuracies(name))
        spectra = {"published": theirs, "ours": ours}
        row: Row = {"key": keys}
        for label, values in spectra.items():
            row[label] = rounded((values / values.sum())[keys], 5, significant=True)
        if name in ARCHITECTURES:
            found = authors_directions(name)
            # Theirs are orthonormal up to the 16 bits in which they are stored.
            basis = torch.linalg.qr(found[:64].flatten(1).T.double())[0].T.view(-1, 1, 32, 32)
            row["overlaps"] = {str(k): round(nads.overlap(basis, k), 4) for k in (5, 10, 20, 50)}
        return row
