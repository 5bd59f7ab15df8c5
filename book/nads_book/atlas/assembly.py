"""The atlas from its computed entries: how similar two are, and the files
that `load_atlas` reads.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nads_book.atlas.entries import ATLAS
from nads_book.atlas.measures import Measured, across, jackknife, products, wave_energies
from nads_book.atlas.runs import Computed
from nads_book.atlas.stored import Atlas
from nads_core.runtime.files import atomic_write


def alignment(own: np.ndarray, other: np.ndarray, between: np.ndarray) -> Measured:
    """Return the cosine of two second moments.

    Args:
        own: products of the parts of one, (m, m).
        other: products of the parts of the other, (m', m').
        between: products of the parts of both, (m, m').
    """

    def cosine(rows: np.ndarray, columns: np.ndarray) -> float:
        squares = across(own[np.ix_(rows, rows)]) * across(other[np.ix_(columns, columns)])
        return float(between[np.ix_(rows, columns)].mean() / np.sqrt(squares))

    rows, columns = np.arange(len(own)), np.arange(len(other))
    first = jackknife(lambda chosen: cosine(chosen, columns), len(own))
    second = jackknife(lambda chosen: cosine(rows, chosen), len(other))
    return Measured(first.value, float(np.hypot(first.error, second.error)), len(own))


def assemble(computed: Mapping[str, Computed]) -> Atlas:
    """Measure what needs several entries: alignments."""
    names = list(computed)
    products_within = {name: products(computed[name].parts, computed[name].parts) for name in names}
    measures = {name: dict(computed[name].measures) for name in names}
    cosines = np.eye(len(names))
    for i, first in enumerate(names):
        for j, second in enumerate(names[:i]):
            between = products(computed[first].parts, computed[second].parts)
            aligned = alignment(products_within[first], products_within[second], between)
            cosines[i, j] = cosines[j, i] = aligned.value
            for one, other in ((first, second), (second, first)):
                if ATLAS[one].base == other:
                    measures[one]["alignment"] = aligned
    waves = np.stack(
        [wave_energies(computed[name].parts.mean(0, keepdim=True), 32)[0] for name in names]
    )
    return Atlas(
        {name: ATLAS[name] for name in names},
        measures,
        np.stack([computed[name].eigenvalues.numpy() for name in names]),
        (waves / waves.mean((1, 2), keepdims=True)).astype("<f4"),
        cosines.astype("<f4"),
        {name: computed[name].nads.provenance for name in names},
    )


FACTS = ("num_networks", "seconds", "processor", "torch", "commit", "date", "estimator", "numbers")


def described(facts: Mapping[str, Any], measures: Mapping[str, Measured]) -> dict[str, Any]:
    """Return facts and measures of an entry as they are stored."""
    rounded = {
        key: [float(f"{measured.value:.6g}"), float(f"{measured.error:.4g}"), measured.num_parts]
        for key, measured in measures.items()
    }
    return {"facts": {key: facts[key] for key in FACTS}, "measures": rounded}


def write_atlas(atlas: Atlas, folder: Path) -> None:
    """Write ``atlas.json`` and ``atlas.npz``, which `load_atlas` reads."""
    content = {name: described(atlas.facts[name], atlas.measures[name]) for name in atlas.entries}
    with atomic_write(folder / "atlas.json") as file:
        rows = ",\n ".join(
            f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items()
        )
        file.write(f"{{\n {rows}\n}}\n")
    with atomic_write(folder / "atlas.npz", "wb") as file:
        np.savez_compressed(
            file, eigenvalues=atlas.eigenvalues, waves=atlas.waves, alignments=atlas.alignments
        )
