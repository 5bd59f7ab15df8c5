"""Ship NADs as the next version, from the checkpoint of a run.

``python tools/release_nads.py lenet 81920 16 lenet.ckpt``

The run is finished first, if it is not. The provenance records how many directions are certain.
The file is compressed without a change to any number.
"""

import argparse
from pathlib import Path

from compress_nads import compress
from nads_book.experiments.checkout import checkout_folder

import nads_core as nc

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("name", choices=nc.ARCHITECTURES)
parser.add_argument("num_networks", type=int)
parser.add_argument("num_inputs", type=int, help="a network")
parser.add_argument("checkpoint", type=Path)
options = parser.parse_args()

folder = Path(nc.__file__).with_name("precomputed")
architecture, estimator = nc.ARCHITECTURES[options.name], nc.SmoothedGradient(options.num_inputs)
nads = nc.compute_nads(
    architecture,
    (1, 32, 32),
    options.num_networks,
    estimator=estimator,
    checkpoint=options.checkpoint,
)
nads.provenance["certain"] = int((nads.certainty >= 0.9).sum())
(earlier,) = folder.glob(f"{options.name}.v*.npz")
version = int(earlier.stem.rpartition(".v")[2])
path = folder / f"{options.name}.v{version + 1}.npz"
nads.save(path, quantized=True)
compress(path)
print(f"{nads} -> {path}, {path.stat().st_size / 1e6:.1f} MB")
# One version ships; results refer to the earlier one
kept = checkout_folder("book/results") / f"nads-v{version}"
kept.mkdir(exist_ok=True)
earlier.rename(kept / earlier.name)
