"""Training: one network, or many of one architecture, each on a dataset of its own, by the fastest path of the device.

On a CPU every core trains one network on one thread; on a GPU small networks share one vectorised step, and the step
of a large one is captured as a CUDA graph. Every path does the same arithmetic, and network b starts from the same
weights on all of them.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn import functional as F

from nads_core.architectures import Architecture
from nads_core.kernels import faster_max_pooling
from nads_core.seeds import seed_sequence, seeded
from nads_core.separable import SeparableDatasets

Dataset = tuple[Tensor, Tensor]  # images (N, C, H, W) and labels (N,)
METHODS = ("auto", "loop", "processes", "vmap", "graph")
_WINDOW = 20  # steps that a running training loss is averaged over
_VMAP_PARAMETERS = 300_000  # larger networks fill a GPU alone
_WORTH_PROCESSES = 4_000  # steps: starting workers takes as long as about 500 steps of a LeNet


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
        losses: (steps,), the training loss of each batch before its step; NaN after training stopped early.
        seconds: wall time of a network (an equal share of it, where several were trained in one step).
        measured: what the ``measure`` given to `train_networks` returned.
    """

    train_accuracy: Tensor
    test_accuracy: Tensor | None
    losses: Tensor
    seconds: Tensor | None = None
    measured: Any = None

    def iterations_to(self, loss: float, window: int = _WINDOW) -> Tensor:
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


def _bar(total: int, label: str, unit: str, show: bool):
    from tqdm import tqdm

    return tqdm(total=total, desc=label, unit=unit, disable=not show, mininterval=0.5, leave=False)


def _default_device(device: torch.device | str | None) -> torch.device:
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


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


def _descend(weights: Tensor, gradients: Tensor, momenta: Tensor, recipe: Recipe, rate: float | Tensor) -> None:
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
    recipe: Recipe = CIFAR10_RECIPE,
    seed: int = 0,
    device: torch.device | str | None = None,
    mixed_precision: bool = False,
    captured: bool | None = None,
    stop_loss: float | None = None,
    timeout: float | None = None,
    label: str = "training",
    progress: bool = True,
) -> TrainingResult:
    """Train one network in place with cross-entropy.

    Args:
        network: maps (N, C, H, W) to logits (N, classes).
        train: images and labels.
        test: images and labels to measure the accuracy on, after training.
        recipe: the paper's for CIFAR-10 by default.
        seed: fixes the order of the samples (and dropout, through torch's own generators, which are restored).
        device: by default a GPU if there is one.
        mixed_precision: run the layers in bfloat16 and channels last; weights and their updates stay as they are.
        captured: record the step as a CUDA graph; by default on a GPU.
        stop_loss: stop when the mean of the last 20 losses is at most this.
        timeout: seconds after which to give up.
        label: what the progress bar says.
        progress: show it.

    Raises:
        ValueError: for data of the wrong shape, or a loss that became NaN.
        TrainingTimeout: after ``timeout`` seconds.
    """
    with seeded(seed_sequence(seed, 1)):
        return _train(
            network, train, test, recipe, seed, _default_device(device), mixed_precision=mixed_precision,
            captured=captured, stop_loss=stop_loss, timeout=timeout, label=label, progress=progress,
        )  # fmt: skip


def _train(
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
    timeout: float | None = None,
    label: str = "training",
    progress: bool = False,
) -> TrainingResult:
    """Train one network in place; dropout draws from torch's generators as they stand."""
    _check(train, "train")
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
        _descend(weights, gradients, momenta, recipe, rate)
        return loss.detach()

    if captured or (captured is None and device.type == "cuda"):
        step = _capture(step, min(recipe.batch_size, len(images)), [weights, momenta, *network.buffers()])
    total, losses = recipe.num_steps(len(images)), []
    with _bar(total, label, "step", progress) as bar:
        for number, batch in enumerate(_batches(len(images), recipe, seed)):
            rate = recipe.rate(number, total)
            losses.append(step(batch.to(device), rate if device.type == "cpu" else torch.tensor(rate)))
            bar.update()
            if timeout is not None and time.perf_counter() - start > timeout:
                raise TrainingTimeout(f"{label} took longer than {timeout:.0f} s: {number + 1} of {total} steps done")
            full = stop_loss is not None and (number + 1) % _WINDOW == 0
            if full and float(torch.stack(losses[-_WINDOW:]).mean()) <= stop_loss:
                break
    losses = torch.stack(losses).cpu()
    _require_finite(losses)
    losses = torch.cat([losses, losses.new_full((total - len(losses),), torch.nan)])
    with torch.autocast(device.type, torch.bfloat16, enabled=mixed_precision):
        test_accuracy = None if test is None else torch.tensor(accuracy(network.eval(), test))
        train_accuracy = torch.tensor(accuracy(network.eval(), train))
    return TrainingResult(train_accuracy, test_accuracy, losses, torch.tensor(time.perf_counter() - start))


