"""Training: step by step with any optimiser of `torch.optim`, or in one call, as
most studies do.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call

import nads_core as nc
from nads_book.experiments.study import Context, Row, rounded
from nads_book.photos import load_images
from nads_core.networks.architectures import Architecture
from nads_core.training import Dataset, Recipe, TrainingResult, batches, training_steps

PHOTO_RECIPE = replace(nc.CIFAR10_RECIPE, epochs=10)  # of most studies on photos


@dataclass(frozen=True)
class TrainingSize:
    """How much one network learns, and from what.

    Args:
        num_train, num_test: numbers of samples.
        recipe: recipe of the training.
        stop_perfect: whether a training ends when no test image is wrong, see `train_networks`.
        paired_test: whether test samples come in pairs, see `SeparableDatasets`.
    """

    num_train: int
    num_test: int
    recipe: Recipe
    stop_perfect: bool = False
    paired_test: bool = False


def recipe_steps(
    network: nn.Module,
    data: Dataset,
    optimiser: torch.optim.Optimizer,
    recipe: Recipe,
    seed: int,
) -> Iterator[Tensor]:
    """Train with any optimiser by the batches, rates and clipping of a recipe; see
    `nads_core.training.training_steps`.

    Gradients of SGD alone are clipped: the steps of Adam do not grow with the gradient.

    Args:
        network: module in training mode.
        data: training images and labels, on the device of the network.
        optimiser: optimiser of the network's parameters.
        recipe: batch size, number of epochs, learning rate and clipping.
        seed: seed of the batches.

    Yields:
        Loss of a step, before its update.
    """
    total = recipe.num_steps(len(data[0]))
    by_sgd = isinstance(optimiser, torch.optim.SGD)
    return training_steps(
        network,
        data,
        optimiser,
        batches(len(data[0]), recipe, seed),
        rates=(recipe.rate(step, total) for step in range(total)),
        clip_norm=recipe.clip_norm if by_sgd else math.inf,
    )


def logit_difference(network: nn.Module, images: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
    """Return the difference of two logits of a network with other weights, (N,)."""
    logits = functional_call(network, dict(weights), (images,))
    return logits[:, 1] - logits[:, 0]


def reached(result: TrainingResult) -> Row:
    """Return the accuracies of one training, or lists of those of several, as rows have them."""
    return {name: rounded(getattr(result, name)) for name in ("test_accuracy", "train_accuracy")}


def train_each(
    factory: Architecture | Callable[[], nn.Module],
    train: Sequence[Dataset],
    test: Sequence[Dataset],
    recipe: Recipe,
    seed: int,
    context: Context,
) -> Row:
    """Train a network on each of some datasets, and return lists of their accuracies.

    Args:
        factory: architecture, or function that returns a new network for two classes.
        train: training sets.
        test: test sets; a training ends when no test image is wrong.
        recipe: recipe of the training.
        seed: seed of weights and batches.
        context: device of the training.
    """
    result = nc.train_networks(
        factory,
        train,
        test,
        recipe=recipe,
        seed=seed,
        stop_at_full_accuracy=True,
        workers=1,
        mixed_precision=context.mixed_precision,
        device=context.device,
        progress=False,
    )
    return reached(result)


def train_along(
    factory: Architecture | Callable[[], nn.Module],
    directions: Tensor,
    noise_std: float,
    size: TrainingSize,
    seed: int,
    context: Context,
    *,
    data_seeds: Iterable[int],
    paired: bool = False,
) -> Row:
    """Train a network on D(v) for each of some directions, and return lists of their accuracies.

    Args:
        factory: architecture, or function that returns a new network for two classes.
        directions: v, (B, 1, H, W).
        noise_std: sigma of D(v); the margin is 1.
        size: numbers of samples, and the recipe.
        seed: seed of weights and batches.
        context: device of the training.
        data_seeds: seeds of the training and of the test set.
        paired: whether test samples come in pairs, see `SeparableDatasets`.
    """
    draw = partial(nc.SeparableDatasets, directions, margin=1.0, noise_std=noise_std)
    train_seed, test_seed = data_seeds
    train = draw(size.num_train, seed=train_seed)
    test = draw(size.num_test, seed=test_seed, paired=paired)
    return train_each(factory, train, test, size.recipe, seed, context)


def train_on_photos(
    build: Callable[[int, int, int], nn.Module],
    num_train: int,
    num_test: int,
    seed: int,
    context: Context,
) -> tuple[nn.Module, Row, Tensor]:
    """Train a network on photos of CIFAR-10 by `PHOTO_RECIPE`.

    Args:
        build: function of the numbers of channels, pixels of a side and classes.
        num_train: number of training photos.
        num_test: number of test photos.
        seed: seed of weights and batches.
        context: device of the training, and folder of the photos.

    Returns:
        The network, its accuracies with the source of the photos, and the normalised test photos.
    """
    parts = [
        load_images("cifar10", train=part, num_images=count, root=context.root, progress=False)
        for part, count in ((True, num_train), (False, num_test))
    ]
    train, test = ((nc.normalize(photos.images), photos.labels) for photos in parts)
    torch.manual_seed(seed)
    network = build(3, 32, 10)
    result = nc.train_network(
        network.to(context.device),
        train,
        test,
        recipe=PHOTO_RECIPE,
        seed=seed,
        mixed_precision=context.mixed_precision,
        device=context.device,
        progress=False,
    )
    return network, reached(result) | {"source": parts[0].source}, test[0]
