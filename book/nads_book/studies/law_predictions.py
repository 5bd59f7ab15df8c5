"""What the first-step law misses, and a prediction of accuracies that were not measured yet.

The studies ``law-candidates`` and ``law-probes`` ask what could be missing, on trainings that are
stored.
``law-predictions`` predicts accuracies at other numbers of samples, noise and directions, which
were committed; then ``law-trained`` trains the networks, and those of few samples as often as those
of many: is it the samples, or the steps?

The second moment C comes from networks that no NAD was computed from: a run of
another seed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

import nads_core as nc
from nads_book.analysis.prediction import (
    Family,
    GainCorrection,
    Responses,
    filter_gain,
    predicted_accuracy,
    signal_to_noise,
)
from nads_book.experiments import (
    Context,
    Facts,
    FileStudy,
    KeyedStudy,
    Row,
    TrainingSize,
    Unit,
    less,
    load_study,
    logit_difference,
    rounded,
    train_along,
)
from nads_book.experiments.stored import load_nads
from nads_book.studies import stored
from nads_core.directions.symmetry import symmetrize
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import Dataset

# Trainings of the paper's size whose accuracies were known
FITTED = ("fig6-lenet", "fig1-lenet")
SEEN = (*FITTED, "random-lenet")
LEVELS = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35)  # signal to noise of the pairs of NADs
# Numbers of samples, and sigma.
CELLS = (
    *((count, 1.0) for count in (1_000, 3_162, 10_000, 31_623, 100_000)),
    *((10_000, noise_std) for noise_std in (0.5, 2.0)),
)
NUM_TEST, SEED = 10_000, 7
NUM_INDEPENDENT = 204_800  # networks of the independent run
CONTROL_EPOCHS = 200
NUM_KERNEL, KERNELS = 3_000, (1, 4, 8)  # samples, and networks whose tangent kernels are averaged
BY_KERNEL = (213, 231)  # and of these for slower measures
PROBED = (87, 99, 132, 136, 198, 213, 231, 264)  # NADs of fig6-lenet for slow measures


@lru_cache(maxsize=1)
def independent_covariance() -> Tensor:
    """Return C (D, D) from runs that no shipped NAD saw."""
    moment = nc.second_moment(
        nc.LENET, (1, 32, 32), NUM_INDEPENDENT, seed=1_000, device="cpu", progress=False
    )
    return symmetrize(moment.shares().sum(0), (1, 32, 32), nc.LENET.symmetries)


class Seen(NamedTuple):
    """Directions that were trained along already, with the law's ratios and gains, (n,) each."""

    family: Family
    ratios: np.ndarray
    gains: np.ndarray


@lru_cache
def seen(name: str) -> Seen:
    """Return the directions of stored trainings."""
    family = Family.of(stored(name))
    responses = Responses.of(independent_covariance(), family.directions)
    ratios = responses.signal_to_noise(family.num_train, family.noise_std)
    return Seen(family, ratios, filter_gain(family.directions))


def fitted(names: Iterable[str], gains: bool = True) -> GainCorrection:
    """Fit to several families of directions; without gains, to the ratios alone."""
    parts = [seen(name) for name in names]
    columns = zip(*((ratios, g, family.accuracies) for family, ratios, g in parts), strict=True)
    ratios, values, accuracies = map(np.concatenate, columns)
    return GainCorrection.fit(ratios, values if gains else np.ones(len(values)), accuracies)


def samples(direction: Tensor, *counts: int) -> Iterator[Dataset]:
    """Draw a training and a test set of D(v) with a margin and a sigma of 1."""
    for part, count in enumerate(counts, 1):
        yield nc.separable_dataset(direction, count, 1.0, 1.0, seed=seed_sequence(SEED, part))


def right(scores: Tensor, truth: Tensor) -> float:
    """Return the share of samples whose score has the sign of their class."""
    return round(float(((scores > 0) == (truth == 1)).double().mean()), 4)