def _require_finite(losses: Tensor) -> None:
    finite = losses.isfinite()
    if not finite.all():
        step = int((~finite).any(0).nonzero()[0]) if losses.dim() > 1 else int((~finite).nonzero()[0])
        raise ValueError(f"the training loss became NaN or infinite at step {step}: lower the learning rate")


@dataclass(frozen=True)
class _Job:
    """Everything that is common to the networks of one call of `train_networks`; workers get a copy."""

    factory: Callable[[], nn.Module]
    recipe: Recipe
    seed: int
    device: torch.device
    dtype: torch.dtype
    mixed_precision: bool
    captured: bool
    stop_loss: float | None
    measure: Callable[[nn.Module], Any] | None

    def network(self, number: int) -> nn.Module:
        """Return the network with a given number: its first weights follow from the seed and the number alone."""
        with seeded(seed_sequence(self.seed, 2, number)):
            network = self.factory()
        if not isinstance(network, nn.Module):
            raise TypeError(f"the factory must return a torch.nn.Module, got {type(network).__name__}")
        return network.to(self.dtype)

    def train(self, number: int, train: Dataset, test: Dataset | None, **options) -> TrainingResult:
        """Train network ``number`` on its own data."""
        network = self.network(number)
        if self.device.type == "cpu" and not self.mixed_precision:
            network = faster_max_pooling(network)
        train, test = self.cast(train), self.cast(test)
        with seeded(seed_sequence(self.seed, 3, number)):
            result = _train(
                network, train, test, self.recipe, self.seed, self.device, mixed_precision=self.mixed_precision,
                captured=self.captured, stop_loss=self.stop_loss, **options,
            )  # fmt: skip
        return result if self.measure is None else replace(result, measured=self.measure(network))

    def cast(self, data: Dataset | None) -> Dataset | None:
        """Give images the type of the weights."""
        return data and (data[0].to(self.dtype), data[1])


def train_networks(
    architecture: Architecture | Callable[[], nn.Module],
    datasets: Sequence[Dataset],
    test_datasets: Sequence[Dataset] | None = None,
    *,
    recipe: Recipe = SEPARABLE_RECIPE,
    num_classes: int = 2,
    seed: int = 0,
    numbers: Sequence[int] | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
    mixed_precision: bool | None = None,
    method: str = "auto",
    workers: int | None = None,
    stop_loss: float | None = None,
    timeout: float | None = None,
    measure: Callable[[nn.Module], Any] | None = None,
    on_result: Callable[[int, TrainingResult], None] | None = None,
    progress: bool = True,
) -> TrainingResult:
    """Train one network on each of B datasets, as many at a time as the device is fastest with.

    Network b is a function of ``seed`` and its number alone, whatever is trained beside it; all see their samples
    in one order.

    Args:
        architecture: one of ours, or a function that returns a new network with ``num_classes`` outputs.
        datasets: B training sets, for example `SeparableDatasets`; item b is images (N, C, H, W) and labels (N,). An
            item is asked for only when its network is due.
        test_datasets: B test sets.
        recipe: the paper's for D(v) by default.
        num_classes: of the networks that ``architecture`` builds.
        seed: fixes initial weights and the order of the samples.
        numbers: of the networks, in place of 0 to B - 1: to train some of a larger family.
        device: by default a GPU if there is one.
        dtype: of weights and images.
        mixed_precision: run the layers in bfloat16; by default on a GPU that has it, for float32 weights.
        method: "processes" trains one network a core, each on one thread; "vmap" all in one vectorised step; "graph"
            one after another, its step captured as a CUDA graph; "loop" one after another. "auto" takes processes
            on a CPU, vmap for small and graph for large networks on CUDA.
        workers: of method "processes"; by default the number of cores that this process may use.
        stop_loss: stop a network when the mean of its last 20 losses is at most this (never with "vmap").
        timeout: seconds. A network that would not be ready by then is not begun, and one that isn't is abandoned.
        measure: called with each network after its training (in its worker); what it returns becomes ``measured``.
        on_result: called with b and its result as soon as network b is ready.
        progress: show a progress bar.

    Returns:
        Fields of shape (B, ...).

    Raises:
        ValueError: if there is no dataset, if data don't fit the network, or a loss became NaN.
        TrainingTimeout: after ``timeout`` seconds.
    """
    count = len(datasets)
    if not count or (test_datasets is not None and len(test_datasets) != count):
        raise ValueError(f"got {count} training and {len(test_datasets or [])} test sets: give one of each a network")
    numbers = list(range(count)) if numbers is None else list(numbers)
    if len(numbers) != count:
        raise ValueError(f"got {count} datasets and {len(numbers)} numbers: give one a network")
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose from {METHODS}")
    device = _default_device(device)
    if mixed_precision is None:
        mixed_precision = device.type == "cuda" and dtype == torch.float32 and torch.cuda.is_bf16_supported()
    shape = tuple(datasets.image_shape if hasattr(datasets, "image_shape") else datasets[0][0].shape[1:])
    factory = architecture
    if isinstance(architecture, Architecture):
        factory = partial(architecture.build, shape[0], shape[1], num_classes)
    job = _Job(factory, recipe, seed, device, dtype, mixed_precision, False, stop_loss, measure)
    method = _fastest(job, datasets, count) if method == "auto" else method
    results: dict[int, TrainingResult] = {}
    label = f"training {count} networks" if count > 1 else "training"

    def done(b: int, result: TrainingResult) -> None:
        results[b] = result
        if on_result:
            on_result(b, result)

    deadline = None if timeout is None else time.monotonic() + timeout
    if method == "vmap":
        _train_vectorised(job, numbers, datasets, test_datasets, deadline, label, progress, done)
    elif method == "processes":
        workers = min(workers or len(os.sched_getaffinity(0)), count)
        _train_in_processes(job, numbers, datasets, test_datasets, workers, deadline, label, progress, done)
    else:
        job = replace(job, captured=method == "graph")
        _train_in_turn(job, numbers, datasets, test_datasets, deadline, label, progress, done)
    return _stacked([results[b] for b in range(count)])


