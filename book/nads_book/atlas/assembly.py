"""The atlas from its computed entries: how similar two are, and the files
that `load_atlas` reads.
"""

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
from torch import Tensor

from nads_book.atlas.entries import ATLAS
from nads_book.atlas.measures import across, products, wave_energies
from nads_book.atlas.runs import Computed
from nads_book.atlas.stored import Atlas
from nads_book.statistics import Measured, jackknife
from nads_core.runtime.files import atomic_write


def alignment(first: Tensor, second: Tensor) -> Measured:
    """Return the cosine of two second moments from their parts, (m, D, D) and (m', D, D)."""
    own, other = (across(products(parts, parts)) for parts in (first, second))
    between = products(first, second)

    def cosine(rows: np.ndarray, columns: np.ndarray) -> float:
        mean = between[np.ix_(rows, columns)].mean()
        return float(mean / np.sqrt(own(rows) * other(columns)))

    rows, columns = np.arange(len(first)), np.arange(len(second))
    value, error = jackknife(lambda chosen: cosine(chosen, columns), len(first))
    _, other_error = jackknife(lambda chosen: cosine(rows, chosen), len(second))
    return Measured(float(value), float(np.hypot(error, other_error)), len(first))


def assemble(computed: Mapping[str, Computed]) -> Atlas:
    """Measure what needs several entries: alignments."""
    measures = {name: dict(one.measures) for name, one in computed.items()}
    cosines = np.eye(len(computed), dtype="<f4")
    for (i, first), (j, second) in combinations(enumerate(computed), 2):
        aligned = alignment(computed[first].parts, computed[second].parts)
        cosines[i, j] = cosines[j, i] = aligned.value
        for one, other in ((first, second), (second, first)):
            if ATLAS[one].base == other:
                measures[one]["alignment"] = aligned
    means = [one.parts.mean(0, keepdim=True) for one in computed.values()]
    waves = np.concatenate([wave_energies(mean, 32) for mean in means])
    return Atlas(
        {name: ATLAS[name] for name in computed},
        measures,
        np.stack([one.eigenvalues.numpy() for one in computed.values()]),
        (waves / waves.mean((1, 2), keepdims=True)).astype("<f4"),
        cosines,
        {name: one.nads.provenance for name, one in computed.items()},
    )


FACTS = ("num_networks", "seconds", "processor", "torch", "commit", "date", "estimator", "numbers")


def write_atlas(atlas: Atlas, folder: Path) -> None:
    """Write ``atlas.json`` and ``atlas.npz``, which `load_atlas` reads."""
    content = {
        name: {
            "facts": {key: atlas.facts[name][key] for key in FACTS},
            "measures": {
                key: [float(f"{one.value:.6g}"), float(f"{one.error:.4g}"), one.num_parts]
                for key, one in measures.items()
            },
        }
        for name, measures in atlas.measures.items()
    }
    with atomic_write(folder / "atlas.json") as file:
        json.dump(content, file, indent=1)
    with atomic_write(folder / "atlas.npz", "wb") as file:
        np.savez_compressed(
            file, eigenvalues=atlas.eigenvalues, waves=atlas.waves, alignments=atlas.alignments
        )
