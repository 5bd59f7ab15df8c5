"""The atlas that ships: measures with intervals, all eigenvalues, waves, and how similar two
entries are.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from nads_book.atlas.entries import ATLAS, Entry
from nads_book.experiments import load_study, study_path
from nads_book.statistics import Measured


@dataclass(frozen=True, eq=False)
class Atlas:
    """The measures of all entries.

    Args:
        entries: entries by name, in the order of the arrays.
        measures: measures of each, see `MEASURES`.
        eigenvalues: (n, 1024) float32, descending.
        waves: (n, 32, 32) float32, energies of waves relative to their mean, frequencies as numpy
            orders them.
        alignments: (n, n) float32, cosines of the second moments.
        facts: provenance of each.
    """

    entries: dict[str, Entry]
    measures: dict[str, dict[str, Measured]]
    eigenvalues: np.ndarray
    waves: np.ndarray
    alignments: np.ndarray
    facts: dict[str, dict[str, Any]]

    def effect(self, name: str) -> Measured:
        """Return how far what an entry changes moves the second moment: 1 - alignment with its
        base.
        """
        aligned = self.measures[name]["alignment"]
        return Measured(1 - aligned.value, aligned.error, aligned.num_parts)


@lru_cache(maxsize=1)
def load_atlas() -> Atlas:
    """Return the atlas that ships."""
    content = load_study("atlas.json")
    with np.load(study_path("atlas.npz")) as file:
        arrays = {name: file[name] for name in ("eigenvalues", "waves", "alignments")}
    return Atlas(
        {name: ATLAS[name] for name in content},
        {
            name: {key: Measured(*found) for key, found in one["measures"].items()}
            for name, one in content.items()
        },
        arrays["eigenvalues"],
        arrays["waves"],
        arrays["alignments"],
        {name: one["facts"] for name, one in content.items()},
    )