def _fastest(job: _Job, datasets: Sequence[Dataset], count: int) -> str:
    if job.device.type == "cuda":
        size = sum(p.numel() for p in job.network(0).parameters())
        return "vmap" if size <= _VMAP_PARAMETERS and job.stop_loss is None else "graph"
    samples = getattr(datasets, "num_samples", None) or len(datasets[0][1])
    steps = count * job.recipe.num_steps(samples)
    worth = job.device.type == "cpu" and count > 1 and steps >= _WORTH_PROCESSES
    return "processes" if worth and len(os.sched_getaffinity(0)) > 1 else "loop"


def _stacked(results: list[TrainingResult]) -> TrainingResult:
    columns = {name: [getattr(result, name) for result in results] for name in vars(results[0])}
    measured = columns.pop("measured")
    stacked = {name: None if column[0] is None else torch.stack(column) for name, column in columns.items()}
    return TrainingResult(**stacked, measured=None if measured[0] is None else measured)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()


def _train_in_turn(job, numbers, datasets, tests, deadline, label, progress, done) -> None:
    typical = 0.0  # seconds that a network takes
    for b, number in enumerate(numbers):
        if deadline is not None and _left(deadline) < typical:
            raise TrainingTimeout(f"{b} of {len(numbers)} networks are trained; the next would take {typical:.0f} s")
        name = label if len(numbers) == 1 else f"network {b + 1} of {len(numbers)}"
        result = job.train(
            number, datasets[b], tests and tests[b], timeout=_left(deadline), label=name, progress=progress
        )
        typical = float(result.seconds)
        done(b, result)


