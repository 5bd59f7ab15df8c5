"""Repeat the poison and the flip of chapters 7 and 8 on Fashion-MNIST and on Imagenette at 64 x 64.

``book/preregistered/replications.toml`` contains the predictions; `replication_criteria` applies
the criteria.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn

import nads_core as nc
from nads_book.experiments import (
    PHOTO_RECIPE,
    Context,
    Facts,
    FileStudy,
    Row,
    Rows,
    Scored,
    Unit,
    matching,
    train_network,
)
from nads_book.studies.injection import followed_row
from nads_book.studies.pairs import (
    NUM_NETWORKS,
    SHAPES,
    build,
    exact_photos,
    flipping_nads,
    second_moments,
)
from nads_book.studies.replication_criteria import MAPS, design_of, judge
from nads_book.studies.shortcut_injection import ShortcutInjection
from nads_book.studies.transforms import (
    covariance,
    describe,
    orthogonal_map,
    principal_components,
    transform,
)
from nads_core.directions import NADs
from nads_core.training import Dataset

MAP_SEED = 0  # of random orders and signs

Injection = tuple[
    str, str, float | None
]  # background, mode and size, by the names of chapter 7's results
Measure = Callable[[nn.Module], Row]  # of a trained network
HOLES: tuple[Injection, ...] = (
    ("kept", "replaced", 0.05),
    ("kept", "hole", None),
    ("kept", "hole at mean", None),
    ("kept", "added", 0.05),
    ("emptied", "none", None),
)


@dataclass(frozen=True)
class Design:
    """What is trained on one data set with one architecture.

    Args:
        num_train, num_test: numbers of images.
        indices: NADs of the first carriers.
        injections: conditions at each of them.
        maps: names of orthogonal maps.
        seeds: seeds of weights and batches.
    """

    num_train: int
    num_test: int
    indices: Sequence[int]
    injections: Sequence[Injection]
    maps: Sequence[str]
    seeds: Sequence[int]


# A photo with twice as many pixels per side has coordinates twice as large: numbers of .5 and of 1
# at 64 x 64.
DESIGNS = {
    ("fashion-mnist", "lenet"): Design(
        10_000,
        10_000,
        (0, 10, 30, 100, 300, 1000),
        (*HOLES, ("emptied", "added", 0.2), ("emptied", "added", 0.5)),
        tuple(MAPS),
        (3, 4, 5),
    ),
    ("fashion-mnist", "logreg"): Design(10_000, 10_000, (), (), tuple(MAPS), (3, 4, 5)),
    ("imagenette", "lenet"): Design(
        8_000,
        3_925,
        (0, 10, 100, 300, 1000, 4000),
        (*HOLES, ("emptied", "added", 0.5), ("emptied", "added", 1.0)),
        tuple(MAPS),
        (3,),
    ),
    ("imagenette", "logreg"): Design(8_000, 3_925, (), (), tuple(MAPS), (3,)),
    ("imagenette", "resnet"): Design(
        5_000,
        3_925,
        (0, 300, 4000),
        (HOLES[0], HOLES[1], HOLES[3], ("emptied", "added", 1.0)),
        ("as is", "flipped", "random signs", "shuffled"),
        (3,),
    ),
}


FIELDS = ("data", "network", "seed", "map", "index", "background", "written", "size")


def trainings() -> list[Unit]:
    """Return all trainings, small networks first, and in each design the first seed first.

    The fields of an injection are None for a map, and the other way round.
    """
    found: list[tuple[Any, ...]] = []
    for cell, design in DESIGNS.items():
        for seed in design.seeds:
            found += [(*cell, seed, name, None, None, None, None) for name in design.maps]
            injections = itertools.product(design.indices, design.injections)
            found += [(*cell, seed, None, index, *injection) for index, injection in injections]
    return [dict(zip(FIELDS, values, strict=True)) for values in found]


photos = lru_cache(maxsize=2)(exact_photos)


@lru_cache(maxsize=2)
def nads_of(data: str, network: str) -> NADs:
    """Return all NADs of single-channel images: those of LeNet also for logistic regression, which
    has none.
    """
    side = SHAPES[data][1]
    if network != "resnet":
        return flipping_nads(side)
    values, vectors = torch.linalg.eigh(second_moments(data, network).mean(0))
    directions = vectors.flip(1).T.reshape(-1, 1, side, side).contiguous()
    return NADs(directions, values.flip(0).contiguous())


@lru_cache(maxsize=1)
def scaling(data: str, count: int) -> Callable[[Tensor], Tensor]:
    """Return the map that standardises each channel by the unchanged training images."""
    channels = photos(data, True, count).images.transpose(0, 1).flatten(1)
    mean, std = (tuple(values.tolist()) for values in (channels.mean(1), channels.std(1)))
    return lambda images: nc.normalize(images, mean, std)


@lru_cache(maxsize=1)
def spread(data: str, count: int) -> Tensor:
    """Return the covariance of a channel of standardised training images, (D, D)."""
    return covariance(scaling(data, count)(photos(data, True, count).images))


@lru_cache(maxsize=1)
def matrix_of(data: str, network: str, count: int, name: str) -> Tensor:
    """Return the orthogonal matrix of a map, (D, D)."""
    source, order, signs = MAPS[name]
    target = nads_of(data, network).basis.float()
    start = principal_components(spread(data, count)).float() if source == "pca" else target
    return orthogonal_map(start, target, order, signs=signs, seed=MAP_SEED)


def mapped(unit: Unit, design: Design) -> tuple[Dataset, Dataset, Facts]:
    """Return the training and the test set of a map, and how well photos match NADs and how smooth
    they are.
    """
    data, network, count = unit["data"], unit["network"], design.num_train
    matrix, standard = matrix_of(data, network, count, unit["map"]), scaling(data, count)
    parts = (photos(data, True, count), photos(data, False, design.num_test))
    train, test = ((transform(standard(part.images), matrix), part.labels) for part in parts)
    nads = None if network == "logreg" else nads_of(data, network)
    facts = describe(nads, matrix, spread(data, count))
    return train, test, {name: value for name, value in facts.items() if value is not None}


def injected(unit: Unit, design: Design) -> tuple[Dataset, Dataset, Measure]:
    """Return training and test set of an injection, and the measure of a trained network."""
    data, standard = unit["data"], scaling(unit["data"], design.num_train)
    first, last = photos(data, True, design.num_train), photos(data, False, design.num_test)
    injection = ShortcutInjection(first.images, nads_of(data, unit["network"]), unit["index"])
    prepared, clean = (injection.prepare(p.images, unit["background"]) for p in (first, last))
    changed = injection.inject(prepared, first.labels, unit["written"], unit["size"])
    measure = partial(followed_row, injection, clean, last.labels, unit, standard)
    return (standard(changed), first.labels), (standard(clean), last.labels), measure


def measured(unit: Unit, device: torch.device) -> Row:
    """Train the network of a unit and return its row; networks of one seed begin with equal
    weights.
    """
    design = DESIGNS[unit["data"], unit["network"]]
    facts: Facts = {}
    measure = None
    if unit["map"] is None:
        train, test, measure = injected(unit, design)
    else:
        train, test, facts = mapped(unit, design)
    torch.manual_seed(unit["seed"])
    network = build(unit["data"], unit["network"])
    row = train_network(network, train, test, PHOTO_RECIPE, unit["seed"], Context(device))
    return row | facts | (measure(network) if measure else {})


class Replications(FileStudy):
    """What do the poison and the flip do on other photos? See ``replications.toml``."""

    name = "replications"
    on_photos = True

    def units(self) -> list[Unit]:
        return trainings()

    def facts(self) -> Facts:
        designs = {
            f"{data}, {network}": design_of(matching(trainings(), data=data, network=network))
            for data, network in DESIGNS
        }
        return {"epochs": PHOTO_RECIPE.epochs, "num_networks": NUM_NETWORKS, "designs": designs}

    def run(self, unit: Unit, context: Context) -> Row:
        return measured(unit, context.device)

    def score(self, rows: Rows) -> Scored:
        """Apply the registered criteria, see `judge`."""
        return judge(rows, self.facts()["designs"])
