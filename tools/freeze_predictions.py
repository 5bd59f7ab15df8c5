"""Write what random weights predict for Fig. 1, from the NADs that ship today:
``python tools/freeze_predictions.py``.

A file that is there stays: a prediction counts because it was committed before the result that it
is about.
"""

import json
import sys
from typing import Any

import nads_book as nb
import torch
from nads_book.experiments.stored import study_path

import nads_core as nc
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment


def wave_energies(nads: nc.NADs) -> list[dict[str, Any]]:
    """Return the prediction from random weights for each task of Fig. 1: the energy v^T C v of both
    phases of its wave.

    Args:
        nads: NADs of (1, 32, 32) images.

    Returns:
        For each frequency of `grid_frequencies` its ``frequency`` [ky, kx], and the energies of the
        ``sine`` and of the ``cosine``, relative to the largest of all; a phase that vanishes has
        none.
    """
    size = nads.directions.shape[-1]
    rows = torch.arange(size, dtype=torch.float64)
    energies: list[dict[str, Any]] = []
    for ky, kx in nb.grid_frequencies(size):
        angle = 2 * torch.pi / size * (ky * rows[:, None] + kx * rows[None])
        phases = {"sine": angle.sin(), "cosine": angle.cos()}
        norms = {name: wave.norm() for name, wave in phases.items()}
        energies.append(
            {"frequency": [ky, kx]}
            | {
                name: float(nads.energy(wave[None] / norms[name]))
                for name, wave in phases.items()
                if norms[name] > 1e-6
            }
        )
    largest = max(max(row.get("sine", 0), row.get("cosine", 0)) for row in energies)
    return [
        row
        | {name: float(f"{row[name] / largest:.6g}") for name in ("sine", "cosine") if name in row}
        for row in energies
    ]


def main() -> None:
    """Write the file, unless it is there."""
    path = study_path("predicted-fig1.json")
    if path.exists():
        sys.exit(f"{path} is committed and stays as it is")
    predictions = {}
    for name in nb.explorer.data.LABELS:  # those whose NADs ship
        nads = nc.load_nads(name)
        about = {"version": nads.provenance["version"], "fingerprint": nads.fingerprint}
        predictions[name] = about | {"waves": wave_energies(nads)}
    content = {"what": wave_energies.__doc__.strip(), **environment(torch.device("cpu"))}
    with atomic_write(path) as file:
        head = json.dumps(content, indent=1)[:-2]
        waves = ",\n  ".join(
            f"{json.dumps(name)}: {json.dumps(value)}" for name, value in predictions.items()
        )
        file.write(f'{head},\n "predictions": {{\n  {waves}\n }}\n}}\n')
    print(f"-> {path}")


if __name__ == "__main__":
    main()
