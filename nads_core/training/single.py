"""Training one network: the recipe, the step that every path shares, and what training reached."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nads_core.machinery.arguments import require_integers, usable_device
from nads_core.machinery.seeds import seed_sequence, seeded
from nads_core.training.interrupted import TrainingState

Dataset = tuple[Tensor, Tensor]  # images (N, C, H, W) and labels (N,)
WINDOW = 20  # steps that a running training loss is averaged over
_HOPEFUL = 0.1  # mean loss of an epoch, without which hardly all test images are right


@dataclass(frozen=True)
class Recipe:
    """Stochastic gradient descent whose rate falls linearly to zero, step by step, with clipped gradients."""

    epochs: int = 20
    learning_rate: float = 0.5  # at the first step
    batch_size: int = 128
    momentum: float = 0.0
    weight_decay: float = 0.0
    clip_norm: float = 0.5  # the gradient of all weights together is scaled down to this norm

    def __post_init__(self):
        require_integers(epochs=self.epochs, batch_size=self.batch_size)
        if not (self.learning_rate > 0 and self.clip_norm > 0):
            raise ValueError(f"learning_rate and clip_norm must be positive, got {self}")

    def num_steps(self, num_samples: int) -> int:
        """Return the number of steps for a training set of ``num_samples``."""
        return self.epochs * math.ceil(num_samples / self.batch_size)

    def rate(self, step: int, num_steps: int) -> float:
        """Return the learning rate of one step, counted from 0."""
        return self.learning_rate * (1 - step / num_steps)


SEPARABLE_RECIPE = Recipe()  # the paper's for D(v), which holds 10,000 training samples
CIFAR10_RECIPE = Recipe(epochs=50, learning_rate=0.21, momentum=0.9, weight_decay=5e-4)


@dataclass(frozen=True)
class TrainingResult:
    """What training reached; every field has a leading dimension B when B networks were trained.

    Args:
        train_accuracy: on the training set, after training, in eval mode; in [0, 1].
        test_accuracy: on the test set, or None if there is none.
        losses: (steps,), the training loss of each batch before its step; NaN after training stopped early.
        seconds: wall time of a network (an equal share of it, where several were trained in one step).
        measured: what the ``measure`` given to `train_networks` returned.
    """

    train_accuracy: Tensor
    test_accuracy: Tensor | None
    losses: Tensor
    seconds: Tensor | None = None
    measured: Any = None

    def iterations_to(self, loss: float, window: int = WINDOW) -> Tensor:
        """Return the first step at which the mean of the last ``window`` losses is at most ``loss``; -1 for never."""
        window = min(window, self.losses.shape[-1])
        running = self.losses.unfold(-1, window, 1).mean(-1)
        reached = running <= loss
        first = reached.int().argmax(-1) + window
        return torch.where(reached.any(-1), first, -1)


class TrainingTimeout(TimeoutError):
    """Training reached its time limit; what was finished before has been handed to ``on_result``."""


def accuracy_interval(accuracy: float, num_samples: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's score interval of an accuracy measured on ``num_samples`` samples (95 % by default)."""
    if not (0 <= accuracy <= 1 and num_samples > 0):
        raise ValueError(f"expected an accuracy in [0, 1] and a positive count, got {accuracy} and {num_samples}")
    centre = accuracy + z**2 / (2 * num_samples)
    spread = z * math.sqrt(accuracy * (1 - accuracy) / num_samples + (z / (2 * num_samples)) ** 2)
    scale = 1 + z**2 / num_samples
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def difference_interval(first: float, second: float, num_samples: int, z: float = 1.96) -> tuple[float, float]:
    """Return an interval of ``first - second``, two accuracies measured on ``num_samples`` samples each (95 %).

    Newcombe's hybrid of two score intervals (Statistics in Medicine 17, 1998, method 10), for independent samples:
    where both were measured on the same samples, as in the book, it is on the safe side.

    Raises:
        ValueError: for an accuracy outside [0, 1] or a count that is not positive.
    """
    (low, high), (other_low, other_high) = (accuracy_interval(a, num_samples, z) for a in (first, second))
    difference = first - second
    return (
        difference - math.hypot(first - low, other_high - second),
        difference + math.hypot(high - first, second - other_low),
    )


def require_dataset(data: Dataset, name: str) -> None:
    """Raise a ValueError unless data are images and as many integer labels."""
    images, labels = data
    if images.dim() != 4 or labels.shape != images.shape[:1] or labels.dtype.is_floating_point:
        raise ValueError(
            f"{name} must be images (N, C, H, W) and integer labels (N,), got "
            f"{tuple(images.shape)} and {tuple(labels.shape)} {labels.dtype}"
        )


