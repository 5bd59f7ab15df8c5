"""Compute the reference maps of `nads_book.network_report`: energies of waves in random networks.

Shipped NADs hold shrunk eigenvalues, which are too large where networks hardly respond. These maps
are means of products of independent halves of each network's inputs, without bias. Those of the
atlas are copied from its results, which an installed package does not have.
"""

import argparse
from pathlib import Path

import numpy as np
from nads_book.atlas import load_atlas
from nads_book.network_report.sample import Sample

import nads_core as nc

SIZES = {  # numbers of networks, and of inputs for each: fine waves need more where they are faint
    "lenet": (512, 16),
    "resnet18": (512, 4),
}
OUT = Path(__file__).parents[1] / "book/nads_book/network_report/references.npz"


def main() -> None:
    """Compute all maps and store them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("references"), help="for checkpoints")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    maps = {}
    for name, (num_networks, num_inputs) in SIZES.items():
        checkpoint, readouts = folder / f"{name}.ckpt", 8 if name == "lenet" else 1
        estimator = nc.SmoothedGradient(num_inputs, readouts=readouts)
        options = {"estimator": estimator, "checkpoint": checkpoint}
        moment = nc.second_moment(name, (1, 32, 32), num_networks, **options)
        energies = Sample.of_moment(moment).spectra().mean(0)
        maps[name] = (energies / energies.mean()).astype(np.float32)
    atlas = load_atlas()
    for name, energies in zip(atlas.entries, atlas.waves, strict=True):
        maps[f"atlas/{name}"] = energies.astype(np.float32)
    np.savez_compressed(OUT, **maps)
    print(f"-> {OUT}")


if __name__ == "__main__":
    main()
