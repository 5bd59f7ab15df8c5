"""Training one network."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nads_core.runtime.arguments import usable_device
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.accuracies import accuracy
from nads_core.training.cuda_graph import capture
from nads_core.training.datasets import Dataset, require_dataset
from nads_core.training.interrupted import TrainingState
from nads_core.training.recipes import Recipe, batches, descend
from nads_core.training.result import WINDOW, TrainingResult, TrainingTimeout, require_finite

if TYPE_CHECKING:
    from tqdm import tqdm

_HOPEFUL = 0.1  # mean loss of an epoch, without which hardly all test images are right


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
        train: images (N, C, H, W) and labels (N,).
        test: images and labels of the same kind to measure the accuracy on, after training.
        recipe: `CIFAR10_RECIPE` and `SEPARABLE_RECIPE` are the paper's, for photos and for D(v).
        seed: seed of the order of samples (and of dropout, through torch's own generators, which are restored).
        device: device of the network; a GPU if available by default.
        mixed_precision: whether layers run in bfloat16 and channels last; weights and their updates keep their type.
        captured: record the step as a CUDA graph; by default on a GPU.
        stop_loss: loss at which training stops, as the mean of the last 20 steps.
        stop_perfect: whether training stops after an epoch that lowered the mean loss, if then every test image is
            classified correctly. The test set thus decides when to stop, so an accuracy of 1 is slightly optimistic.
        timeout: seconds after which to give up.
        label: label of the progress bar.
        progress: whether to show a progress bar.

    Returns:
        Accuracies of the trained network, which stays in ``network``, the losses (steps,), and the seconds.

    Raises:
        ValueError: for data of the wrong shape, ``stop_perfect`` without a test set, a device that is not there or
            cannot capture, or a loss that became NaN, at the end of that epoch.
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

    With a ``state`` it resumes an interrupted call, with the numbers of an uninterrupted one.
    """
    require_dataset(train, "train")
    if stop_perfect and test is None:
        raise ValueError("stop_perfect waits until no test image is wrong: give a test set")
    if captured and device.type != "cuda":
        raise ValueError(f"a step is captured as a CUDA graph on a GPU alone, got {device}: take another method")
    start = time.perf_counter()
    layout = torch.channels_last if mixed_precision else torch.contiguous_format
    network.to(device).train()
    images, labels = (tensor.to(device) for tensor in train)
    weights, gradients = _flatten(network)
    momenta = torch.zeros_like(weights)

    def step(batch: Tensor, rate: float | Tensor) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed_precision):
            logits = network(images[batch].contiguous(memory_format=layout))  # (n, C, H, W) -> (n, classes)
        loss = F.cross_entropy(logits.to(images.dtype), labels[batch])
        gradients.zero_()
        loss.backward()
        descend(weights, gradients, momenta, recipe, rate)
        return loss.detach()

    if captured or (captured is None and device.type == "cuda"):
        size = min(recipe.batch_size, len(images))
        step = capture(step, size, [weights, momenta, *network.buffers()])  # type: ignore[assignment]  # rates are tensors
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
            if ended:  # a training that is lost is neither gone on with nor kept
                require_finite(torch.stack(losses[-per_epoch:]), number + 1 - per_epoch)
            if ended and stop_perfect and test and _is_perfect(network, losses, per_epoch, test, mixed_precision):
                break
            if ended and state is not None:
                state.save_if_due(changing, losses, device, time.perf_counter() - start)
            full = (number + 1) % WINDOW == 0
            if stop_loss is not None and full and float(torch.stack(losses[-WINDOW:]).mean()) <= stop_loss:
                break
    losses = torch.stack(losses).cpu()
    require_finite(losses)
    losses = torch.cat([losses, losses.new_full((total - len(losses),), torch.nan)])
    with torch.autocast(device.type, torch.bfloat16, enabled=mixed_precision):
        test_accuracy = None if test is None else torch.tensor(accuracy(network.eval(), test))
        train_accuracy = torch.tensor(accuracy(network.eval(), train))
    seconds = time.perf_counter() - start + (state.seconds if state else 0.0)
    return TrainingResult(train_accuracy, test_accuracy, losses, torch.tensor(seconds))


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


def _is_perfect(network: nn.Module, losses: list[Tensor], per_epoch: int, test: Dataset, mixed_precision: bool) -> bool:
    """Whether the last epoch lowered the mean loss, and no test image is wrong after it."""
    if len(losses) < 2 * per_epoch:
        return False
    means = torch.stack(losses[-2 * per_epoch :]).view(2, per_epoch).mean(1)  # of the last two epochs
    before, last = means.tolist()
    # A network that is hardly sure of anything is not worth a look at all test images.
    if last >= min(before, _HOPEFUL):
        return False
    with torch.autocast(means.device.type, torch.bfloat16, enabled=mixed_precision):
        return accuracy(network, test) == 1


def progress_bar(total: int, label: str, unit: str, show: bool) -> tqdm:
    """Return a tqdm bar that shows the time that remains."""
    from tqdm import tqdm

    return tqdm(total=total, desc=label, unit=unit, disable=not show, mininterval=0.5, leave=False)
