"""Can NADs choose the pooling for a data set before training? The atlas' small CNN with five kinds
of pooling.

The study ``pooling-predictions`` computes from random networks how much of each data set's signal
they see, which is committed; then ``pooling`` trains every network on every data set.
``book/preregistered/pooling.toml`` has what was expected. A wider network with max pooling was
trained after seeing the results (``pooling-control.json``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

import nads_core as nc
from nads_book.analysis.class_differences import class_differences
from nads_book.analysis.statistics import exact_mean, means, rank_correlation
from nads_book.analysis.waves import fourier_directions
from nads_book.atlas.entries import ATLAS
from nads_book.experiments import (
    PHOTO_RECIPE,
    Context,
    FileStudy,
    KeyedStudy,
    Row,
    Rows,
    Scored,
    Unit,
    load_study,
    rounded,
    train_network,
    without_intervals,
)
from nads_book.experiments.stored import load_nads
from nads_book.photos import load_images
from nads_core.data.images import ImageSet
from nads_core.networks.architectures import Architecture
from nads_core.runtime.seeds import seed_sequence

POOLINGS = {
    "max": "cnn",
    "average": "cnn-average",
    "blurred": "cnn-blurred",
    "strided": "cnn-strided",
    "none": "cnn-nopool",
}
MIXTURES: dict[str, tuple[tuple[int, int], ...]] = {  # frequencies of four waves each
    "low": ((0, 2), (2, 0), (1, 2), (2, 1)),
    "middle": ((0, 6), (6, 0), (4, 5), (5, 4)),
    "near an axis": ((0, 13), (13, 0), (1, 14), (14, 1)),
    "high": ((12, 15), (15, 12), (13, 14), (14, 13)),
}
PHOTOS = ("photos", "flipped photos")
DATA = (*MIXTURES, *PHOTOS)
WIDE, CONTROL = "max, wide", "the wide network with max"
ALWAYS = ("max", "strided", "none")  # choices whatever the data
HIT = 2  # points below the best network at which a choice counts as right
WIDTHS = {2: 44, 10: 92}  # of WIDE by the number of classes, for 36,786 and 169,842 parameters
NUM_NETWORKS, NUM_SAMPLES, NOISE_STD, SEEDS = 2_048, 10_000, 2.0, (0, 1)


def mixture(waves: Sequence[tuple[int, int]], num_samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return samples whose class shows along one of several waves, drawn for each: x = +-v_j + w,
    (N, 1, 32, 32).

    The noise w has no component along any of the waves, so the classes are separable along their
    sum.
    """
    directions = fourier_directions(waves).flatten(1)  # (k, D), orthonormal
    generator = torch.Generator().manual_seed(seed)
    noise = NOISE_STD * torch.randn(num_samples, directions.shape[1], generator=generator)
    noise -= noise @ directions.T @ directions
    labels = torch.randint(2, (num_samples,), generator=generator)
    shown = torch.randint(len(waves), (num_samples,), generator=generator)
    return (noise + (2 * labels - 1)[:, None] * directions[shown]).view(-1, 1, 32, 32), labels


def photos(train: bool, flipped: bool) -> ImageSet:
    """Return photos of CIFAR-10, or photos whose components along LeNet's NADs are in the opposite
    order.
    """
    loaded = load_images("cifar10", train=train, num_images=NUM_SAMPLES)
    return replace(loaded, images=nc.flip(loaded.images, load_nads("lenet"))) if flipped else loaded


def dataset(data: str, train: bool, seed: int) -> tuple[Tensor, Tensor]:
    """Return the images and labels of a data set; photos are the same for all seeds."""
    if data in PHOTOS:
        images = photos(train, data != "photos")
        return nc.normalize(images.images), images.labels
    return mixture(MIXTURES[data], NUM_SAMPLES, seed_sequence(seed, 21, int(train)) % 2**31)


def scores(entry: str) -> dict[str, list[float]]:
    """Return the energy of a signal in random networks, relative to a random direction, with its 95
    % interval.

    Of a mixture it is the mean over its waves, of photos the lift of `nads_book.class_differences`.
    """
    nads = nc.compute_nads(
        ATLAS[entry].architecture,
        NUM_NETWORKS,
        debiasing="subtract",
        seed=0,
        device="cpu",
    )
    found = {}
    for data, waves in MIXTURES.items():
        energies = nads.energy(fourier_directions(waves))
        found[data] = [float((energies / nads.eigenvalues.mean()).mean())]
    for data in PHOTOS:
        seen = class_differences(photos(True, data != "photos"), nads)
        found[data] = [seen.lift, *seen.lift_interval]
    return rounded(found, 5, significant=True)


def architecture(pooling: str, num_classes: int) -> Architecture:
    """Return the small CNN with a kind of pooling; `WIDE` has about as many parameters as the one
    without pooling.
    """
    if pooling != WIDE:
        return ATLAS[POOLINGS[pooling]].architecture
    plain = ATLAS[POOLINGS["max"]].architecture
    return replace(plain, options=plain.options | {"width": WIDTHS[num_classes]})


