"""Repeat the poison and the flip of chapters 7 and 8 on Fashion-MNIST and on Imagenette at 64 x 64.

``book/preregistered/replications.toml`` contains the predictions; `replication_criteria` applies the criteria.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

import nads_core as nc
from nads_book.experiments.stored import load_nads
from nads_book.experiments.study import Context, Evidence, Row, Unit
from nads_book.experiments.study_files import FileStudy
from nads_book.studies.injection import followed_shares
from nads_book.studies.pairs import NUM_NETWORKS, SHAPES, build, flipping_nads, second_moments
from nads_book.studies.replication_criteria import judge
from nads_book.studies.shortcut_injection import (
    BACKGROUNDS,
    INJECTION_MODES,
    ShortcutInjection,
    wrong_labels,
)
from nads_book.studies.transforms import (
    covariance,
    match,
    neighbour_correlation,
    orthogonal_map,
    principal_components,
    transform,
)
from nads_core.directions import NADs
from nads_core.training.recipes import Dataset

RECIPE = replace(nc.CIFAR10_RECIPE, epochs=10)
MAP_SEED = 0  # of random orders and signs

Injection = tuple[
    str, str, float | None
]  # background, mode and size, by the names of chapter 7's results
Map = tuple[str, str, bool]  # basis whose coordinates are mapped to NADs, order, random signs
HOLES: tuple[Injection, ...] = (
    ("kept", "replaced", 0.05), ("kept", "hole", None), ("kept", "hole at mean", None), ("kept", "added", 0.05),
    ("emptied", "none", None),
)  # fmt: skip
MAPS: dict[str, Map] = {
    "as is": ("nads", "kept", False), "flipped": ("nads", "reversed", False), "random signs": ("nads", "kept", True),
    "shuffled": ("nads", "shuffled", False), "matched": ("pca", "kept", True), "opposed": ("pca", "reversed", True),
}  # fmt: skip


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


# A photo with twice as many pixels per side has coordinates twice as large: numbers of .5 and of 1 at 64 x 64.
DESIGNS = {
    ("fashion-mnist", "lenet"): Design(
        10_000, 10_000, (0, 10, 30, 100, 300, 1000),
        (*HOLES, ("emptied", "added", 0.2), ("emptied", "added", 0.5)), tuple(MAPS), (3, 4, 5),
    ),
    ("fashion-mnist", "logreg"): Design(10_000, 10_000, (), (), tuple(MAPS), (3, 4, 5)),
    ("imagenette", "lenet"): Design(
        8_000, 3_925, (0, 10, 100, 300, 1000, 4000),
        (*HOLES, ("emptied", "added", 0.5), ("emptied", "added", 1.0)), tuple(MAPS), (3,),
    ),
    ("imagenette", "logreg"): Design(8_000, 3_925, (), (), tuple(MAPS), (3,)),
    ("imagenette", "resnet"): Design(
        5_000, 3_925, (0, 300, 4000), (HOLES[0], HOLES[1], HOLES[3], ("emptied", "added", 1.0)),
        ("as is", "flipped", "random signs", "shuffled"), (3,),
    ),
}  # fmt: skip


FIELDS = ("data", "network", "seed", "map", "index", "background", "written", "size")


def trainings() -> list[Unit]:
    """Return all trainings, small networks first, and in each design the first seed first.

    The fields of an injection are None for a map, and the other way round.
    """
    found: list[tuple[Any, ...]] = []
    for (data, network), design in DESIGNS.items():
        for seed in design.seeds:
            found += [(data, network, seed, name, None, None, None, None) for name in design.maps]
            found += [
                (data, network, seed, None, index, *injection)
                for index in design.indices for injection in design.injections
            ]  # fmt: skip
    return [dict(zip(FIELDS, values, strict=True)) for values in found]


@lru_cache(maxsize=2)
def photos(data: str, train: bool, count: int) -> nc.ImageSet:
    """Return the first images of a data set: grey 32 x 32 of Fashion-MNIST, coloured 64 x 64 of Imagenette."""
    loaded = nc.load_images(
        data, train=train, num_images=count, size=SHAPES[data][1], progress=False
    )
    if tuple(loaded.images.shape) != (count, SHAPES[data][0], *SHAPES[data][1:] * 2):
        raise ValueError(
            f"{count} images of {SHAPES[data]} expected, {loaded.source} has {tuple(loaded.images.shape)}"
        )
    return loaded


@lru_cache(maxsize=2)
def nads_of(data: str, network: str) -> NADs:
    """Return all NADs of single-channel images: those of LeNet also for logistic regression, which has none."""
    if network == "resnet":
        values, vectors = torch.linalg.eigh(second_moments(data, network).mean(0))
        side = SHAPES[data][1]
        return NADs(
            vectors.flip(1).T.reshape(-1, 1, side, side).contiguous(), values.flip(0).contiguous()
        )
    return (
        load_nads("lenet", 2).complete_basis()
        if SHAPES[data][1] == 32
        else flipping_nads(SHAPES[data][1])
    )


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


def mapped(unit: Unit, design: Design) -> tuple[Dataset, Dataset, dict[str, Any]]:
    """Return the training and the test set of a map, and how well photos match NADs and how smooth they are."""
    matrix, standard = (
        matrix_of(unit["data"], unit["network"], design.num_train, unit["map"] or ""),
        scaling(unit["data"], design.num_train),
    )
    parts = [
        photos(unit["data"], True, design.num_train),
        photos(unit["data"], False, design.num_test),
    ]
    train, test = ((transform(standard(part.images), matrix), part.labels) for part in parts)
    after = matrix.double() @ spread(unit["data"], design.num_train) @ matrix.double().T
    facts = {"neighbours": round(neighbour_correlation(after, SHAPES[unit["data"]][1]), 5)}
    if unit["network"] != "logreg":
        nads = nads_of(unit["data"], unit["network"])
        sensitivity = (nads.basis * nads.eigenvalues.to(nads.basis)) @ nads.basis.T
        facts["match"] = round(match(sensitivity, after), 5)
    return train, test, facts


def trained(
    unit: Unit, train: Dataset, test: Dataset, device: torch.device
) -> tuple[nn.Module, Row]:
    """Return a trained network, and its accuracies; networks of one seed begin with equal weights."""
    torch.manual_seed(unit["seed"])
    network = build(unit["data"], unit["network"])
    result = nc.train_network(
        network, train, test, recipe=RECIPE, seed=unit["seed"], device=device, progress=False
    )
    accuracies = {"test_accuracy": result.test_accuracy, "train_accuracy": result.train_accuracy}
    return network.eval(), {name: round(float(value), 5) for name, value in accuracies.items()}  # type: ignore[arg-type]


def measured(unit: Unit, device: torch.device) -> Row:
    """Train the network of a unit and return its row."""
    design = DESIGNS[unit["data"], unit["network"]]
    if unit["map"] is not None:
        train, test, facts = mapped(unit, design)
        return trained(unit, train, test, device)[1] | facts
    standard = scaling(unit["data"], design.num_train)
    first, last = (
        photos(unit["data"], True, design.num_train),
        photos(unit["data"], False, design.num_test),
    )
    injection = ShortcutInjection(
        first.images, nads_of(unit["data"], unit["network"]), unit["index"] or 0
    )
    background, mode = BACKGROUNDS[unit["background"] or ""], INJECTION_MODES[unit["written"] or ""]
    changed = injection.inject(
        injection.prepare(first.images, background), first.labels, mode, unit["size"]
    )
    clean = injection.prepare(last.images, background)
    network, row = trained(
        unit, (standard(changed), first.labels), (standard(clean), last.labels), device
    )
    wrong = wrong_labels(last.labels, channels=SHAPES[unit["data"]][0])

    def followed(images: Tensor) -> dict[str, float]:
        return followed_shares(network, standard(images), wrong)

    row["unprompted"] = followed(clean)
    if unit["written"] != "none":
        row["followed"] = followed(injection.inject(clean, wrong, mode, unit["size"]))
    row["mean"], row["deviation"] = (round(value, 6) for value in injection.carrier_moments)
    return row


def facts_of(design: Design) -> dict[str, Any]:
    """Return the fields that define a complete design."""
    sizes = [
        size
        for background, *_, size in design.injections
        if background == "emptied" and size is not None
    ]
    facts = {
        "indices": list(design.indices),
        "maps": list(design.maps),
        "seeds": list(design.seeds),
    }
    return facts | {"largest": max(sizes, default=None)}


class Replications(FileStudy):
    """What do the poison and the flip do on other photos? See ``replications.toml``."""

    name = "replications"
    file = "replications.json"
    summary = "poison and flip on Fashion-MNIST and on Imagenette at 64 x 64"
    unit_fields = FIELDS
    on_photos = True

    def units(self) -> list[Unit]:
        return trainings()

    def facts(self) -> dict[str, Any]:
        designs = {", ".join(cell): facts_of(design) for cell, design in DESIGNS.items()}
        return {"epochs": RECIPE.epochs, "num_networks": NUM_NETWORKS, "designs": designs}

    def run(self, unit: Unit, context: Context) -> Row:
        return measured(unit, context.device)

    def score(self, rows: Sequence[Row]) -> Evidence:
        return judge(rows, self.facts()["designs"])