def _quiet_worker() -> None:
    """Leave Ctrl-C to the parent, which ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


# Idle threads sleep, and freed memory stays with the process: a step's tensors are mapped once, not at every step.
_WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:"
    "glibc.malloc.trim_threshold=2147483647:glibc.malloc.top_pad=67108864",
}


def _train_item(job: _Job, number: int, datasets, tests, b: int) -> TrainingResult:
    return job.train(number, datasets[b], tests and tests[b])


def _train_in_processes(job, numbers, datasets, tests, workers, deadline, label, progress, done) -> None:
    from loky import get_reusable_executor

    pool = get_reusable_executor(workers, env=_WORKER_ENVIRONMENT, initializer=_quiet_worker, reuse=True)
    waiting, running, typical = list(range(len(numbers)))[::-1], {}, 0.0
    lazy = isinstance(datasets, SeparableDatasets) or hasattr(datasets, "in_worker")
    finished = False
    try:
        with _bar(len(numbers), label, "network", progress) as bar:
            while waiting or running:
                late = deadline is not None and _left(deadline) < typical
                while waiting and len(running) < workers and not late:
                    b = waiting.pop()
                    items = (datasets, tests, b) if lazy else ([datasets[b]], tests and [tests[b]], 0)
                    running[pool.submit(_train_item, job, numbers[b], *items)] = b
                if not running:
                    break
                ready, _ = wait(running, timeout=None if deadline is None else max(0, _left(deadline)),
                                return_when=FIRST_COMPLETED)  # fmt: skip
                if not ready:
                    break
                for future in ready:
                    result = future.result()
                    typical = float(result.seconds)
                    done(running.pop(future), result)
                    bar.update()
        finished = not waiting and not running
    finally:
        if not finished:
            pool.shutdown(kill_workers=True)
    if not finished:
        count = len(numbers) - len(waiting) - len(running)
        raise TrainingTimeout(f"{count} of {len(numbers)} networks were trained in time")


def _train_vectorised(job, numbers, datasets, tests, deadline, label, progress, done) -> None:
    waiting = list(range(len(numbers)))
    size = len(waiting)
    start_all = time.monotonic()
    while waiting:
        group, waiting = waiting[:size], waiting[size:]
        try:
            _train_group(job, group, [numbers[b] for b in group], datasets, tests, deadline, label, progress, done)
        except torch.OutOfMemoryError:
            if len(group) == 1:
                raise
            waiting, size = group + waiting, len(group) // 2
        typical = (time.monotonic() - start_all) / (len(numbers) - len(waiting)) if len(waiting) < len(numbers) else 0
        if waiting and deadline is not None and _left(deadline) < typical * min(size, len(waiting)):
            raise TrainingTimeout(f"{len(numbers) - len(waiting)} of {len(numbers)} networks were trained in time")


def _train_group(job, group, numbers, datasets, tests, deadline, label, progress, done) -> None:
    """Train the networks ``group`` in one vectorised step."""
    start, recipe, device = time.perf_counter(), job.recipe, job.device
    networks = [job.network(number).to(device).train() for number in numbers]
    network = networks[0]
    parameters, buffers = stack_module_state(networks)
    shapes = {name: tensor.shape for name, tensor in parameters.items()}
    sizes = [math.prod(shape[1:]) for shape in shapes.values()]
    weights = torch.cat([tensor.detach().flatten(1) for tensor in parameters.values()], 1)  # (B, P)
    momenta = torch.zeros_like(weights)
    parts = {n: w.view(shapes[n]) for n, w in zip(shapes, weights.split(sizes, 1), strict=True)}

    if isinstance(datasets, SeparableDatasets):
        labels = datasets.labels.to(device)
        batch_of = lambda samples: (  # noqa: E731
            datasets.batch(group, samples, device, job.dtype),
            labels[samples].expand(len(group), -1),
        )
    else:
        sets = [job.cast(datasets[b]) for b in group]
        for data in sets:
            _check(data, "every dataset")
        if len({x.shape for x, _ in sets}) > 1:
            raise ValueError(f"training sets differ in shape: {sorted({tuple(x.shape) for x, _ in sets})}")
        images = torch.stack([x for x, _ in sets]).to(device)
        labels = torch.stack([y for _, y in sets]).to(device)
        batch_of = lambda samples: (images[:, samples], labels[:, samples])  # noqa: E731

    def loss(weights: dict, buffers: dict, x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=job.mixed_precision):
            logits = functional_call(network, weights | buffers, (x,))
        return F.cross_entropy(logits.to(x.dtype), y)

    step = vmap(grad_and_value(loss), randomness="different")
    count = datasets.num_samples if isinstance(datasets, SeparableDatasets) else images.shape[1]
    total, losses = recipe.num_steps(count), []
    with seeded(seed_sequence(job.seed, 3, numbers[0])), torch.no_grad(), _bar(total, label, "step", progress) as bar:
        for index, samples in enumerate(_batches(count, recipe, job.seed)):
            gradients, value = step(parts, buffers, *batch_of(samples.to(device)))
            losses.append(value)
            flat = torch.cat([gradients[name].flatten(1) for name in shapes], 1)
            _descend(weights, flat, momenta, recipe, recipe.rate(index, total))
            bar.update()
            if deadline is not None and _left(deadline) < 0:
                raise TrainingTimeout(f"the time limit came at step {index + 1} of {total} of {len(group)} networks")
    losses = torch.stack(losses, 1).cpu()
    _require_finite(losses)
    for row, b in enumerate(group):
        network.load_state_dict({name: tensor[row] for name, tensor in (parts | buffers).items()})
        accuracies = [None if part is None else torch.tensor(accuracy(network.eval(), job.cast(part[b])))
                      for part in (datasets, tests)]  # fmt: skip
        seconds = torch.tensor((time.perf_counter() - start) / len(group))
        measured = job.measure and job.measure(network)
        done(b, TrainingResult(*accuracies, losses[row], seconds, measured))
