"""What random weights see, and what one filter can be taught: D(v) with free, frozen and taught
first filters.

On each direction of a design a network is trained as it is, again with its first filters frozen at
their random values, and again with them frozen at the values that the free network has learned.
``book/preregistered`` has the designs, what was expected of these networks, and the score.
"""

from collections.abc import Mapping
from functools import lru_cache, partial

import numpy as np
import torch
from torch import Tensor, nn

from nads_book.experiments import (
    Context,
    Estimates,
    Facts,
    Rows,
    Scored,
    Unit,
    factorial,
)
from nads_book.experiments.checkout import checkout_folder
from nads_book.experiments.evidence import Estimate
from nads_book.statistics import isotonic_fit, regression, resampled, with_interval
from nads_book.studies.directions import DirectionStudy
from nads_book.studies.presets import Size
from nads_book.theory.first_step import GainCorrection, predicted_accuracy
from nads_core.networks.architectures import Architecture
from nads_core.runtime.provenance import fingerprint


@lru_cache
def load_design(model: str) -> dict[str, np.ndarray]:
    """Return n directions v on a grid of shells of equal energy and levels of equal gain, for one
    architecture.

    With C the second moment of random networks and <C> its mean eigenvalue, the *energy* is v^T C v
    / <C>. All directions of a shell also have one ratio z of the first-step law, which so predicts
    one accuracy Phi(z) for them. The *gain* is that of `first_step.filter_gain`: over all filters f
    of the first layer's side, placed wherever they lie inside the image,

        gain = max_f ||f * v||^2 / ||f||^2.

    Both are equally spaced on a logarithmic scale, and every cell has as many directions: so they
    are uncorrelated. The first directions of all cells come first, then the second ones.

    Args:
        model: "lenet", "cnn" or "resnet18".

    Returns:
        ``images`` (n, H, W) int8, the directions up to their norm; ``shells`` and ``levels`` (n,),
        from the smallest energy and gain; ``energies``, ``gains``, and ``ratios`` z at 10,000
        samples and sigma = 1, (n,); ``held_out`` (n,), the last direction of each cell, which no
        fit may see; and the names of the ``arms`` after the free one.

    Raises:
        ValueError: for another model.
    """
    path = checkout_folder("book/preregistered") / f"law-{model}.npz"
    if not path.exists():
        raise ValueError(f"there are no directions for {model}: {path} is missing")
    with np.load(path) as arrays:
        return dict(arrays)


def designed_direction(model: str, index: int) -> Tensor:
    """Return a direction of a design, (1, H, W), the same on every processor: its norm is that of
    integers.
    """
    image = torch.from_numpy(load_design(model)["images"][index])[None].double()
    return (image / image.square().sum().sqrt()).float()


