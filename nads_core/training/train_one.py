"""Training one network."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nads_core.networks.modules import state_of
from nads_core.runtime.arguments import Facts, plain, usable_device
from nads_core.runtime.graphs import capture
from nads_core.runtime.provenance import fingerprint
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.accuracies import accuracy
from nads_core.training.recipes import (
    Dataset,
    Recipe,
    TrainConfig,
    batches,
    config_of,
    descend,
    require_dataset,
)
from nads_core.training.result import WINDOW, TrainingResult, TrainingTimeout, require_finite
from nads_core.training.state import TrainingState

if TYPE_CHECKING:
    from tqdm import tqdm

_LOW_LOSS = 0.1  # mean loss of an epoch above which a full test accuracy is improbable


def train_network(
    network: nn.Module,
    train: Dataset,
    test: Dataset | None = None,
    *,
    timeout: float | None = None,
    progress: bool = True,
    **options: Any,
) -> TrainingResult:
    """Train one network in place with cross-entropy.

    Args:
        network: module from images (N, C, H, W) to logits (N, classes).
        train: training images (N, C, H, W) and labels (N,).
        test: test images and labels, for the accuracy after training.
        timeout: seconds after which to give up.
        progress: whether to show a progress bar.
        **options: fields of `TrainConfig`.

    Returns:
        Accuracies of the trained network, which stays in ``network``, the losses (steps,), and the
        seconds.

    Raises:
        ValueError: if data have the wrong shape or type, the network has no output for a label or
            rejects a last batch of one image, weights are complex or of several types,
            ``stop_at_full_accuracy`` is set without a test set, the device is not available,
            or a loss became NaN (checked after every epoch).
        TrainingTimeout: if training takes longer than ``timeout`` seconds.
    """
    config = config_of(options)
    seconds = math.inf if timeout is None else timeout
    device, bar = usable_device(config.device), Bar("training", progress)
    with seeded(seed_sequence(config.seed, 1), device):
        graph = device.type == "cuda"
        return fit(network, (train, test), config, graph=graph, timeout=seconds, bar=bar)


class Bar(NamedTuple):
    """A progress bar: its text, which names the training in errors too, and whether to show it."""

    label: str
    shown: bool


def fit(
    network: nn.Module,
    datasets: tuple[Dataset, Dataset | None],
    config: TrainConfig,
    *,
    graph: bool,
    timeout: float = math.inf,
    bar: Bar,
    state: TrainingState | None = None,
) -> TrainingResult:
    """Train one network in place; random layers draw from torch's global generators as they are.

    With a ``state`` the training resumes from its file, with the numbers of an uninterrupted
    training. Images are converted to the type of the weights. With ``graph`` a step is captured as
    a CUDA graph.
    """
    (train, test), device, label = datasets, usable_device(config.device), bar.label
    require_dataset(train, "train")
    if test is not None:
        require_dataset(test, "test")
    if config.stop_at_full_accuracy and test is None:
        raise ValueError("stop_at_full_accuracy needs a test set: pass one")
    start, recipe = time.perf_counter(), config.recipe
    require_classifier(network.to(device), train, recipe, test)
    trainee = Trainee(network, train, config, device)
    step, num_samples = trainee.step, len(train[1])
    if graph:
        step = _captured(trainee, min(recipe.batch_size, num_samples))
    changing = trainee.changing
    total, losses = recipe.num_steps(num_samples), []
    if state is not None:
        identity = _identity(network, train, config, trainee.weights)
        losses = state.restore(changing, device, identity, trainee.data[0][0])
    first, per_epoch = len(losses), total // recipe.epochs
    with progress_bar(total, label, "step", bar.shown) as steps:
        steps.update(first)
        remaining = islice(batches(num_samples, recipe, config.seed), first, None)
        for done, batch in enumerate(remaining, first + 1):
            rate = recipe.rate(done - 1, total)
            losses.append(
                step(batch.to(device), rate if device.type == "cpu" else torch.tensor(rate))
            )
            steps.update()
            if time.perf_counter() - start > timeout:
                raise TrainingTimeout(
                    f"{label} took longer than {timeout:.0f} s: {done} of {total} steps done"
                )
            if done % per_epoch == 0 and done < total:
                # Abort diverged trainings without a checkpoint.
                require_finite(torch.stack(losses[-per_epoch:]), label, done - per_epoch)
                if (
                    config.stop_at_full_accuracy
                    and test
                    and _is_perfect(network, losses, per_epoch, test, config)
                ):
                    break
                if state is not None:
                    state.save_if_due(changing, losses, device, time.perf_counter() - start)
            if config.stop_loss is not None and done % WINDOW == 0:
                if float(torch.stack(losses[-WINDOW:]).mean()) <= config.stop_loss:
                    break
    losses = torch.stack(losses).cpu()
    require_finite(losses, label)
    losses = torch.cat([losses, losses.new_full((total - len(losses),), torch.nan)])
    network.eval()
    accuracies = evaluated(network, datasets, config, device)
    seconds = time.perf_counter() - start + (state.seconds if state else 0.0)
    return TrainingResult(*accuracies, losses, torch.tensor(seconds))


def evaluated(
    network: nn.Module,
    datasets: tuple[Dataset, Dataset | None],
    config: TrainConfig,
    device: torch.device,
    batch_size: int = 250,
) -> tuple[Tensor, Tensor | None]:
    """Return the accuracies on a training and a test set, in the precision of the training."""
    train, test = datasets
    with config.autocast(device):
        test_accuracy = None if test is None else torch.tensor(accuracy(network, test, batch_size))
        return torch.tensor(accuracy(network, train, batch_size)), test_accuracy


def _identity(network: nn.Module, train: Dataset, config: TrainConfig, weights: Tensor) -> Facts:
    """Return what identifies a training, but for the values of images and initial weights, as plain
    values.
    """
    options = {name: plain(value) for name, value in asdict(config).items()}
    options |= {"device": weights.device.type, "dtype": str(weights.dtype)}
    shapes = {name: list(tensor.shape) for name, tensor in state_of(network).items()}
    labels = fingerprint(train[1].cpu().numpy())
    return {"config": options, "images": list(train[0].shape), "labels": labels, "network": shapes}


def require_classifier(
    network: nn.Module, train: Dataset, recipe: Recipe, test: Dataset | None = None
) -> None:
    """Raise a ValueError unless a network can be trained on images, in batches of any size, to tell
    all labels.
    """
    parameters = {name: p for name, p in network.named_parameters() if p.requires_grad}
    kinds = {p.dtype for p in parameters.values()}
    if len(kinds) != 1 or not min(p.is_floating_point() for p in parameters.values()):
        names = ", ".join(f"{name} {p.dtype}" for name, p in list(parameters.items())[:5])
        raise ValueError(
            f"trainable weights of one floating-point type are needed, got {names or 'none'}"
        )
    # Those of training would show in the loss
    if test is not None and not test[0].isfinite().all():
        raise ValueError(
            "test images have values that are NaN or infinite: repair them, or leave them out"
        )
    images = train[0][:1].to(next(iter(parameters.values())), copy=True)
    labels = [data[1] for data in (train, test) if data is not None]
    least, most = min(int(each.min()) for each in labels), max(int(each.max()) for each in labels)
    with seeded(0, images.device), torch.no_grad():
        network.eval()
        logits = outputs_of(network, images)
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != 1:
            raise ValueError(
                "the network must map (N, C, H, W) to logits (N, classes), "
                f"but for N = 1 returned {shape}"
            )
        if most >= logits.shape[1]:
            raise ValueError(
                f"labels are from {least} to {most}, "
                f"but the network has {logits.shape[1]} outputs, from 0"
            )
        if len(train[0]) % recipe.batch_size == 1:  # of no use to a batch normalisation
            trained = copy.deepcopy(network)
            trained.train()
            try:
                trained(images)
            except ValueError as error:
                sizes = (
                    f"the last of {len(train[0]):,} images is a batch of its own "
                    f"(batch_size={recipe.batch_size})"
                )
                raise ValueError(
                    f"{sizes}, which the network rejects: {error}. Choose another batch_size"
                ) from error


def outputs_of(network: nn.Module, images: Tensor) -> object:
    """Return a network's outputs; raise a ValueError with the shape if it rejects the images."""
    try:
        return network(images)
    except (RuntimeError, AssertionError) as error:
        shape = " × ".join(map(str, images.shape[1:]))
        remedy = "pass a function that returns a network for this shape"
        raise ValueError(f"the network rejects images of {shape}: {remedy} ({error})") from error


