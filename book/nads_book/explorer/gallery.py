"""Interactive figures that compare many architectures, or many numbers of networks."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nads_book.atlas import load_atlas, load_entry_nads
from nads_book.atlas.measures import MEASURES
from nads_book.explorer.bundle import element
from nads_book.explorer.data import LEVELS, Packet, as_script
from nads_book.figures.publishing import publishing
from nads_core.directions import NADs

NAME = "atlas"  # of the packet, and of its file
SHOWN = 6  # NADs of each
_DECADES = 3.0  # of the waves' energies, around their mean
# Of the spectrum: two points per octave.
_POINTS = sorted({2**k - 1 for k in range(11)} | {3 * 2**k - 1 for k in range(9)})
SORTED_BY = {  # what the reader can sort by: title, and how it is explained
    **{key: MEASURES[key] for key in ("effective", "high", "border", "comb")},
    "effect": "how far the change moves the directions",
}


def pack_atlas() -> Packet:
    """Pack what the gallery shows: measures, and bytes of NADs (n, 6, 32, 32) int8 and waves (n,
    32, 32) uint8.
    """
    atlas = load_atlas()
    entries, pictures, waves = [], [], []
    for number, (name, entry) in enumerate(atlas.entries.items()):
        values = {key: one for key, one in atlas.measures[name].items() if key in SORTED_BY}
        if entry.base:
            values["effect"] = atlas.effect(name)
        eigenvalues = np.maximum(atlas.eigenvalues[number], 1e-12)
        entries.append(
            {
                "name": name,
                "family": entry.family,
                "change": entry.change,
                "factor": entry.factor,
                "base": entry.base,
                "networks": atlas.facts[name]["num_networks"],
                "measures": {key: [float(f"{x:.3g}") for x in one] for key, one in values.items()},
                "spectrum": [float(f"{eigenvalues[i] / eigenvalues[0]:.3g}") for i in _POINTS],
                "alike": [round(float(x), 3) for x in atlas.alignments[number]],
            }
        )
        pictures.append(levels(load_entry_nads(name).directions[:SHOWN, 0].numpy()))
        decades = np.log10(np.maximum(np.fft.fftshift(atlas.waves[number]), 1e-9))
        waves.append(np.rint(255 * np.clip(decades / _DECADES + 0.5, 0, 1)).astype(np.uint8))
    header = {"entries": entries, "shown": SHOWN, "points": _POINTS, "sorted": SORTED_BY}
    return header, np.stack(pictures).tobytes() + np.stack(waves).tobytes()


def levels(pictures: np.ndarray) -> np.ndarray:
    """Return signed pictures (..., H, W) as int8, each relative to its largest pixel."""
    largest = np.abs(pictures).max((-2, -1), keepdims=True)
    return np.rint(LEVELS * pictures / largest).astype(np.int8)


@dataclass
class AtlasGallery:
    """The atlas as HTML, for a page of the book or the output of a notebook.

    Args:
        book: whether program and arrays are loaded from files that the pages of the book share.
    """

    book: bool = field(default_factory=publishing)

    def _repr_html_(self) -> str:
        config = {"chosen": "cnn-average", "sort": "effective", "shared": self.book}
        scripts = () if self.book else [as_script(NAME, pack_atlas())]
        return element("nad-atlas", config, "This figure is interactive.", self.book, scripts)


@dataclass
class Stack:
    """First directions of more and more networks as HTML, whose reader adds the networks.

    Args:
        rows: number of networks, or a label -> their NADs, of images (1, 32, 32).
        target: NADs that the first ten of each are compared with.
        book: whether the program is loaded from a file that the pages of the book share.
    """

    rows: Mapping[int | str, NADs]
    target: NADs
    book: bool = field(default_factory=publishing)

    def _repr_html_(self) -> str:
        first = np.stack([nads.directions[:4, 0].numpy() for nads in self.rows.values()])
        first *= np.sign((first * self.target.directions[:4, 0].numpy()).sum((2, 3), keepdims=True))
        config = {
            "labels": [
                row if isinstance(row, str) else f"{row:,} network{'s' * (row > 1)}"
                for row in self.rows
            ],
            "shared": [round(nads.overlap(self.target, k=10), 2) for nads in self.rows.values()],
            "pictures": base64.b64encode(levels(first).tobytes()).decode(),
        }
        return element("nad-stack", config, "Here networks can be added.", self.book)