def first_layers(network: nn.Module, count: int = 1) -> list[nn.Conv2d]:
    """Return the first convolutions of a network."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)][:count]


def frozen_network(
    architecture: Architecture, filters: Mapping[str, Tensor] | None = None, count: int = 1
) -> nn.Module:
    """Return a network whose first convolutions have buffers in place of parameters, which no
    training method changes.

    Args:
        architecture: architecture of the network, for (1, 32, 32) images and two classes.
        filters: parameters of each of them by name; by default those that a free network begins
            with.
        count: number of convolutions.
    """
    network = architecture.build(1, 32, 2)
    for layer in first_layers(network, count):
        for name, values in [*layer.named_parameters()]:
            delattr(layer, name)
            kept = values.detach() if filters is None else filters[name]
            layer.register_buffer(name, kept.clone())
    return network


class GainStudy(DirectionStudy):
    """Networks on D(v) for the directions of a design; the fields of a row are those of the free
    arm.
    """

    figure = "law"
    noise_std = 1.0

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        return factorial(index=range(len(load_design(model)["images"])))[: size.num_waves]

    def direction(self, unit: Unit) -> Tensor:
        return designed_direction(self.architecture.name, unit["index"])

    def settings(self, photos: str | None = None) -> Facts:
        images = load_design(self.architecture.name)["images"]
        return super().settings() | {"directions": fingerprint(images)}

    def measure(self, unit: Unit, context: Context, network: nn.Module) -> Facts:
        """Train the other arms, from the same initial weights as the free network, and return their
        records by name.
        """
        (layer,) = first_layers(network)
        first = {name: p.detach().clone() for name, p in layer.named_parameters()}
        row = {}
        for arm in load_design(self.architecture.name)["arms"].tolist():
            filters = first if arm == "taught" else None
            factory = partial(frozen_network, self.architecture, filters)
            _, result = self.train(factory, unit, context)
            row[arm] = self.row(result)
        return row

    def judge(self, rows: Rows) -> Scored:
        """Apply the registered rule (``law.toml``), see `judge`."""
        return judge(rows, load_design(self.architecture.name))


class FirstStage(GainStudy):
    """Does the gain act in ResNet-18 if all convolutions before the first stride are frozen?"""

    figure = "stage"

    def build(self) -> nn.Module:
        return frozen_network(self.architecture, count=5)

    def measure(self, unit: Unit, context: Context, network: nn.Module) -> Facts:
        return {}

    def judge(self, rows: Rows) -> Scored:
        """Return the slope by the gain, see `slope`, and the registered criterion."""
        found = slope(rows, load_design(self.architecture.name), "free")
        limit = self.registered["free_slope"] / 2
        met = None if found[1] < limit <= found[2] else found[0] < limit
        return Scored({"stage": {"slope": found}}, {"gain matters less than half as much": met})


def predictions(design: Mapping[str, np.ndarray], accuracies: np.ndarray) -> dict[str, np.ndarray]:
    """Return the accuracies that fitted rules predict for all n directions; no rule sees the
    accuracy of a held-out one.

    The rules are the law with the gain and that without it, and the closest function that does not
    fall with energy.

    Args:
        design: directions, see `load_design`.
        accuracies: (n,) in [0, 1].
    """
    ratios, gains, energies = (design[name] for name in ("ratios", "gains", "energies"))
    seen = ~design["held_out"]
    given = {"with gain": gains, "without gain": np.ones(len(gains))}
    x, y = energies[seen], accuracies[seen]
    order = np.argsort(x)
    return {
        name: GainCorrection.fit(ratios[seen], g[seen], y).accuracies(ratios, g)
        for name, g in given.items()
    } | {"isotonic": np.interp(energies, x[order], isotonic_fit(y[order[::-1]])[::-1])}


def causes(design: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what accuracies may depend on beside the law, (n,) each: logarithms of gain and
    energy, and the share of a direction in the four outer rows and columns.
    """
    squares = np.square(design["images"].astype(float))
    return {
        "gains": np.log(design["gains"]),
        "energies": np.log(design["energies"]),
        "borders": 1 - squares[:, 4:-4, 4:-4].sum((1, 2)) / squares.sum((1, 2)),
    }


def judge(rows: Rows, design: Mapping[str, np.ndarray]) -> Scored:
    """Return what the experiment measured, and two of the registered criteria.

    Args:
        rows: rows of every direction.
        design: directions, see `load_design`.

    Returns:
        Estimates by arm: the `slope`; and of the free arm the mean absolute error of each fitted
        rule on the directions held out, in points. Intervals draw directions again.
    """
    index = np.array([row["index"] for row in rows])
    arms = ("free", *design["arms"].tolist())
    found: Estimates = {arm: {"slope": slope(rows, design, arm)} for arm in arms}
    free = accuracies_of(rows, "free")
    means = np.bincount(index, free) / np.bincount(index)
    errors = {
        name: 100 * np.abs(accuracies - means)[design["held_out"]]
        for name, accuracies in predictions(design, means).items()
    }
    found["free"] |= {name: with_interval(resampled(np.mean, one)) for name, one in errors.items()}
    new = errors["with gain"]
    met = {
        "gain matters less than half as much, frozen": (
            found["frozen"]["slope"][2] < found["free"]["slope"][0] / 2
        ),
        "closer than any function of energy, free": all(
            with_interval(resampled(np.mean, errors[rule] - new))[1] > 0
            for rule in ("isotonic", "without gain")
        ),
    }
    return Scored(found, met)


def slope(rows: Rows, design: Mapping[str, np.ndarray], arm: str) -> Estimate:
    """Return by how many points the accuracy of an arm minus that of the law grows with one
    standard deviation of the logarithm of the gain, at equal energy and with the same share at the
    border.
    """
    index = np.array([row["index"] for row in rows])
    predictors = {name: values[index] for name, values in causes(design).items()}
    excess = accuracies_of(rows, arm) - predicted_accuracy(design["ratios"])[index]
    return regression(100 * excess, predictors, index.tolist())["gains"]


def accuracies_of(rows: Rows, arm: str) -> np.ndarray:
    """Return the test accuracy of an arm in each row, (n,)."""
    return np.array([(row if arm == "free" else row[arm])["test_accuracy"] for row in rows])
