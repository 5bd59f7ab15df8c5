"""Why does the flip cost an MLP accuracy with Adam and not with SGD? How variance is spread.

SGD does not notice an orthogonal map of the inputs of an MLP; Adam does, since it scales the step
of each weight. Two controls separate that from all else: Adam with one scale per matrix, and SGD on
inputs of equal variance. ``book/preregistered/adam_flip.toml`` has what was expected.
"""

from functools import lru_cache
from typing import Any

import pandas as pd
import torch
from torch import Tensor

import nads_core as nc
from nads_book.atlas import ATLAS
from nads_book.experiments import (
    PHOTO_RECIPE,
    Context,
    Estimates,
    Row,
    Rows,
    Scored,
    Study,
    Unit,
    accuracies,
    load_nads,
    recipe_steps,
    sgd,
    within,
)
from nads_book.photos import load_images
from nads_book.statistics import pooled_variance
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training import Dataset, Recipe

BASES = ("as is", "rotated", "flipped", "nads", "components")
ONE_STEP_SIZE, EQUAL_VARIANCES = "adam, one step size", "sgd, equal variances"
TREATMENTS = ("adam", "sgd", ONE_STEP_SIZE, EQUAL_VARIANCES)
SEEDS = (0, 1, 2)
ROTATION_SEED = 19
NUM_TRAIN, NUM_TEST, SHAPE = 10_000, 5_000, (3, 32, 32)
SGD, ADAM = PHOTO_RECIPE, Recipe(epochs=10, learning_rate=1e-3)


class SharedScaleAdam(torch.optim.Adam):
    """Adam whose squared gradients are averaged over each parameter: one step size per matrix."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take a step, as Adam with the mean square of each parameter's gradient."""
        for group in self.param_groups:
            first, second = group["betas"]
            for parameter in group["params"]:
                gradient = parameter.grad
                state = self.state[parameter]
                if not state:
                    state |= {"count": 0, "mean": torch.zeros_like(gradient), "square": 0.0}
                state["count"] += 1
                state["mean"].lerp_(gradient, 1 - first)
                square = float(gradient.square().mean())
                state["square"] = second * state["square"] + (1 - second) * square
                mean = state["mean"] / (1 - first ** state["count"])
                scale = (state["square"] / (1 - second ** state["count"])) ** 0.5 + group["eps"]
                parameter.data.add_(mean, alpha=-group["lr"] / scale)


@lru_cache(maxsize=1)
def upright() -> tuple[Dataset, Dataset, str]:
    """Return the training and the test part of CIFAR-10, each channel standardised in training, and
    their source.

    Raises:
        ValueError: if there are fewer images, or of another shape.
    """
    parts = []
    for train, count in ((True, NUM_TRAIN), (False, NUM_TEST)):
        loaded = load_images("cifar10", train=train, num_images=count, progress=False)
        wanted, found = (count, *SHAPE), tuple(loaded.images.shape)
        if found != wanted:
            raise ValueError(f"images {wanted} needed, {loaded.source} has {found}")
        parts.append(loaded)
    channels = parts[0].images.transpose(0, 1).flatten(1)  # (C, N D)
    mean, std = (value.view(-1, 1, 1) for value in (channels.mean(1), channels.std(1)))
    train, test = (((part.images - mean) / std, part.labels) for part in parts)
    return train, test, parts[0].source


@lru_cache(maxsize=1)
def flipping_nads() -> nc.NADs:
    """Return LeNet's NADs of one channel, whose order "flipped" reverses."""
    return load_nads("lenet", 2).complete_basis()


@lru_cache(maxsize=1)
def principal_axes() -> Tensor:
    """Return the eigenvectors of the covariance of training images, all channels, (C D, C D)."""
    flat = upright()[0][0].flatten(1).double()
    return torch.linalg.eigh(torch.cov(flat.T)).eigenvectors.flip(1).float()