class Trainee:
    """A network with its training set, and the step of its training; all tensors stay where they
    are.

    Args:
        network: network that is trained in place.
        train: images (N, C, H, W), which are converted to the type of the weights, and labels (N,).
        config: options of the training.
        device: device of the training.
    """

    def __init__(
        self, network: nn.Module, train: Dataset, config: TrainConfig, device: torch.device
    ):
        self.network, self.config, self.device = network.to(device), config, device
        network.train()
        self.layout = torch.channels_last if config.mixed_precision else torch.contiguous_format
        self.weights, self.gradients = _flatten(
            network, bool(config.mixed_precision) and device.type == "cuda"
        )
        self.momenta = torch.zeros_like(self.weights)
        self.data = train[0].to(self.weights), train[1].to(device, torch.long)

    @property
    def changing(self) -> dict[str, Tensor]:
        """All tensors that a step changes, by name."""
        return {
            "weights": self.weights,
            "momenta": self.momenta,
            **dict(self.network.named_buffers()),
        }

    def step(self, batch: Tensor, rate: float | Tensor) -> Tensor:
        """Take a step on the samples (n,), and return the loss before it."""
        images, labels = self.data
        with self.config.autocast(self.device):
            # (n, C, H, W) -> (n, classes)
            logits = self.network(images[batch].contiguous(memory_format=self.layout))
        loss = F.cross_entropy(logits.to(images.dtype), labels[batch])
        self.gradients.zero_()
        loss.backward()
        descend(self.weights, self.gradients, self.momenta, self.config.recipe, rate)
        return loss.detach()