def batches(num_samples: int, recipe: Recipe, seed: int) -> Iterator[Tensor]:
    """Yield the sample indices of every step: a new order in each epoch."""
    generator = torch.Generator().manual_seed(seed_sequence(seed))
    for _ in range(recipe.epochs):
        yield from torch.randperm(num_samples, generator=generator).split(recipe.batch_size)


def progress_bar(total: int, label: str, unit: str, show: bool):
    """Return a tqdm bar that shows the time that remains."""
    from tqdm import tqdm

    return tqdm(total=total, desc=label, unit=unit, disable=not show, mininterval=0.5, leave=False)


def accuracy(network: nn.Module, data: Dataset, batch_size: int = 250) -> float:
    """Return the share of samples that a network classifies correctly, in eval mode."""
    device = next(network.parameters()).device
    training = network.training
    network.eval()
    with torch.no_grad():
        parts = zip(*(tensor.split(batch_size) for tensor in data), strict=True)
        correct = sum(int((network(x.to(device)).argmax(1).cpu() == y.cpu()).sum()) for x, y in parts)
    network.train(training)
    return correct / len(data[0])


def descend(weights: Tensor, gradients: Tensor, momenta: Tensor, recipe: Recipe, rate: float | Tensor) -> None:
    """Take one clipped step on the flat weights (..., P) of one or of many networks, in place."""
    norm = torch.linalg.vector_norm(gradients, dim=-1, keepdim=True)
    gradients.mul_((recipe.clip_norm / (norm + 1e-6)).clamp(max=1))
    gradients.add_(weights, alpha=recipe.weight_decay)
    momenta.mul_(recipe.momentum).add_(gradients)
    weights.sub_(momenta * rate)


def _flatten(network: nn.Module) -> tuple[Tensor, Tensor]:
    """Move a network's weights into one vector, and their gradients into another; return both, (P,)."""
    parameters = [p for p in network.parameters() if p.requires_grad]
    weights = torch.cat([p.detach().flatten() for p in parameters])
    gradients = torch.zeros_like(weights)
    start = 0
    for p in parameters:
        part = slice(start, start + p.numel())
        p.data, p.grad = weights[part].view(p.shape), gradients[part].view(p.shape)
        start = part.stop
    return weights, gradients


def _capture(step: Callable[[Tensor, Tensor], Tensor], batch_size: int, state: list[Tensor]) -> Callable:
    """Record a training step on full batches as a CUDA graph; smaller batches run as they are.

    ``state`` holds everything that a step changes: warming up must leave no trace in it.
    """
    device = state[0].device
    indices = torch.arange(batch_size, device=device)
    rate = torch.zeros((), device=device)
    before = [tensor.clone() for tensor in state]
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(3):
            step(indices, rate)
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(indices, rate)
    for tensor, value in zip(state, before, strict=True):
        tensor.copy_(value)

    def replay(batch: Tensor, value: Tensor) -> Tensor:
        if len(batch) != batch_size:
            return step(batch, value)
        indices.copy_(batch)
        rate.copy_(value)
        graph.replay()
        return loss.clone()

    return replay


def train_network(
    network: nn.Module,
    train: Dataset,
    test: Dataset | None = None,
    *,
    recipe: Recipe,
    seed: int = 0,
    device: torch.device | str | None = None,
    mixed_precision: bool = False,
    captured: bool | None = None,
    stop_loss: float | None = None,
    stop_perfect: bool = False,
    timeout: float | None = None,
    label: str = "training",
    progress: bool = True,
) -> TrainingResult:
    """Train one network in place with cross-entropy.

    Args:
        network: maps (N, C, H, W) to logits (N, classes).
        train: images and labels.
        test: images and labels to measure the accuracy on, after training.
        recipe: `CIFAR10_RECIPE` and `SEPARABLE_RECIPE` are the paper's, for photos and for D(v).
        seed: fixes the order of the samples (and dropout, through torch's own generators, which are restored).
        device: by default a GPU if there is one.
        mixed_precision: run the layers in bfloat16 and channels last; weights and their updates stay as they are.
        captured: record the step as a CUDA graph; by default on a GPU.
        stop_loss: stop when the mean of the last 20 losses is at most this.
        stop_perfect: stop after an epoch whose mean loss is lower than that of the epoch before, if then no test image
            is wrong. The test set decides when to stop, so that an accuracy of 1 is a little too good.
        timeout: seconds after which to give up.
        label: what the progress bar says.
        progress: show it.

    Raises:
        ValueError: for data of the wrong shape, ``stop_perfect`` without a test set, a device that is not there, or a
            loss that became NaN.
        TrainingTimeout: after ``timeout`` seconds.
    """
    device = usable_device(device)
    with seeded(seed_sequence(seed, 1), device):
        return fit(
            network, train, test, recipe, seed, device, mixed_precision=mixed_precision,
            captured=captured, stop_loss=stop_loss, stop_perfect=stop_perfect, timeout=timeout, label=label,
            progress=progress,
        )  # fmt: skip