@lru_cache(maxsize=1)
def rotation(size: int) -> Tensor:
    """Return a random orthogonal matrix, (D, D)."""
    generator = torch.Generator().manual_seed(ROTATION_SEED)
    return torch.linalg.qr(torch.randn(size, size, generator=generator))[0]


def in_basis(images: Tensor, basis: str) -> Tensor:
    """Return images (N, C, H, W) in other coordinates, an orthogonal map of them.

    Args:
        images: standardised images.
        basis: one of `BASES`.
    """
    size = images.shape[-2] * images.shape[-1]
    if basis == "components":
        return (images.flatten(1) @ principal_axes()).view_as(images)
    if basis == "rotated":
        return (images.flatten(2) @ rotation(size)).view_as(images)
    if basis == "nads":
        return (images.flatten(2) @ flipping_nads().basis.float()).view_as(images)
    return nc.flip(images, flipping_nads()) if basis == "flipped" else images


def effective_inputs(images: Tensor) -> float:
    """Return over how many inputs the variance is spread: (sum of v)^2 / sum of v^2."""
    variances = images.flatten(1).double().var(0)
    return float(variances.sum().square() / variances.square().sum())


def with_equal_variances(train: Tensor, test: Tensor) -> tuple[Tensor, Tensor]:
    """Return images whose inputs have equal variances in training; their sum stays.

    Inputs that vary by less than a thousandth of the mean deviation are not amplified further.
    """
    deviations = train.std(0)
    typical = deviations.square().mean().sqrt()
    scale = typical / deviations.clamp(min=1e-3 * float(typical))
    return train * scale, test * scale


def trained(train: Dataset, test: Dataset, treatment: str, seed: int) -> Row:
    """Train an MLP and return its accuracies; weights and batches depend on the seed alone."""
    own = seed_sequence(seed, 21)
    with seeded(own):
        network = ATLAS["mlp"].architecture.build(*SHAPE[:2], 10).train()
    recipe = SGD if treatment.startswith("sgd") else ADAM
    optimiser: torch.optim.Optimizer = sgd(network, recipe)
    if recipe is ADAM:
        kind = SharedScaleAdam if treatment == ONE_STEP_SIZE else torch.optim.Adam
        optimiser = kind(network.parameters())
    for _ in recipe_steps(network, train, optimiser, recipe, own % 2**31):
        pass
    return accuracies(network, train, test)


class AdamFlip(Study):
    """Why does Adam lose on flipped photos? Five bases, four treatments (``adam_flip.toml``)."""

    name = "adam-flip"
    on_gpu = False
    design = {"seed": SEEDS, "basis": BASES, "treatment": TREATMENTS}
    on_photos = True

    def run(self, unit: Unit, context: Context) -> Row:
        (images, labels), (tests, truth), source = upright()
        train, test = (in_basis(part, unit["basis"]) for part in (images, tests))
        effective = effective_inputs(train)
        if unit["treatment"] == EQUAL_VARIANCES:
            train, test = with_equal_variances(train, test)
        row = trained((train, labels), (test, truth), unit["treatment"], unit["seed"])
        return row | {"effective_inputs": round(effective, 1), "source": source}

    def judge(self, rows: Rows) -> Scored:
        """Return the points lost by treatment and basis, with Student's intervals, and the criteria
        met.
        """
        fields = ["treatment", "basis", "seed"]
        found = pd.DataFrame(rows).set_index(fields).test_accuracy.unstack("basis")
        estimates: Estimates = {}
        for treatment, own in found.groupby("treatment"):
            lost = {basis: 100 * (own[BASES[0]] - own[basis]) for basis in BASES[1:]}
            variance = pooled_variance(lost.values())
            estimates[treatment] = {
                basis: variance.around(values.mean(), len(values)) for basis, values in lost.items()
            }
        met = {
            name: all(within(estimates[rule["treatment"]][one][0], rule) for one in rule["bases"])
            for name, rule in self.registered["criteria"].items()
        }
        return Scored(estimates, met)
