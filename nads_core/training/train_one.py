"""Training of one network."""

from __future__ import annotations

import copy
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nads_core.runtime.arguments import usable_device
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.checkpoint import Checkpoint
from nads_core.training.recipe import (
    SEPARABLE_RECIPE,
    Dataset,
    Recipe,
    TrainConfig,
    batches,
    require_dataset,
)
from nads_core.training.result import TrainingResult, accuracy

if TYPE_CHECKING:
    from tqdm import tqdm

WINDOW = 20  # steps of the running mean of the training loss
_LOW_LOSS = 0.1  # mean loss of an epoch above which a full test accuracy is improbable


def train_network(
    network: nn.Module,
    train: Dataset,
    test: Dataset | None = None,
    *,
    recipe: Recipe = SEPARABLE_RECIPE,
    seed: int = 0,
    device: torch.device | str | None = None,
    mixed_precision: bool = False,
    stop_loss: float | None = None,
    stop_at_full_accuracy: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> TrainingResult:
    """Train one network in place with cross-entropy, and return it to the device it came from.

    Args:
        network: module from images (N, C, H, W) to logits (N, classes).
        train: training images (N, C, H, W), which are cast to the weights' type, and labels (N,).
        test: test images and labels, for the accuracy after training.
        recipe: optimiser settings; `SEPARABLE_RECIPE` and `CIFAR10_RECIPE` are the paper's, for
            D(v) and for photos.
        seed: seed of the order of the samples, and of random layers such as dropout.
        device: device to train on, or its name; a GPU by default, if there is one.
        mixed_precision: whether layers run in bfloat16 and channels last; weights and updates keep
            their type.
        stop_loss: mean of the last 20 losses at which the training stops.
        stop_at_full_accuracy: whether the training stops after an epoch that lowered its mean loss,
            if then no test image is misclassified. The test set then decides when to stop, so that
            an accuracy of 1 is slightly optimistic.
        checkpoint: path of a file, written after epochs and deleted at the end, from which an
            interrupted training resumes with the numbers of an uninterrupted one.
        progress: whether to show a progress bar.

    Returns:
        Accuracies of the trained network, which stays in ``network``, the losses (steps,), and the
        seconds.

    Raises:
        ValueError: if data have the wrong shape or type, the network has no output for a label or
            rejects a last batch of one image, weights are complex or of several types or would lose
            the memory that they share on their way to the device, ``stop_at_full_accuracy`` is set
            without a test set, the device is not available, the checkpoint belongs to another
            training, or a loss became NaN (checked after every epoch).
    """
    place = usable_device(device)
    config = TrainConfig(recipe, seed, place, mixed_precision, stop_loss, stop_at_full_accuracy)
    home = next((weight.device for weight in network.parameters()), place)
    try:
        with seeded(seed_sequence(seed, 1), place):
            return fit(network, train, test, config, checkpoint=checkpoint, progress=progress)
    finally:
        network.to(home)  # a caller's next line has its images there


def training_steps(
    network: nn.Module,
    train: Dataset,
    optimiser: torch.optim.Optimizer,
    batches: Iterable[Tensor],
    *,
    rates: Iterable[float | None] = repeat(None),
    clip_norm: float = math.inf,
    mixed_precision: bool = False,
) -> Iterator[Tensor]:
    """Train a network in place with cross-entropy, and pause after every step.

    Args:
        network: module in training mode, from images (N, C, H, W) to logits (N, classes).
        train: training images and labels, on the device of the network.
        optimiser: optimiser of the network's parameters.
        batches: indices of the samples of each step, drawn when the step is due.
        rates: learning rate of each step; None for that of the optimiser, which is the default.
        clip_norm: upper bound of the norm of the gradient of all weights together.
        mixed_precision: whether layers run in bfloat16 and channels last.

    Yields:
        Loss of a step, before its update.
    """
    images, labels = train
    layout = torch.channels_last if mixed_precision else torch.contiguous_format
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    for batch, rate in zip(batches, rates, strict=False):
        if rate is not None:
            for group in optimiser.param_groups:
                group["lr"] = rate
        samples = batch.to(images.device)
        with torch.autocast(images.device.type, torch.bfloat16, enabled=mixed_precision):
            # (n, C, H, W) -> (n, classes)
            logits = network(images[samples].contiguous(memory_format=layout))
        if not isinstance(logits, Tensor):
            raise ValueError(
                f"in train mode the network returns a {type(logits).__name__}, not logits alone, "
                "as GoogLeNet does with auxiliary classifiers: switch these off "
                "(aux_logits=False), or pass a module that returns the logits"
            )
        loss = F.cross_entropy(logits.to(images.dtype), labels[samples])
        for weight in weights:
            weight.grad = None
        loss.backward()
        if clip_norm < math.inf:
            nn.utils.clip_grad_norm_(weights, clip_norm)
        optimiser.step()
        yield loss.detach()


def fit(
    network: nn.Module,
    train: Dataset,
    test: Dataset | None,
    config: TrainConfig,
    *,
    label: str = "training",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> TrainingResult:
    """Train a network as `train_network` does; random layers draw from torch's global generators as
    they are, and the network stays on the device.

    Args:
        network: network, which is trained in place.
        train: training set.
        test: test set.
        config: options of the training.
        label: name of the training in errors and in the progress bar.
        checkpoint: path of the checkpoint.
        progress: whether to show a progress bar.
    """
    start, recipe, device = time.perf_counter(), config.recipe, config.device
    require_dataset(train, "train")
    if test is not None:
        require_dataset(test, "test")
    elif config.stop_at_full_accuracy:
        raise ValueError("stop_at_full_accuracy needs a test set: pass one")
    move(network, device)
    if config.mixed_precision and device.type == "cuda":
        move(network, memory_format=torch.channels_last)
    weights = require_classifier(network, train, recipe, test)
    data = train[0].to(weights[0]), train[1].to(device, torch.long)
    optimiser = torch.optim.SGD(
        weights,
        recipe.learning_rate,
        recipe.momentum,
        weight_decay=recipe.weight_decay,
        # A step of all weights at once on a GPU would lose updates of memory that is there twice
        foreach=False if _shared_memory(network) else None,
    )
    num_samples = len(data[1])
    total = recipe.num_steps(num_samples)
    per_epoch = total // recipe.epochs
    losses = torch.full((total,), math.nan, dtype=weights[0].dtype, device=device)
    state, first = None, 0
    if checkpoint is not None:
        state = Checkpoint(Path(checkpoint), network, optimiser, data, config)
        before = state.restore()
        first = len(before)
        losses[:first] = before
    network.train()
    steps = training_steps(
        network,
        data,
        optimiser,
        islice(batches(num_samples, recipe, config.seed), first, None),
        rates=(recipe.rate(step, total) for step in range(first, total)),
        clip_norm=recipe.clip_norm,
        mixed_precision=config.mixed_precision,
    )
    with progress_bar(total, label, "step", progress) as bar:
        bar.update(first)
        for done, loss in enumerate(steps, first + 1):
            losses[done - 1] = loss
            bar.update()
            ended = done == total or _ends(network, losses[:done], per_epoch, test, config)
            if ended or done % per_epoch == 0:  # Abort diverged trainings without a checkpoint.
                broken = ~losses[:done].isfinite()
                if broken.any():
                    raise ValueError(
                        f"{label} diverged: its loss became NaN or infinite at step "
                        f"{int(broken.nonzero()[0])}: lower the learning rate"
                    )
                if state is not None and not ended:
                    state.save_if_due(losses[:done], time.perf_counter() - start)
            if ended:
                break
    network.eval()
    reached = _accuracy(network, train, config)
    tested = None if test is None else _accuracy(network, test, config)
    seconds = time.perf_counter() - start
    if state is not None:
        seconds += state.seconds
        state.path.unlink(missing_ok=True)
    return TrainingResult(reached, tested, losses.cpu(), torch.tensor(seconds))


def move(network: nn.Module, *target: Any, **layout: Any) -> None:
    """Move or convert a network in place by `torch.nn.Module.to`.

    Raises:
        ValueError: if tensors that share memory are copied apart by it, as views are; one parameter
            that several modules hold stays one.
    """
    before = _shared_memory(network)
    network.to(*target, **layout)
    for names in sorted(before - _shared_memory(network)):
        to = " ".join(map(str, (*target, *layout.values())))
        raise ValueError(
            f"{' and '.join(names)} share memory, which torch does not keep on the way to {to}: "
            "create them there, or let the modules hold one parameter"
        )


def _shared_memory(network: nn.Module) -> set[tuple[str, ...]]:
    """Return the names of tensors that lie in the same memory, without those that are identical."""
    places = defaultdict(list)
    for name, tensor in [*network.named_parameters(), *network.named_buffers()]:
        if tensor.numel():
            places[tensor.untyped_storage().data_ptr()].append(name)
    return {tuple(names) for names in places.values() if len(names) > 1}


def require_classifier(
    network: nn.Module, train: Dataset, recipe: Recipe, test: Dataset | None
) -> list[nn.Parameter]:
    """Return the trainable weights; raise a ValueError unless a network can be trained on images,
    in batches of any size, to tell all labels.
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
        try:
            logits = network(images)
        except (RuntimeError, AssertionError) as error:
            shape = " × ".join(map(str, images.shape[1:]))
            remedy = "pass a function that returns a network for this shape"
            raise ValueError(
                f"the network rejects images of {shape}: {remedy} ({error})"
            ) from error
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
    return weights


def _ends(
    network: nn.Module, losses: Tensor, per_epoch: int, test: Dataset | None, config: TrainConfig
) -> bool:
    """Whether a training stops before its last step: see `train_network`."""
    done, recent = len(losses), losses[-WINDOW:]
    if config.stop_loss is not None and done % WINDOW == 0 and recent.mean() <= config.stop_loss:
        return True
    epoch, rest = divmod(done, per_epoch)
    if rest or epoch < 2 or test is None or not config.stop_at_full_accuracy:
        return False
    before, last = losses[-2 * per_epoch :].view(2, per_epoch).mean(1).tolist()
    # Skip the evaluation of all test images while the loss is high.
    return last < min(before, _LOW_LOSS) and bool(_accuracy(network, test, config) == 1)


def _accuracy(network: nn.Module, data: Dataset, config: TrainConfig) -> Tensor:
    """Return the accuracy in the precision of the training."""
    with torch.autocast(config.device.type, torch.bfloat16, enabled=config.mixed_precision):
        return torch.tensor(accuracy(network, data))


def progress_bar(total: int, label: str, unit: str, show: bool) -> tqdm[NoReturn]:
    """Return a tqdm bar that shows the remaining time."""
    from tqdm import tqdm

    return tqdm(total=total, desc=label, unit=unit, disable=not show, mininterval=0.5, leave=False)
