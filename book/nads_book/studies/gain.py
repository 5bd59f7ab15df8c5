"""What random weights see, and what one filter can be taught: D(v) with free, frozen and taught first filters.

On each direction of a design a network is trained as it is, again with its first filters frozen at their random values,
and again with them frozen at the values that the free network has learned.
``book/preregistered`` has the designs, what was expected of these networks, and the score.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nads_book.checkout import checkout_folder
from nads_book.experiments.presets import Size
from nads_book.experiments.study import Unit
from nads_book.studies.directions import DirectionStudy
from nads_book.studies.trainings import Measures
from nads_core.networks.architectures import Architecture
from nads_core.runtime.provenance import fingerprint
from nads_core.training import train_networks


@lru_cache
def load_design(model: str) -> dict[str, np.ndarray]:
    """Return n directions v on a grid of shells of equal energy and levels of equal gain, for one architecture.

    With C the second moment of random networks and <C> its mean eigenvalue, the *energy* is v^T C v / <C>. All
    directions of a shell also have one ratio z of the first-step law, which so predicts one accuracy Phi(z) for them.
    The *gain* is that of `prediction.filter_gain`: over all filters f of the first layer's side, placed wherever they
    lie inside the image,

        gain = max_f ||f * v||^2 / ||f||^2.

    Both are equally spaced on a logarithmic scale, and every cell has as many directions: so they are uncorrelated. The
    first directions of all cells come first, then the second ones. ``benchmarks/law_design.py`` made the files.

    Args:
        model: "lenet", "cnn" or "resnet18".

    Returns:
        ``images`` (n, H, W) int8, the directions up to their norm; ``shells`` and ``levels`` (n,), from the smallest
        energy and gain; ``energies``, ``gains``, and ``ratios`` z at 10,000 samples and sigma = 1, (n,); ``held_out``
        (n,), the last direction of each cell, which no fit may see; and the names of the ``arms`` after the free one.

    Raises:
        ValueError: for another model.
    """
    path = checkout_folder("book/preregistered") / f"law-{model}.npz"
    if not path.exists():
        raise ValueError(f"there are no directions for {model}: {path} is missing")
    with np.load(path) as arrays:
        return dict(arrays)


def first_layer(network: nn.Module) -> nn.Conv2d:
    """Return the first convolution of a network."""
    return next(layer for layer in network.modules() if isinstance(layer, nn.Conv2d))


def frozen_network(architecture: Architecture, filters: Mapping[str, Tensor] | None = None) -> nn.Module:
    """Return a network whose first convolution has buffers in place of parameters, which no training method changes.

    Args:
        architecture: architecture of the network, for (1, 32, 32) images and two classes.
        filters: parameters of the first convolution by name; by default those that a free network begins with.
    """
    network = architecture.build(1, 32, 2)
    layer = first_layer(network)
    for name, values in [*layer.named_parameters()]:
        delattr(layer, name)
        layer.register_buffer(name, (values.detach() if filters is None else filters[name]).clone())
    return network


class GainStudy(DirectionStudy):
    """Networks on D(v) for the directions of a design; the fields of a row are those of the free arm."""

    figure = "law"
    summary = "test accuracy with the first filters free, frozen and taught, sigma = 1 (not in the paper)"
    unit_fields = ("index", "seed")
    noise_std = 1.0

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        return [{"index": index} for index in range(len(load_design(model)["images"]))][: size.num_waves]

    def direction(self, unit: Unit) -> Tensor:
        image = torch.from_numpy(load_design(self.architecture.name)["images"][unit["index"]])[None].double()
        return (image / image.square().sum().sqrt()).float()  # the same on every processor: the sum is an integer

    def settings(self, photos: str | None = None) -> dict[str, Any]:
        return super().settings() | {"directions": fingerprint(load_design(self.architecture.name)["images"])}

    def measures(self, units: Sequence[Unit], root: str | None, mixed_precision: bool | None) -> Measures:
        return [partial(self.measure, unit, mixed_precision) for unit in units]

    def measure(self, unit: Unit, mixed_precision: bool | None, network: nn.Module) -> dict[str, Any]:
        """Train the other arms, from the same initial weights as the free network, and return their records by name."""
        first, row = {name: p.detach().clone() for name, p in first_layer(network).named_parameters()}, {}
        train, test = self.datasets([unit], unit["seed"], None, None)
        for arm in load_design(self.architecture.name)["arms"].tolist():
            row[arm] = self.row(train_networks(
                partial(frozen_network, self.architecture, first if arm == "taught" else None), train, test,
                recipe=self.recipe, seed=unit["seed"], network_ids=self.network_ids([unit]), progress=False,
                stop_at_full_accuracy=self.stop_perfect, device=first["weight"].device, mixed_precision=mixed_precision,
            ))  # fmt: skip
        return row