def fit(
    network: nn.Module,
    train: Dataset,
    test: Dataset | None,
    recipe: Recipe,
    seed: int,
    device: torch.device,
    *,
    mixed_precision: bool = False,
    captured: bool | None = None,
    stop_loss: float | None = None,
    stop_perfect: bool = False,
    timeout: float | None = None,
    label: str = "training",
    progress: bool = False,
    state: TrainingState | None = None,
) -> TrainingResult:
    """Train one network in place; dropout draws from torch's generators as they stand.

    With a ``state`` it goes on where an interrupted call stopped, with the numbers of an uninterrupted one.
    """
    require_dataset(train, "train")
    if stop_perfect and test is None:
        raise ValueError("stop_perfect waits until no test image is wrong: give a test set")
    start = time.perf_counter()
    layout = torch.channels_last if mixed_precision else torch.contiguous_format
    network.to(device).train()
    images, labels = (tensor.to(device) for tensor in train)
    weights, gradients = _flatten(network)
    momenta = torch.zeros_like(weights)

    def step(batch: Tensor, rate: float | Tensor) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed_precision):
            logits = network(images[batch].contiguous(memory_format=layout))
        loss = F.cross_entropy(logits.to(images.dtype), labels[batch])
        gradients.zero_()
        loss.backward()
        descend(weights, gradients, momenta, recipe, rate)
        return loss.detach()

    if captured or (captured is None and device.type == "cuda"):
        step = _capture(step, min(recipe.batch_size, len(images)), [weights, momenta, *network.buffers()])
    changing = {"weights": weights, "momenta": momenta, **dict(network.named_buffers())}
    total, losses = recipe.num_steps(len(images)), [] if state is None else state.restore(changing, device)
    first, per_epoch = len(losses), total // recipe.epochs
    with progress_bar(total, label, "step", progress) as shown:
        shown.update(first)
        for number, batch in enumerate(islice(batches(len(images), recipe, seed), first, None), first):
            rate = recipe.rate(number, total)
            losses.append(step(batch.to(device), rate if device.type == "cpu" else torch.tensor(rate)))
            shown.update()
            if timeout is not None and time.perf_counter() - start > timeout:
                raise TrainingTimeout(f"{label} took longer than {timeout:.0f} s: {number + 1} of {total} steps done")
            ended = (number + 1) % per_epoch == 0 and number + 1 < total
            if ended and stop_perfect and _through(network, losses, per_epoch, test, mixed_precision):
                break
            if ended and state is not None:
                state.save_if_due(changing, losses, device, time.perf_counter() - start)
            full = stop_loss is not None and (number + 1) % WINDOW == 0
            if full and float(torch.stack(losses[-WINDOW:]).mean()) <= stop_loss:
                break
    losses = torch.stack(losses).cpu()
    require_finite(losses)
    losses = torch.cat([losses, losses.new_full((total - len(losses),), torch.nan)])
    with torch.autocast(device.type, torch.bfloat16, enabled=mixed_precision):
        test_accuracy = None if test is None else torch.tensor(accuracy(network.eval(), test))
        train_accuracy = torch.tensor(accuracy(network.eval(), train))
    seconds = time.perf_counter() - start + (state.seconds if state else 0.0)
    return TrainingResult(train_accuracy, test_accuracy, losses, torch.tensor(seconds))


def _through(network: nn.Module, losses: list[Tensor], per_epoch: int, test: Dataset, rounded: bool) -> bool:
    """Whether the last epoch lowered the mean loss, and no test image is wrong after it."""
    if len(losses) < 2 * per_epoch:
        return False
    means = torch.stack(losses[-2 * per_epoch :]).view(2, per_epoch).mean(1)
    before, last = means.tolist()
    # A network that is hardly sure of anything is not worth a look at all test images.
    if last >= min(before, _HOPEFUL):
        return False
    with torch.autocast(means.device.type, torch.bfloat16, enabled=rounded):
        return accuracy(network, test) == 1


def require_finite(losses: Tensor) -> None:
    """Raise a ValueError that names the first step whose loss, (..., steps), is not a number."""
    finite = losses.isfinite()
    if not finite.all():
        step = int((~finite).any(0).nonzero()[0]) if losses.dim() > 1 else int((~finite).nonzero()[0])
        raise ValueError(f"the training loss became NaN or infinite at step {step}: lower the learning rate")
