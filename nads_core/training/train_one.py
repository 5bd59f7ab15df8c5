"""Training one network."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor, nn

from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.accuracies import accuracy
from nads_core.training.recipes import (
    Dataset,
    Recipe,
    TrainConfig,
    batches,
    config_of,
    require_dataset,
    require_one_shape,
)
from nads_core.training.result import WINDOW, TrainingResult, TrainingTimeout, require_finite
from nads_core.training.state import TrainingState
from nads_core.training.steps import Trainee, captured, step

if TYPE_CHECKING:
    from tqdm import tqdm

_LOW_LOSS = 0.1  # mean loss of an epoch above which a full test accuracy is improbable


def train_network(
    network: nn.Module,
    train: Dataset,
    test: Dataset | None = None,
    *,
    progress: bool = True,
    **options: Any,
) -> TrainingResult:
    """Train one network in place with cross-entropy, and return it to the device it came from.

    Args:
        network: module from images (N, C, H, W) to logits (N, classes).
        train: training images (N, C, H, W) and labels (N,).
        test: test images and labels, for the accuracy after training.
        progress: whether to show a progress bar.
        **options: fields of `TrainConfig`.

    Returns:
        Accuracies of the trained network, which stays in ``network``, the losses (steps,), and the
        seconds.

    Raises:
        ValueError: if data have the wrong shape or type, the network has no output for a label or
            rejects a last batch of one image, weights are complex or of several types,
            ``stop_at_full_accuracy`` is set without a test set, the device is not available,
            or a loss became NaN (checked after every epoch); on a GPU, which captures a step, for
            random numbers of Python or numpy.
        RuntimeError: on a GPU, if a step reads a value; `train_networks` by "loop" allows both.
    """
    config = config_of(options)
    graph, names = config.device.type == "cuda", ["training"]
    home = next((weight.device for weight in network.parameters()), config.device)
    try:
        with seeded(seed_sequence(config.seed, 1), config.device):
            data = [(train, test)]
            return fit([network], data, config, graph=graph, names=names, progress=progress)[0]
    finally:
        network.to(home)  # a caller's next line has its images there


def fit(
    networks: Sequence[nn.Module],
    datasets: Sequence[tuple[Dataset, Dataset | None]],
    config: TrainConfig,
    *,
    names: Sequence[str],
    graph: bool = False,
    progress: bool = False,
    deadline: float = math.inf,
    state: TrainingState | None = None,
) -> list[TrainingResult]:
    """Train networks in place, all of them in every step; random layers draw from torch's global
    generators as they are.

    One network alone may stop early, draw random numbers, and have a ``state``.

    Args:
        networks: B networks.
        datasets: training set, which is converted to the type of the weights, and test set of each.
        config: options of the training.
        names: names of the networks in errors.
        graph: whether a step is captured as a CUDA graph.
        progress: whether to show a progress bar.
        deadline: value of time.monotonic at which the training is given up.
        state: checkpoint from which the training resumes, with the numbers of an uninterrupted one.

    Raises:
        ValueError: for data or networks that cannot be trained, or a loss that became NaN, which
            ends the training of all B networks.
        RuntimeError: with ``graph``, if a step reads a value.
        TrainingTimeout: after the deadline.
    """
    start, recipe, device = time.perf_counter(), config.recipe, config.device
    for network, (train, test) in zip(networks, datasets, strict=True):
        require_dataset(train, "train")
        if test is not None:
            require_dataset(test, "test")
        elif config.stop_at_full_accuracy:
            raise ValueError("stop_at_full_accuracy needs a test set: pass one")
        require_classifier(network.to(device), train, recipe, test)
    require_one_shape(train for train, _ in datasets)
    trainees = [
        Trainee(network, train, config)
        for network, (train, _) in zip(networks, datasets, strict=True)
    ]
    take_step = captured(trainees) if graph else partial(step, trainees, [])
    alone, test = trainees[0], datasets[0][1]
    losses = state.restore(alone) if state is not None else []
    num_samples, first = len(alone.data[1]), len(losses)
    total = recipe.num_steps(num_samples)
    per_epoch = total // recipe.epochs
    label = " to ".join(dict.fromkeys([names[0], names[-1]]))
    with progress_bar(total, label, "step", progress) as bar:
        bar.update(first)
        remaining = islice(batches(num_samples, recipe, config.seed), first, None)
        for done, batch in enumerate(remaining, first + 1):
            losses.append(take_step(batch.to(device), recipe.rate(done - 1, total)))  # (B,)
            bar.update()
            if time.monotonic() > deadline:
                raise TrainingTimeout(f"the time is up: {label} took {done} of {total} steps")
            if done % per_epoch == 0 and done < total:
                # Abort diverged trainings without a checkpoint.
                require_finite(losses[-per_epoch:], names, done - per_epoch)
                if (
                    config.stop_at_full_accuracy
                    and test
                    and _is_perfect(alone.network, losses, per_epoch, test, config)
                ):
                    break
                if state is not None:
                    state.save_if_due(alone, losses, time.perf_counter() - start)
            if config.stop_loss is not None and done % WINDOW == 0:
                if float(torch.stack(losses[-WINDOW:]).mean()) <= config.stop_loss:
                    break
    require_finite(losses, names)
    by_network = torch.full((len(networks), total), torch.nan, dtype=losses[0].dtype)
    by_network[:, : len(losses)] = torch.stack(losses, 1).cpu()
    accuracies: list[Any] = []
    for network, parts in zip(networks, datasets, strict=True):
        network.eval()
        at_once = 250 * len(networks)  # images: the memory of all networks is one's now
        with config.autocast():
            shares = [part and torch.tensor(accuracy(network, part, at_once)) for part in parts]
        accuracies.append(shares)
    seconds = (time.perf_counter() - start + (state.seconds if state else 0.0)) / len(networks)
    return [
        TrainingResult(of_train, of_test, values, torch.tensor(seconds))
        for (of_train, of_test), values in zip(accuracies, by_network, strict=True)
    ]


def require_classifier(
    network: nn.Module, train: Dataset, recipe: Recipe, test: Dataset | None
) -> None:
    """Raise a ValueError unless a network can be trained on images, in batches of any size, to tell
    all labels.
    """
    weights = [p for p in network.parameters() if p.requires_grad]
    kinds = {p.dtype for p in weights}
    if len(kinds) != 1 or not weights[0].is_floating_point():
        shown = ", ".join(map(str, kinds)) or "none"
        raise ValueError(f"trainable weights of one floating-point type are needed, got {shown}")
    # Those of training would show in the loss
    if test is not None and not test[0].isfinite().all():
        raise ValueError(
            "test images have values that are NaN or infinite: repair them, or leave them out"
        )
    images = train[0][:1].to(weights[0], copy=True)
    labels = torch.cat([data[1].flatten().cpu() for data in (train, test) if data is not None])
    with seeded(0, images.device), torch.no_grad():
        network.eval()
        logits = outputs_of(network, images)
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != 1:
            raise ValueError(
                "the network must map (N, C, H, W) to logits (N, classes), "
                f"but for N = 1 returned {shape}"
            )
        if labels.max() >= logits.shape[1]:
            raise ValueError(
                f"labels are from {labels.min()} to {labels.max()}, "
                f"but the network has {logits.shape[1]} outputs, from 0"
            )
        if len(train[0]) % recipe.batch_size == 1:  # of no use to a batch normalisation
            trained = copy.deepcopy(network)
            trained.train()
            try:
                trained(images)
            except ValueError as error:
                raise ValueError(
                    f"the last of {len(train[0]):,} images is a batch of its own "
                    f"(batch_size={recipe.batch_size}), which the network rejects: {error}. "
                    "Choose another batch_size"
                ) from error


def outputs_of(network: nn.Module, images: Tensor) -> object:
    """Return a network's outputs; raise a ValueError with the shape if it rejects the images."""
    try:
        return network(images)
    except (RuntimeError, AssertionError) as error:
        shape = " × ".join(map(str, images.shape[1:]))
        remedy = "pass a function that returns a network for this shape"
        raise ValueError(f"the network rejects images of {shape}: {remedy} ({error})") from error


def _is_perfect(
    network: nn.Module, losses: list[Tensor], per_epoch: int, test: Dataset, config: TrainConfig
) -> bool:
    """Whether the last epoch lowered the mean loss and no test image is misclassified after it."""
    if len(losses) < 2 * per_epoch:
        return False
    # Of the last two epochs
    means = torch.stack(losses[-2 * per_epoch :]).view(2, per_epoch).mean(1)
    before, last = means.tolist()
    # Skip the evaluation of all test images while the loss is high.
    if last >= min(before, _LOW_LOSS):
        return False
    with config.autocast():
        return accuracy(network, test) == 1


def progress_bar(total: int, label: str, unit: str, show: bool) -> tqdm[NoReturn]:
    """Return a tqdm bar that shows the remaining time."""
    from tqdm import tqdm

    return tqdm(total=total, desc=label, unit=unit, disable=not show, mininterval=0.5, leave=False)
