"""The atlas that ships: measures with intervals, all eigenvalues, waves, and how alike two entries are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from nads_book.atlas.entries import ATLAS, Entry
from nads_book.atlas.measures import Measured, alignment, products, wave_energies
from nads_book.atlas.runs import Computed
from nads_book.experiments.stored import load_study, study_path
from nads_core.runtime.files import atomic_write


@dataclass(frozen=True, eq=False)
class Atlas:
    """What was measured of all entries.

    Args:
        entries: by name, in the order of the arrays.
        measures: of each, see `MEASURES`.
        eigenvalues: (n, 1024) float32, descending.
        waves: (n, 32, 32) float32, energies of waves relative to their mean, frequencies as numpy orders them.
        alignments: (n, n) float32, cosines of the second moments.
        facts: of each, how it was computed.
    """

    entries: dict[str, Entry]
    measures: dict[str, dict[str, Measured]]
    eigenvalues: np.ndarray
    waves: np.ndarray
    alignments: np.ndarray
    facts: dict[str, dict[str, Any]]

    def effect(self, name: str) -> Measured:
        """Return how far what an entry changes moves the second moment: 1 - alignment with its base."""
        aligned = self.measures[name]["alignment"]
        return Measured(1 - aligned.value, aligned.error, aligned.num_parts)

    def networks_to_know(self, name: str) -> float:
        """Return about how many networks tell the effect of an entry from none: errors fall with the root of these."""
        effect = self.effect(name)
        low, _ = effect.interval
        if effect.value <= 0:
            return float("inf")
        return float(self.facts[name]["num_networks"] * ((effect.value - low) / effect.value) ** 2)


def assemble(computed: Mapping[str, Computed]) -> Atlas:
    """Measure what needs several entries: alignments."""
    names = list(computed)
    own = {name: products(computed[name].parts, computed[name].parts) for name in names}
    measures = {name: dict(computed[name].measures) for name in names}
    cosines = np.eye(len(names))
    for i, first in enumerate(names):
        for j, second in enumerate(names[:i]):
            between = products(computed[first].parts, computed[second].parts)
            aligned = alignment(own[first], own[second], between)
            cosines[i, j] = cosines[j, i] = aligned.value
            for one, other in ((first, second), (second, first)):
                if ATLAS[one].base == other:
                    measures[one]["alignment"] = aligned
    waves = np.stack([wave_energies(computed[name].parts.mean(0, keepdim=True), 32)[0] for name in names])
    return Atlas(
        {name: ATLAS[name] for name in names}, measures,
        np.stack([computed[name].eigenvalues.numpy() for name in names]),
        (waves / waves.mean((1, 2), keepdims=True)).astype("<f4"), cosines.astype("<f4"),
        {name: computed[name].nads.provenance for name in names},
    )  # fmt: skip


_FACTS = ("num_networks", "seconds", "processor", "torch", "commit", "date", "estimator", "numbers")


def write(atlas: Atlas, folder: Path) -> None:
    """Write ``atlas.json`` and ``atlas.npz``, which `load_atlas` reads."""
    content = {
        name: {
            "facts": {key: atlas.facts[name][key] for key in _FACTS},
            "measures": {
                key: [float(f"{found.value:.6g}"), float(f"{found.error:.4g}"), found.num_parts]
                for key, found in atlas.measures[name].items()
            },
        }
        for name in atlas.entries
    }
    with atomic_write(folder / "atlas.json") as file:
        rows = ",\n ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())
        file.write(f"{{\n {rows}\n}}\n")
    with atomic_write(folder / "atlas.npz", "wb") as file:
        np.savez_compressed(file, eigenvalues=atlas.eigenvalues, waves=atlas.waves, alignments=atlas.alignments)


@lru_cache(maxsize=1)
def load_atlas() -> Atlas:
    """Return the atlas that ships."""
    content = load_study("atlas.json")
    with np.load(study_path("atlas.npz")) as file:
        arrays = {name: file[name] for name in ("eigenvalues", "waves", "alignments")}
    return Atlas(
        {name: ATLAS[name] for name in content},
        {name: {key: Measured(*found) for key, found in one["measures"].items()} for name, one in content.items()},
        arrays["eigenvalues"], arrays["waves"], arrays["alignments"],
        {name: one["facts"] for name, one in content.items()},
    )  # fmt: skip