@dataclass(frozen=True, eq=False)
class Choices:
    """Scores of random networks and accuracies of trained ones.

    Args:
        scores: energy of the signal in random networks, (data, poolings).
        accuracies: mean test accuracies over seeds, (data, poolings).
        wide: the same of the wide network with max pooling, (data,); NaN where it was not trained.
    """

    scores: np.ndarray
    accuracies: np.ndarray
    wide: np.ndarray

    @classmethod
    def of(cls, prediction: Mapping[str, Any], rows: Rows, control: Rows = ()) -> "Choices":
        """Return the results of the files of both studies."""
        known = means(
            ((row["pooling"], row["data"]), row["test_accuracy"]) for row in (*rows, *control)
        )
        kinds = (*POOLINGS, WIDE)
        reached = [[known.get((kind, data), math.nan) for kind in kinds] for data in DATA]
        accuracies, wide = np.split(np.array(reached), [-1], axis=1)
        scores = [[prediction[kind][data][0] for kind in POOLINGS] for data in DATA]
        return cls(np.array(scores), accuracies, wide[:, 0])

    @property
    def ranks(self) -> np.ndarray:
        """Rank correlation of score and accuracy over the five networks, (data,)."""
        pairs = zip(self.scores, self.accuracies, strict=True)
        return np.array([rank_correlation(*pair, min_size=5) for pair in pairs])

    @property
    def lost(self) -> dict[str, np.ndarray]:
        """Points below the best of the five networks by way to choose, each (data,)."""
        best = self.accuracies.max(1)
        below = 100 * (best[:, None] - self.accuracies)
        names = list(POOLINGS)
        return {
            "the highest energy": below[np.arange(len(DATA)), self.scores.argmax(1)],
            **{f"always {name}": below[:, names.index(name)] for name in ALWAYS},
            "at random": below.mean(1),
            CONTROL: 100 * (best - self.wide),
        }


class PoolingPredictions(KeyedStudy):
    """How much of each data set's signal random networks see, committed before
    the first training.
    """

    name = "pooling-predictions"
    on_gpu = False
    file = "pooling.json"
    design = {"pooling": POOLINGS}
    rows_at = ("prediction",)
    empty = {"rows": []}
    on_photos = True
    constants = {"num_networks": NUM_NETWORKS}

    def run(self, unit: Unit, context: Context) -> Row:
        return scores(POOLINGS[unit["pooling"]])


class Pooling(FileStudy):
    """Can NADs choose the pooling for a data set before training? See ``pooling.toml``."""

    name = "pooling"
    design = {"seed": SEEDS, "data": DATA, "pooling": tuple(POOLINGS)}
    needs: ClassVar[tuple[str, ...]] = ("pooling-predictions",)
    on_photos = True

    def run(self, unit: Unit, context: Context) -> Row:
        pooling, data, seed = unit["pooling"], unit["data"], unit["seed"]
        train, test = (dataset(data, part, seed) for part in (True, False))
        # Weights, data and batches are the same for all kinds of pooling.
        torch.manual_seed(seed_sequence(seed, 22) % 2**31)
        num_classes = int(train[1].max()) + 1
        network = architecture(pooling, num_classes).build(train[0].shape[1], 32, num_classes)
        recipe = PHOTO_RECIPE if data in PHOTOS else nc.SEPARABLE_RECIPE
        return train_network(network, train, test, recipe, seed, context)

    def score(self, rows: Rows) -> Scored:
        """Apply the registered rule. All draws of data sets count, so that no seed decides."""
        self.require_complete(rows)
        found = Choices.of(load_study(self.file)["prediction"], rows)
        chosen = found.lost["the highest energy"]
        lost = {name: float(values.mean()) for name, values in found.lost.items()}
        ranks = dict(zip(DATA, found.ranks.tolist(), strict=True))
        rank = exact_mean(found.ranks)
        best = [*POOLINGS][found.accuracies[DATA.index("flipped photos")].argmax()]
        met = {
            "energies choose the pooling": bool(
                lost["the highest energy"] < lost["always max"] and not rank[1] <= 0 <= rank[2]
            ),
            "on flipped photos the best is strided or none": best in ("strided", "none"),
        }
        own, mixtures = lost["the highest energy"], np.mean([ranks[name] for name in MIXTURES])
        choice = {
            f"data sets at most {HIT} points below the best": int((chosen <= HIT).sum()),
            "points lost, less half of those of a random choice": own - lost["at random"] / 2,
            "points lost, less those of always max pooling": own - lost["always max"],
        }
        estimates = {
            "rank correlation": {
                "mean of all data sets": rank,
                **without_intervals(ranks | {"mean of the mixtures": float(mixtures)}),
            },
            "choice by the highest energy": without_intervals(choice),
        }
        return Scored(estimates, met)
