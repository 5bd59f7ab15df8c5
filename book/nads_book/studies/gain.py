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

from nads_book.analysis.prediction import GainCorrection, predicted_accuracy
from nads_book.analysis.statistics import regression, resampled, with_interval
from nads_book.atlas.trained_waves import rising_fit
from nads_book.checkout import checkout_folder
from nads_book.experiments.presets import Size
from nads_book.experiments.stored import load_registered
from nads_book.experiments.study import Estimate, Evidence, Row, Unit
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
    first directions of all cells come first, then the second ones.

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


def frozen_network(
    architecture: Architecture, filters: Mapping[str, Tensor] | None = None
) -> nn.Module:
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
    summary = (
        "test accuracy with the first filters free, frozen and taught, sigma = 1 (not in the paper)"
    )
    unit_fields = ("index", "seed")
    noise_std = 1.0

    @classmethod
    def targets(cls, model: str, size: Size, nads_version: int | None) -> list[Unit]:
        return [{"index": index} for index in range(len(load_design(model)["images"]))][
            : size.num_waves
        ]

    def direction(self, unit: Unit) -> Tensor:
        image = torch.from_numpy(load_design(self.architecture.name)["images"][unit["index"]])[
            None
        ].double()
        return (
            image / image.square().sum().sqrt()
        ).float()  # the same on every processor: the sum is an integer

    def settings(self, photos: str | None = None) -> dict[str, Any]:
        return super().settings() | {
            "directions": fingerprint(load_design(self.architecture.name)["images"])
        }

    def measures(
        self, units: Sequence[Unit], root: str | None, mixed_precision: bool | None
    ) -> Measures:
        return [partial(self.measure, unit, mixed_precision) for unit in units]

    def measure(
        self, unit: Unit, mixed_precision: bool | None, network: nn.Module
    ) -> dict[str, Any]:
        """Train the other arms, from the same initial weights as the free network, and return their records by name."""
        first, row = (
            {name: p.detach().clone() for name, p in first_layer(network).named_parameters()},
            {},
        )
        train, test = self.datasets([unit], unit["seed"], None, None)
        for arm in load_design(self.architecture.name)["arms"].tolist():
            row[arm] = self.row(train_networks(
                partial(frozen_network, self.architecture, first if arm == "taught" else None), train, test,
                recipe=self.recipe, seed=unit["seed"], network_ids=self.network_ids([unit]), progress=False,
                stop_at_full_accuracy=self.stop_perfect, device=first["weight"].device, mixed_precision=mixed_precision,
            ))  # fmt: skip
        return row

    def score(self, rows: Sequence[Row]) -> Evidence:
        """Apply the registered rule (``law.toml``), see `judge`."""
        return judge(rows, load_design(self.architecture.name), load_registered("law"))


