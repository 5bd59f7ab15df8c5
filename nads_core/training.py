"""Training: one network of any size, or several small ones in one vectorised step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional as F

from nads_core.architectures import Architecture
from nads_core.ensembles import Ensemble
from nads_core.seeds import seed_sequence

Dataset = tuple[Tensor, Tensor]  # images (N, C, H, W) and labels (N,)


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
        if not (self.epochs > 0 and self.batch_size > 0 and self.learning_rate > 0 and self.clip_norm > 0):
            raise ValueError(f"epochs, batch_size, learning_rate and clip_norm must be positive, got {self}")

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
        losses: (steps,), the training loss of each batch before its step.
    """

    train_accuracy: Tensor
    test_accuracy: Tensor | None
    losses: Tensor

    def iterations_to(self, loss: float, window: int = 20) -> Tensor:
        """Return the first step at which the mean of the last ``window`` losses is at most ``loss``; -1 for never."""
        window = min(window, self.losses.shape[-1])
        running = self.losses.unfold(-1, window, 1).mean(-1)
        reached = running <= loss
        first = reached.int().argmax(-1) + window
        return torch.where(reached.any(-1), first, -1)


def accuracy_interval(accuracy: float, num_samples: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's score interval of an accuracy measured on ``num_samples`` samples (95 % by default)."""
    if not (0 <= accuracy <= 1 and num_samples > 0):
        raise ValueError(f"expected an accuracy in [0, 1] and a positive count, got {accuracy} and {num_samples}")
    centre = accuracy + z**2 / (2 * num_samples)
    spread = z * math.sqrt(accuracy * (1 - accuracy) / num_samples + (z / (2 * num_samples)) ** 2)
    scale = 1 + z**2 / num_samples
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def _check(data: Dataset, name: str) -> None:
    images, labels = data
    if images.dim() != 4 or labels.shape != images.shape[:1] or labels.dtype.is_floating_point:
        raise ValueError(
            f"{name} must be images (N, C, H, W) and integer labels (N,), got "
            f"{tuple(images.shape)} and {tuple(labels.shape)} {labels.dtype}"
        )


def _batches(num_samples: int, recipe: Recipe, seed: int) -> Iterator[Tensor]:
    """Yield the sample indices of every step: a new order in each epoch."""
    generator = torch.Generator().manual_seed(seed_sequence(seed))
    for _ in range(recipe.epochs):
        yield from torch.randperm(num_samples, generator=generator).split(recipe.batch_size)


def _progress(steps: Iterator[Tensor], total: int, label: str, show: bool) -> Iterator[Tensor]:
    from tqdm import tqdm

    return tqdm(steps, total=total, desc=label, unit="step", disable=not show, mininterval=0.5, leave=False)


def accuracy(network: nn.Module, data: Dataset, batch_size: int = 1_000) -> float:
    """Return the share of samples that a network classifies correctly, in eval mode."""
    device = next(network.parameters()).device
    training = network.training
    network.eval()
    with torch.no_grad():
        parts = zip(*(tensor.split(batch_size) for tensor in data), strict=True)
        correct = sum(int((network(x.to(device)).argmax(1).cpu() == y.cpu()).sum()) for x, y in parts)
    network.train(training)
    return correct / len(data[0])


def train_network(
    network: nn.Module,
    train: Dataset,
    test: Dataset | None = None,
    *,
    recipe: Recipe = CIFAR10_RECIPE,
    seed: int = 0,
    device: torch.device | str | None = None,
    label: str = "training",
    progress: bool = True,
) -> TrainingResult:
    """Train one network in place with cross-entropy.

    Args:
        network: maps (N, C, H, W) to logits (N, classes).
        train: images and labels.
        test: images and labels to measure the accuracy on, after training.
        recipe: the paper's for CIFAR-10 by default.
        seed: fixes the order of the samples (and dropout, through torch's own generator, which is restored).
        device: by default a GPU if there is one.
        label: what the progress bar says.
        progress: show it.

    Raises:
        ValueError: for data of the wrong shape, or a loss that became NaN.
    """
    _check(train, "train")
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    network.to(device).train()
    images, labels = (tensor.to(device) for tensor in train)
    optimizer = torch.optim.SGD(
        network.parameters(), recipe.learning_rate, recipe.momentum, weight_decay=recipe.weight_decay
    )
    total = recipe.num_steps(len(images))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / total)
    losses = []
    with torch.random.fork_rng():
        torch.manual_seed(seed_sequence(seed, 1))
        for batch in _progress(_batches(len(images), recipe, seed), total, label, progress):
            batch = batch.to(device)
            loss = F.cross_entropy(network(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
            optimizer.step()
            schedule.step()
            losses.append(loss.detach())
    losses = torch.stack(losses).cpu()
    _require_finite(losses)
    network.eval()
    test_accuracy = None if test is None else torch.tensor(accuracy(network, test))
    return TrainingResult(torch.tensor(accuracy(network, train)), test_accuracy, losses)


def _require_finite(losses: Tensor) -> None:
    finite = losses.isfinite()
    if not finite.all():
        step = int((~finite).any(0).nonzero()[0]) if losses.dim() > 1 else int((~finite).nonzero()[0])
        raise ValueError(f"the training loss became NaN or infinite at step {step}: lower the learning rate")


def train_networks(
    architecture: Architecture | Callable[[], nn.Module],
    datasets: Sequence[Dataset],
    test_datasets: Sequence[Dataset] | None = None,
    *,
    recipe: Recipe = SEPARABLE_RECIPE,
    num_classes: int = 2,
    seed: int = 0,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
    progress: bool = True,
) -> TrainingResult:
    """Train one small network on each dataset, all in the same vectorised steps.

    Network b starts from the b-th weights that `Ensemble` draws from ``seed``; all see their samples in one order.

    Args:
        architecture: one of ours, or a function that returns a new network with ``num_classes`` outputs.
        datasets: B training sets of one size, images (N, C, H, W) and labels (N,) each.
        test_datasets: B test sets of one size.
        recipe: the paper's for D(v) by default.
        num_classes: of the networks that ``architecture`` builds.
        seed: fixes initial weights and the order of the samples.
        device: by default a GPU if there is one.
        dtype: of weights and images.
        progress: show a progress bar.

    Returns:
        Fields of shape (B, ...).

    Raises:
        ValueError: if there is no dataset, if their sizes differ, or a loss became NaN.
    """
    if not datasets or (test_datasets is not None and len(test_datasets) != len(datasets)):
        raise ValueError(
            f"got {len(datasets)} training and {len(test_datasets or [])} test sets: give one of each a network"
        )
    for data in (*datasets, *(test_datasets or ())):
        _check(data, "every dataset")
    if len({data[0].shape for data in datasets}) > 1:
        raise ValueError(f"training sets differ in shape: {sorted({tuple(data[0].shape) for data in datasets})}")
    image_shape = tuple(datasets[0][0].shape[1:])
    factory = architecture
    if isinstance(architecture, Architecture):
        factory = lambda: architecture.build(image_shape[0], image_shape[1], num_classes)  # noqa: E731
    ensemble = Ensemble(factory, image_shape, seed=seed, device=device, dtype=dtype)
    network, count = ensemble.template.train(), len(datasets)
    state = ensemble.stack(count)
    names = {name for name, _ in network.named_parameters()}
    weights = {name: tensor for name, tensor in state.items() if name in names}
    buffers = {name: tensor for name, tensor in state.items() if name not in names}
    momenta = {name: torch.zeros_like(tensor) for name, tensor in weights.items()}

    images = torch.stack([data[0] for data in datasets]).to(ensemble.device, dtype)
    labels = torch.stack([data[1] for data in datasets]).to(ensemble.device)

    def loss(weights: dict, buffers: dict, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(network, weights | buffers, (x,)), y)

    step_all = vmap(grad_and_value(loss), randomness="different")
    total, losses = recipe.num_steps(images.shape[1]), []
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed_sequence(seed, 1))
        steps = _progress(_batches(images.shape[1], recipe, seed), total, f"training {count} networks", progress)
        for step, batch in enumerate(steps):
            batch = batch.to(ensemble.device)
            gradients, value = step_all(weights, buffers, images[:, batch], labels[:, batch])
            losses.append(value)
            norm = sum(g.flatten(1).square().sum(1) for g in gradients.values()).sqrt()
            scale = (recipe.clip_norm / (norm + 1e-6)).clamp(max=1)
            for name, gradient in gradients.items():
                gradient = gradient * scale.view(-1, *[1] * (gradient.dim() - 1))
                gradient.add_(weights[name], alpha=recipe.weight_decay)
                momenta[name].mul_(recipe.momentum).add_(gradient)
                weights[name].sub_(momenta[name], alpha=recipe.rate(step, total))
    losses = torch.stack(losses, 1).cpu()
    _require_finite(losses)

    network.eval()
    single = {name: tensor for name, tensor in (weights | buffers).items()}

    def accuracies(data: Sequence[Dataset]) -> Tensor:
        values = []
        for b, (x, y) in enumerate(data):
            network.load_state_dict({name: tensor[b] for name, tensor in single.items()})
            values.append(accuracy(network, (x.to(dtype), y)))
        return torch.tensor(values)

    return TrainingResult(accuracies(datasets), None if test_datasets is None else accuracies(test_datasets), losses)
