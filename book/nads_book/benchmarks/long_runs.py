"""Directions of long runs, with which shorter ones are compared."""

from torch import Tensor

import nads_core as nc
from nads_book.atlas.entries import ATLAS
from nads_book.benchmarks.stored import results_folder

SHAPE = (1, 32, 32)
COMPARED = {"mixer": 16, "vit": 16}  # directions; 10 for the others
# Name: numbers of networks at which both are timed, and networks of the long run if none ships.
CASES = {
    "lenet": ((1_000, 4_000), 0),
    "cnn": ((1_000,), 32_768),
    "mixer": ((256,), 2_048),
    "resnet18": ((40,), 0),
    "vit": ((64, 256), 512),
    "mlp": ((256, 1_000), 0),
}


def architecture(name: str) -> nc.Architecture:
    """Return the architecture of a case."""
    return nc.ARCHITECTURES[name] if name in nc.ARCHITECTURES else ATLAS[name].architecture


def reference(name: str, num_networks: int) -> Tensor | None:
    """Return the first directions of a long run with another seed; None where there is no certain
    one.
    """
    if name in nc.ARCHITECTURES:
        return nc.load_nads(name).directions[:10].flatten(1)
    if not num_networks:
        return None
    path = results_folder() / f"own_loop-{name}.npz"  # stored, because it takes minutes
    if path.is_file():
        return nc.NADs.load(path).directions.flatten(1)
    nads = nc.compute_nads(
        architecture(name),
        num_networks,
        estimator=nc.SmoothedGradient(16, readouts=4),
        image_shape=SHAPE,
        seed=1_000,
        num_directions=COMPARED.get(name, 10),
    )
    nads.save(path)
    return nads.directions.flatten(1)