def predictions(
    design: Mapping[str, np.ndarray], accuracies: np.ndarray, constants: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return the accuracies that rules predict for all n directions; no rule sees the accuracy of a held-out one.

    The first three were fixed before the experiment. The others are fitted: the constants of the law with the gain and
    of that without it; a step between two shells of energy; and the closest function that does not fall with energy.

    Args:
        design: directions, see `load_design`.
        accuracies: (n,) in [0, 1].
        constants: ``with_gain`` and ``without_gain``, powers of a `GainCorrection`.
    """
    ratios, gains, energies, seen = (
        design["ratios"],
        design["gains"],
        design["energies"],
        ~design["held_out"],
    )
    given, x, y = (
        {"with_gain": gains, "without_gain": np.ones(len(gains))},
        energies[seen],
        accuracies[seen],
    )
    fixed = {
        name: GainCorrection(tuple(constants[name])).accuracies(ratios, g)
        for name, g in given.items()
    }
    fitted = {
        name: GainCorrection.fit(ratios[seen], g[seen], y).accuracies(ratios, g)
        for name, g in given.items()
    }
    steps = [np.where(energies > e, y[x > e].mean(), y[x <= e].mean()) for e in np.sort(x)[:-1]]
    order = np.argsort(x)
    return {
        "law": predicted_accuracy(ratios), **fixed, **{f"fitted_{name}": values for name, values in fitted.items()},
        "step": min(steps, key=lambda values: float(np.abs(values[seen] - y).sum())),
        "isotonic": np.interp(energies, x[order], rising_fit(x, y)[order]),
    }  # fmt: skip


def judge(
    rows: Sequence[Mapping[str, Any]],
    design: Mapping[str, np.ndarray],
    registered: Mapping[str, Any],
) -> Evidence:
    """Return what the experiment measured, and which of the registered criteria it meets.

    Args:
        rows: a row for each direction and seed, see `Results`.
        design: directions, see `load_design`.
        registered: content of ``law.toml``: predictions, constants of the rules, and criteria.

    Returns:
        Estimates by arm: mean absolute error of each rule over all directions and those held out, in points, and the
        ``slope``, by how many points the accuracy minus that of the law grows with one standard deviation of the
        logarithm of the gain, at equal energy and with the same share at the border; ``slope lost``, by how much it is
        smaller than in the free arm. Intervals draw directions again.
        Then the criteria by name.

    Raises:
        ValueError: if a direction has no row.
    """
    index, need = np.array([row["index"] for row in rows]), registered["criteria"]
    if missing := sorted({*range(len(design["gains"]))} - {*index.tolist()}):
        raise ValueError(
            f"{len(missing)} directions have no accuracies, such as {missing[:5]}: run the job first"
        )
    squares = np.square(design["images"].astype(float))
    borders = 1 - squares[:, 4:-4, 4:-4].sum((1, 2)) / squares.sum(
        (1, 2)
    )  # shares of the four outer rows and columns
    predictors = {
        "gains": np.log(design["gains"]),
        "energies": np.log(design["energies"]),
        "borders": borders,
    }
    predictors = {name: values[index] for name, values in predictors.items()}
    found: dict[str, dict[str, Estimate]] = {}
    errors: dict[str, dict[str, np.ndarray]] = {}
    for arm in ("free", *design["arms"].tolist()):
        values = np.array([(row if arm == "free" else row[arm])["test_accuracy"] for row in rows])
        means = np.bincount(index, values) / np.bincount(index)
        rules = predictions(design, means, registered["constants"])
        slope = regression(100 * (values - rules["law"][index]), predictors, index.tolist())[
            "gains"
        ]
        found[arm] = {"slope": (slope.value, slope.low, slope.high)}
        if arm == "free":
            free_values = values
        else:  # added after the registration: the same directions in both arms
            lost = regression(100 * (free_values - values), predictors, index.tolist())["gains"]
            found[arm]["slope lost"] = (lost.value, lost.low, lost.high)
        errors[arm] = {}
        for name, accuracies in rules.items():
            distances = 100 * np.abs(accuracies - means)
            errors[arm] |= {
                f"{name}, all": distances,
                f"{name}, held_out": distances[design["held_out"]],
            }
        found[arm] |= {name: _mean(distances) for name, distances in errors[arm].items()}
    free, frozen = found["free"], found["frozen"]

    def closer(first: str, second: str) -> bool:
        """Whether the first rule is closer to free networks than the second one, on the same directions."""
        return _mean(errors["free"][second] - errors["free"][first])[1] > 0

    met = {
        f"gain matters, {arm}": found[arm]["slope"][1] > need["least_slope"]
        for arm in found
        if arm != "frozen"
    } | {
        "gain matters less than half as much, frozen": frozen["slope"][2] < free["slope"][0] / 2,
        "law is close, frozen": frozen["law, all"][0] < need["frozen_error"],
        "law is closer than a step, frozen": frozen["law, held_out"][0]
        < frozen["step, held_out"][0],
        "gain brings the law closer, free": closer("with_gain, all", "without_gain, all"),
        "new directions, free": free["fitted_with_gain, held_out"][0] < need["new_error"],
        "closer than any function of energy, free": all(
            closer("fitted_with_gain, held_out", f"{rule}, held_out")
            for rule in ("isotonic", "fitted_without_gain")
        ),
    }
    return Evidence(found, met)


def _mean(values: np.ndarray) -> Estimate:
    return with_interval(resampled(np.mean, values))