def later_steps(covariance: Tensor, direction: Tensor) -> list[list[float]]:
    """Return test accuracies of a linear model with the kernel x^T C x', after 1, 4 and 10 epochs
    at several rates.
    """
    values, vectors = torch.linalg.eigh(covariance)
    values = values.clamp(min=0) / values.clamp(min=0).mean()
    root = ((vectors * values.sqrt()) @ vectors.T).float()
    (images, labels), (tests, truth) = samples(direction, 10_000, 10_000)
    inputs, signs = images.flatten(1) @ root, 2.0 * labels - 1
    generator, result = torch.Generator().manual_seed(SEED), []
    for rate in (1e-3, 1e-2, 1e-1):
        weights, reached = torch.zeros(len(root)), []
        for epoch in range(1, 11):
            for batch in torch.randperm(len(inputs), generator=generator).split(128):
                x, y = inputs[batch], signs[batch]
                weights += rate * (x.T @ (y * torch.sigmoid(-y * (x @ weights)))) / len(batch)
            if epoch in (1, 4, 10):
                scores = tests.flatten(1) @ root @ weights
                reached.append(right(scores, truth))
        result.append(reached)
    return result


def kernel_accuracies(direction: Tensor) -> list[float]:
    """Return test accuracies by the tangent kernel of LeNets at initialisation, the mean of so many
    networks' kernels.

    The kernel's regression with a ridge of a thousandth of its mean eigenvalue: what a network that
    never changes its kernel reaches at the end of a long training, and not what some optimiser has
    reached of it.
    """
    (images, labels), (tests, truth) = samples(direction, NUM_KERNEL, 2_000)
    signs, everything = 2.0 * labels - 1, torch.cat([images, tests])
    kernel, result = torch.zeros(len(everything), NUM_KERNEL), []
    for number in range(max(KERNELS)):
        torch.manual_seed(SEED + number)
        network = nc.LENET.build(1, 32, 2)
        start = {name: value.detach() for name, value in network.named_parameters()}

        def output(weights: dict[str, Tensor], image: Tensor, network: Any = network) -> Tensor:
            return logit_difference(network, image[None], weights)[0]

        gradients = vmap(grad(output), (None, 0))
        rows = torch.cat(
            [
                torch.cat([part.flatten(1) for part in gradients(start, some).values()], 1)
                for some in everything.split(250)
            ]
        )
        kernel += rows @ rows[:NUM_KERNEL].T
        if number + 1 in KERNELS:
            block = kernel[:NUM_KERNEL].double()
            ridge = 1e-3 * block.diagonal().mean() * torch.eye(NUM_KERNEL, dtype=torch.float64)
            scores = kernel[NUM_KERNEL:].double() @ torch.linalg.solve(
                block + ridge, signs.double()
            )
            result.append(right(scores, truth))
    return result


def chosen_pairs(responses: Responses, gains: np.ndarray) -> list[int]:
    """Return two NADs at each level of the law, the one with the largest and the one with the
    smallest gain there.
    """
    z, chosen = responses.signal_to_noise(10_000, 1.0), []
    for level in LEVELS:
        near = np.flatnonzero(np.abs(z / level - 1) < 0.1)
        chosen += [int(near[gains[near].argmax()]), int(near[gains[near].argmin()])]
    return chosen


def laws() -> dict[bool, GainCorrection]:
    """Return the corrections of the law that are fitted to the families with and without gains."""
    return {gains: fitted(FITTED, gains) for gains in (True, False)}


class LawCandidates(KeyedStudy):
    """What does the first-step law miss? How much each candidate explains, on trainings that were
    known.
    """

    name = "law-candidates"
    on_gpu = False
    file = "law.json"
    design = {"family": SEEN}
    rows_at = ("candidates", "families")
    empty = {"candidates": {"num_networks": NUM_INDEPENDENT}}
    needs = SEEN

    def run(self, unit: Unit, context: Context) -> Row:
        name = unit["family"]
        family, ratios, gains = seen(name)
        others = [other for other in FITTED if other != name]
        nads = load_nads("lenet")
        columns = {
            "shipped": signal_to_noise(nads, family.directions, 10_000, family.noise_std),
            "independent": ratios,
            "held_out": fitted(others).accuracies(ratios, gains),
        }
        facts = {"key": list(family.keys), "gain": rounded(gains, 4)}
        return facts | {"accuracy": family.accuracies.tolist(), **rounded(columns)}


