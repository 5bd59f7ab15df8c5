"""Stored scores and trainings of all pairs of an architecture and a variant of the data."""

from functools import cache
from typing import Any

from nads_book.experiments import load_registered, load_study
from nads_book.studies import pair_statistics as rules
from nads_book.studies.pair_statistics import Estimate, Table

DATA = {
    "cifar10": "CIFAR-10",
    "fashion-mnist": "Fashion-MNIST",
    "imagenette": "Imagenette, 64 × 64",
}
ARCHITECTURES = {
    "lenet": "LeNet",
    "cnn": "small CNN",
    "mlp": "MLP",
    "vit": "ViT",
    "mixer": "Mixer",
    "resnet": "ResNet-18, quarter width",
}
WITHOUT_MLP = ("mlp",)
DECIDING_DRAWS = 100_000  # of the primary score alone
PRIMARY = "ridge"


@cache
def scores() -> Any:
    """Return the stored scores of all pairs."""
    return load_study("other-data-scores.json")


@cache
def trained() -> Any:
    """Return the stored trainings of all pairs."""
    return load_study("other-data.json")


@cache
def plan() -> dict[str, Any]:
    """Return what was registered before the trainings."""
    return load_registered("other_data")


@cache
def pairs() -> Table:
    """Return scores, baselines and accuracies of all pairs of an architecture and a variant of the
    data.
    """
    return Table.of(scores(), trained()["rows"])


@cache
def primary(statistic: str, without: tuple[str, ...] = ()) -> Estimate:
    """Return the mean rank correlation of the primary score by the registered bootstrap, with many
    draws.
    """
    found = rules.compare(
        pairs(),
        without,
        statistics=(statistic,),
        only=(PRIMARY,),
        num_draws=DECIDING_DRAWS,
    )
    return found[statistic, PRIMARY]


@cache
def compared(without: tuple[str, ...] = ()) -> dict[tuple[str, str], Estimate]:
    """Return all registered statistics of all scores and baselines."""
    return rules.compare(pairs(), without)
