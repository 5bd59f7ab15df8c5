"""Along the authors' own NADs: what the first-step law says of them, what our VGG-11 learns, and
which of them ship.

The authors' accuracies of VGG-11 fall much earlier than ours. Two reasons are possible: their
directions, or their noise and recipe. Trainings along their directions, by the recipe of the preset
"laptop", distinguish these. The folder that NADS_REFERENCE names has the directions.
"""

import csv
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import nads_core as nc
from nads_book.analysis import published
from nads_book.experiments import (
    Context,
    FileStudy,
    KeyedStudy,
    Row,
    Unit,
    rounded,
    train_along,
)
from nads_book.experiments.stored import load_nads
from nads_book.studies.directions import Fig6
from nads_core.runtime.seeds import seed_sequence

ARCHITECTURES = ("lenet", "vgg11", "resnet18")
# Index and sigma.
UNITS = ((22, 1.0), (4, 1.0), (4, 3.0), (102, 1.0), (22, 3.0), (6, 1.0), (1, 3.0), (102, 3.0))
COMPLETE = 1023  # directions that the authors published of each network
SEED = 3  # that of the preset "laptop"


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


class PublishedLaws(KeyedStudy):
    """Energies of the authors' directions under our second moments, for
    the law (NADS_REFERENCE).
    """

    name = "law-published-energies"
    on_gpu = False
    file = "law-published.json"
    design = {"architecture": ARCHITECTURES}

    rows_at = ("laws",)
    empty = {"rows": []}

    def run(self, unit: Unit, context: Context) -> Row:
        name = unit["architecture"]
        nads, keys = load_nads(name), list(published.nad_accuracies(name))
        values = nads.eigenvalues.double()
        # (m, D)
        shares = (authors_directions(name)[keys].flatten(1) @ nads.basis).double().square()
        total = float(values.square().sum())
        found = {
            "energies": (shares @ values) / total**0.5,
            "squares": (shares @ values.square()) / total,
        }
        row = rounded(found, 6, significant=True)
        return {"key": keys} | row | {"version": nads.provenance["version"]}


SPECTRA = {"lenet": "ln", "vgg11": "vgg", "resnet18": "rn", "densenet121": "dn"}  # their columns


class PublishedSpectra(FileStudy):
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


class PublishedTrainings(FileStudy):
    """Why do the authors' accuracies of VGG-11 fall earlier than ours? Trainings along theirs
    (NADS_REFERENCE).
    """

    name = "law-published"
    precisions = (True,)

    def units(self) -> list[Unit]:
        return [
            {"index": index, "noise_std": noise_std, "seed": SEED} for index, noise_std in UNITS
        ]

    def run(self, unit: Unit, context: Context) -> Row:
        size = Fig6.create("vgg11", "laptop")
        direction = authors_directions("vgg11")[[unit["index"]]]
        found = train_along(
            nc.VGG11,
            direction,
            unit["noise_std"],
            size,
            SEED,
            context,
            paired=size.paired_test,
            data_seeds=(seed_sequence(SEED, part) for part in (5, 6)),
        )
        row: Row = {name: values[0] for name, values in found.items()}
        return row | {"num_test": size.num_test}