class LawProbes(FileStudy):
    """Slower candidates for what the first-step law misses, along some NADs."""

    name = "law-probes"
    on_gpu = False
    file = "law.json"
    design = {"index": PROBED}
    rows_at = ("candidates", "probes")
    needs = SEEN[:1]

    def run(self, unit: Unit, context: Context) -> Row:
        index = unit["index"]
        family, ratios, gains = seen("fig6-lenet")
        place = list(family.keys).index(index)
        direction = family.directions[place]
        return {
            "accuracy": float(family.accuracies[place]),
            "z": float(ratios[place]),
            "gain": float(gains[place]),
            "later_steps": later_steps(independent_covariance(), direction),
            "kernels": kernel_accuracies(direction) if index in BY_KERNEL else [],
        }


class LawPredictions(FileStudy):
    """Accuracies along NADs that no network was trained along, committed before the trainings."""

    name = "law-predictions"
    on_gpu = False
    file = "law.json"
    design = {"pair": range(2 * len(LEVELS))}  # NADs, two at each level
    needs = FITTED
    many_rows = True

    def rows_of(self, content: Mapping[str, Any]) -> list[Row]:
        rows = content.get("prediction", {}).get("rows", [])
        indices = list(dict.fromkeys(row["index"] for row in rows))
        return [{"pair": indices.index(row["index"]), **row} for row in rows]

    def with_rows(self, content: Facts, rows: list[Row]) -> Facts:
        made = content.get("prediction", {})
        if rows and not made:
            nads = load_nads("lenet")
            made = {
                "nads": {"version": nads.provenance["version"], "fingerprint": nads.fingerprint},
                "num_networks": NUM_INDEPENDENT,
                "powers": laws()[True].powers,
            }
        return content | {"prediction": made | {"rows": [less(row, "pair") for row in rows]}}

    def run(self, unit: Unit, context: Context) -> list[Row]:
        nads = load_nads("lenet")
        responses = Responses.of(independent_covariance(), nads.directions)
        gains, corrections = filter_gain(nads.directions), laws()
        index, rows = chosen_pairs(responses, gains)[unit["pair"]], []
        gain = gains[[index]]
        for num_train, noise_std in CELLS:
            z = responses.signal_to_noise(num_train, noise_std)[[index]]
            values = {
                "z": z,
                "law": predicted_accuracy(z),
                "with_gain": corrections[True].accuracies(z, gain),
                "without_gain": corrections[False].accuracies(z, np.ones(1)),
            }
            row = {"index": index, "num_train": num_train, "noise_std": noise_std}
            row |= {"gain": rounded(gain[0], 4)}
            rows.append(row | {name: x for name, (x,) in rounded(values).items()})
        return rows


class LawTrainings(FileStudy):
    """How accurate are the networks that the predictions are about? And those of few samples, seen
    more often?
    """

    name = "law-trained"
    needs = ("law-predictions",)
    many_rows = True

    def units(self) -> list[Unit]:
        cells = [(*cell, nc.SEPARABLE_RECIPE.epochs) for cell in CELLS]
        return [
            {"num_train": num_train, "noise_std": noise_std, "seed": 0, "epochs": epochs}
            for num_train, noise_std, epochs in [*cells, (*CELLS[0], CONTROL_EPOCHS)]
        ]

    def key(self, row: Mapping[str, Any]) -> str:
        """Return the identity of a unit; early rows do not name the recipe's number of epochs."""
        return super().key({"epochs": nc.SEPARABLE_RECIPE.epochs, **row})

    def run(self, unit: Unit, context: Context) -> list[Row]:
        rows = load_study(LawPredictions.file)["prediction"]["rows"]
        cell = {name: unit[name] for name in ("num_train", "noise_std")}
        indices = [row["index"] for row in rows if cell.items() <= row.items()]
        recipe = replace(nc.SEPARABLE_RECIPE, epochs=unit["epochs"])
        found = train_along(
            nc.LENET,
            load_nads("lenet").directions[indices],
            unit["noise_std"],
            TrainingSize(unit["num_train"], NUM_TEST, recipe),
            unit["seed"],
            context,
            data_seeds=(seed_sequence(unit["seed"], part) for part in (5, 6)),
        )
        pairs = zip(indices, found["test_accuracy"], strict=True)
        return [{"index": index, "accuracy": accuracy} for index, accuracy in pairs]