def _flatten(network: nn.Module, channels_last: bool) -> tuple[Tensor, Tensor]:
    """Move weights into one vector and their gradients into another; return both, (P,).

    With ``channels_last`` the filters (O, C, h, w) lie there as (O, h, w, C), in the layout of
    their images.
    """
    parameters = [p for p in network.parameters() if p.requires_grad]

    def ordered(tensor: Tensor) -> Tensor:
        return tensor.permute(0, 2, 3, 1) if channels_last and tensor.dim() == 4 else tensor

    def restored(row: Tensor, like: Tensor) -> Tensor:
        values = row.view(ordered(like).shape)
        return values.permute(0, 3, 1, 2) if channels_last and like.dim() == 4 else values

    weights = torch.cat([ordered(p.detach()).flatten() for p in parameters])
    gradients = torch.zeros_like(weights)
    sizes = [p.numel() for p in parameters]
    for p, weight, gradient in zip(
        parameters, weights.split(sizes), gradients.split(sizes), strict=True
    ):
        p.data, p.grad = restored(weight, p), restored(gradient, p)
    return weights, gradients


def _captured(trainee: Trainee, batch_size: int) -> Callable[[Tensor, float | Tensor], Tensor]:
    """Return a step that runs full batches as a CUDA graph; smaller batches run without it."""
    indices = torch.arange(batch_size, device=trainee.device)
    rate = torch.zeros((), device=trainee.device)
    call = capture(
        lambda: trainee.step(indices, rate), list(trainee.changing.values()), trainee.device
    )

    def replay(batch: Tensor, value: float | Tensor) -> Tensor:
        if len(batch) != batch_size:
            return trainee.step(batch, value)
        indices.copy_(batch)
        rate.fill_(value)
        return call().clone()

    return replay


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
    with config.autocast(means.device):
        return accuracy(network, test) == 1


def progress_bar(total: int, label: str, unit: str, show: bool) -> tqdm[NoReturn]:
    """Return a tqdm bar that shows the remaining time."""
    from tqdm import tqdm

    return tqdm(total=total, desc=label, unit=unit, disable=not show, mininterval=0.5, leave=False)
