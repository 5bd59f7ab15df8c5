"""Training many networks of one architecture, each on a dataset of its own, by the fastest path of the device.

On a CPU every core trains one network on one thread; on a GPU small networks share one vectorised step, and the step
of a large one is captured as a CUDA graph. Every path does the same arithmetic, up to rounding, and network b starts
from the same weights on all of them. Only what is drawn during training, such as dropout, comes from the generator of
the device, and from another place of it where the step is captured.
"""

from __future__ import annotations

import importlib.util
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn import functional as F

from nads_core.data.separable import SeparableDatasets
from nads_core.kernels import faster_max_pooling
from nads_core.machinery.arguments import usable_device
from nads_core.machinery.interrupts import DeferredInterrupt
from nads_core.machinery.seeds import seed_sequence, seeded
from nads_core.networks.architectures import Architecture
from nads_core.training.interrupted import TrainingState
from nads_core.training.single import (
    Dataset,
    Recipe,
    TrainingResult,
    TrainingTimeout,
    accuracy,
    batches,
    descend,
    fit,
    progress_bar,
    require_dataset,
    require_finite,
)

METHODS = ("auto", "loop", "processes", "vmap", "graph")
_VMAP_PARAMETERS = 300_000  # larger networks fill a GPU alone
_VMAP_NETWORKS = 64  # in one vectorised step: more would only postpone the first result
_WORTH_PROCESSES = 2_000  # steps: starting workers takes as long as about 500 steps of a LeNet
_IDLE_SECONDS = 120  # that workers wait for more; loky warns when one ends while tasks are being sent


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
    stop_perfect: bool
    measure: Callable[[nn.Module], Any] | None

    def network(self, number: int) -> nn.Module:
        """Return the network with a given number: its first weights follow from the seed and the number alone."""
        with seeded(seed_sequence(self.seed, 2, number), self.device):
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
        with seeded(seed_sequence(self.seed, 3, number), self.device):
            result = fit(
                network, train, test, self.recipe, self.seed, self.device, mixed_precision=self.mixed_precision,
                captured=self.captured, stop_loss=self.stop_loss, stop_perfect=self.stop_perfect, **options,
            )  # fmt: skip
        return result if self.measure is None else replace(result, measured=self.measure(network))

    @property
    def stops(self) -> bool:
        """Whether a network may end before the others."""
        return self.stop_loss is not None or self.stop_perfect

    def draws(self, image_shape: tuple[int, ...]) -> bool:
        """Whether a step of training draws random numbers, as dropout does."""
        with seeded(0), torch.no_grad():
            network = self.network(0).cpu().train()
            before = torch.get_rng_state()
            network(torch.zeros(2, *image_shape, dtype=self.dtype))
            return not torch.equal(before, torch.get_rng_state())

    def cast(self, data: Dataset | None) -> Dataset | None:
        """Give images the type of the weights."""
        return data and (data[0].to(self.dtype), data[1])


def train_networks(
    architecture: Architecture | Callable[[], nn.Module],
    datasets: Sequence[Dataset],
    test_datasets: Sequence[Dataset] | None = None,
    *,
    recipe: Recipe,
    num_classes: int = 2,
    seed: int = 0,
    numbers: Sequence[int] | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
    mixed_precision: bool | None = None,
    method: str = "auto",
    workers: int | None = None,
    stop_loss: float | None = None,
    stop_perfect: bool = False,
    timeout: float | None = None,
    measure: Callable[[nn.Module], Any] | None = None,
    on_result: Callable[[int, TrainingResult], None] | None = None,
    states: Sequence[TrainingState] | None = None,
    progress: bool = True,
) -> TrainingResult:
    """Train one network on each of B datasets, as many at a time as the device is fastest with.

    Network b is a function of ``seed``, its number and its dataset alone, whatever is trained beside it: up to rounding
    on any device, with dropout on one device and by one method. All see their samples in one order.

    Args:
        architecture: one of ours, or a function that returns a new network with ``num_classes`` outputs.
        datasets: B training sets, for example `SeparableDatasets`; item b is images (N, C, H, W) and labels (N,). An
            item is asked for only when its network is due; of a sequence that is not a list, in a worker.
        test_datasets: B test sets.
        recipe: `SEPARABLE_RECIPE` and `CIFAR10_RECIPE` are the paper's, for D(v) and for photos.
        num_classes: of the networks that ``architecture`` builds.
        seed: fixes initial weights and the order of the samples.
        numbers: of the networks, in place of 0 to B - 1: to train some of a larger family.
        device: by default a GPU if there is one.
        dtype: of weights and images.
        mixed_precision: run the layers in bfloat16; by default on a GPU that has it, for float32 weights.
        method: "processes" trains one network a core, each on one thread; "vmap" all in one vectorised step; "graph"
            one after another, its step captured as a CUDA graph; "loop" one after another. "auto" takes processes
            on a CPU (one after another without the package loky), vmap for small and graph for large networks on CUDA.
            Networks with dropout don't go by "vmap": one generator would draw for all, by who is beside whom.
        workers: of method "processes"; by default the number of cores that this process may use.
        stop_loss: stop a network when the mean of its last 20 losses is at most this (not with "vmap").
        stop_perfect: stop a network after an epoch that lowered its mean loss, if then no test image is wrong (not with
            "vmap").
        timeout: seconds. A network that would not be ready by then is not begun, and one that isn't is abandoned.
        measure: called with each network after its training (in its worker); what it returns becomes ``measured``.
        on_result: called with b and its result as soon as network b is ready.
        states: a file for each network, from which it goes on where an earlier call was stopped; written once an epoch,
            never with "vmap". Yours to delete (`TrainingState.forget`) once the result is kept.
        progress: show a progress bar.

    Returns:
        Fields of shape (B, ...).

    Raises:
        ValueError: if there is no dataset, or no test set with ``stop_perfect``, if data don't fit the network, for a
            device that is not there, for "vmap" with a reason to stop or a network that draws random numbers in
            training, or if a loss became NaN.
        TrainingTimeout: after ``timeout`` seconds.
    """
    count = len(datasets)
    if not count or (test_datasets is not None and len(test_datasets) != count):
        raise ValueError(f"got {count} training and {len(test_datasets or [])} test sets: give one of each a network")
    numbers = list(range(count)) if numbers is None else list(numbers)
    if len(numbers) != count:
        raise ValueError(f"got {count} datasets and {len(numbers)} numbers: give one a network")
    if states is not None and len(states) != count:
        raise ValueError(f"got {count} datasets and {len(states)} states: give one a network")
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose from {METHODS}")
    device = usable_device(device)
    if mixed_precision is None:
        has_bfloat16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        mixed_precision = has_bfloat16 and dtype == torch.float32
    if isinstance(datasets, (list, tuple)):
        for data in (*datasets, *(test_datasets or ())):
            require_dataset(data, "every dataset")
        if len({data[0].shape for data in datasets}) > 1:
            raise ValueError(f"training sets differ in shape: {sorted({tuple(x.shape) for x, _ in datasets})}")
    shape = tuple(datasets.image_shape if hasattr(datasets, "image_shape") else datasets[0][0].shape[1:])
    factory = architecture
    if isinstance(architecture, Architecture):
        factory = partial(architecture.build, shape[0], shape[1], num_classes)
    job = _Job(factory, recipe, seed, device, dtype, mixed_precision, False, stop_loss, stop_perfect, measure)
    if method == "auto":
        method = _fastest(job, datasets, count, shape)
    elif method == "vmap" and job.stops:
        raise ValueError(
            "stop_loss and stop_perfect end one network before the others, which one vectorised step cannot: take "
            "method='auto'"
        )
    elif method == "vmap" and job.draws(shape):
        raise ValueError(
            "the network draws random numbers in training (dropout?), which would depend on the networks beside it in "
            "one vectorised step: take method='auto', or another one"
        )
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
        workers = min(workers or num_cores(), count)
        _train_in_processes(job, numbers, datasets, test_datasets, workers, states, deadline, label, progress, done)
    else:
        job = replace(job, captured=method == "graph")
        _train_in_turn(job, numbers, datasets, test_datasets, states, deadline, label, progress, done)
    return _stacked([results[b] for b in range(count)])


def _fastest(job: _Job, datasets: Sequence[Dataset], count: int, image_shape: tuple[int, ...]) -> str:
    if job.device.type == "cuda":
        small = sum(p.numel() for p in job.network(0).parameters()) <= _VMAP_PARAMETERS
        return "vmap" if small and not job.stops and not job.draws(image_shape) else "graph"
    samples = getattr(datasets, "num_samples", None) or len(datasets[0][1])
    steps = count * job.recipe.num_steps(samples)
    worth = job.device.type == "cpu" and count > 1 and steps >= _WORTH_PROCESSES
    return "processes" if worth and num_cores() > 1 and importlib.util.find_spec("loky") else "loop"


def num_cores() -> int:
    """Return how many cores this process may use: so many networks are trained at once on a CPU."""
    if importlib.util.find_spec("loky"):
        from loky import cpu_count  # minds the limits of a container, such as Binder's, too

        return cpu_count()
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _stacked(results: list[TrainingResult]) -> TrainingResult:
    columns = {name: [getattr(result, name) for result in results] for name in vars(results[0])}
    measured = columns.pop("measured")
    stacked = {name: None if column[0] is None else torch.stack(column) for name, column in columns.items()}
    return TrainingResult(**stacked, measured=None if measured[0] is None else measured)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()


def _train_in_turn(job, numbers, datasets, tests, states, deadline, label, progress, done) -> None:
    typical = 0.0  # seconds that a network takes
    for b, number in enumerate(numbers):
        if deadline is not None and _left(deadline) < typical:
            raise TrainingTimeout(f"{b} of {len(numbers)} networks are trained; the next would take {typical:.0f} s")
        name = label if len(numbers) == 1 else f"network {b + 1} of {len(numbers)}"
        result = job.train(
            number, datasets[b], tests and tests[b], state=states and states[b], timeout=_left(deadline), label=name,
            progress=progress,
        )  # fmt: skip
        typical = float(result.seconds)
        done(b, result)


def _begin_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, which ends its workers, and end when the parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


# Idle threads sleep, and freed memory stays with the process: a step's tensors are mapped once, not at every step.
_WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:"
    "glibc.malloc.trim_threshold=2147483647:glibc.malloc.top_pad=67108864",
}


def _item(datasets: Sequence[Dataset], b: int) -> Callable[[], Dataset]:
    """Return what a worker calls to get dataset b: made there, unless a list holds it already."""
    if isinstance(datasets, (list, tuple)):
        return partial(lambda data: data, datasets[b])
    return partial(datasets.__getitem__, b)


def _train_item(
    job: _Job, number: int, train: Callable, test: Callable | None, state: TrainingState | None
) -> TrainingResult:
    return job.train(number, train(), test and test(), state=state)


def _train_in_processes(job, numbers, datasets, tests, workers, states, deadline, label, progress, done) -> None:
    try:
        from loky import get_reusable_executor
    except ImportError as error:
        raise ImportError('method "processes" needs the package loky: install it, or take method="loop"') from error

    pool = get_reusable_executor(
        workers, timeout=_IDLE_SECONDS, env=_WORKER_ENVIRONMENT,
        initializer=_begin_worker, initargs=(os.getpid(),), reuse=True,
    )  # fmt: skip
    waiting, running, typical = list(range(len(numbers)))[::-1], {}, 0.0
    try:
        interrupt = DeferredInterrupt("stopping ...")
        with progress_bar(len(numbers), label, "network", progress) as shown, interrupt:
            while waiting or running:
                late = deadline is not None and _left(deadline) < typical
                while waiting and len(running) < workers and not late:
                    b = waiting.pop()
                    data = _item(datasets, b), tests and _item(tests, b)
                    sent = pool.submit(_train_item, job, numbers[b], *data, states and states[b])
                    running[sent] = b
                if not running:
                    break
                patience = 0.5 if deadline is None else max(0, min(0.5, _left(deadline)))
                ready, _ = wait(running, timeout=patience, return_when=FIRST_COMPLETED)
                if interrupt.received:
                    raise KeyboardInterrupt
                if not ready and deadline is not None and _left(deadline) <= 0:
                    break
                for future in ready:
                    result = future.result()
                    typical = float(result.seconds)
                    done(running.pop(future), result)
                    shown.update()
    finally:
        if running:
            pool.shutdown(kill_workers=True)
    if waiting or running:
        count = len(numbers) - len(waiting) - len(running)
        raise TrainingTimeout(f"{count} of {len(numbers)} networks were trained in time")


def _train_vectorised(job, numbers, datasets, tests, deadline, label, progress, done) -> None:
    """Train groups of networks that fit into memory: a group that doesn't is halved."""
    waiting, size, typical = list(range(len(numbers))), _VMAP_NETWORKS, 0.0
    while waiting:
        group = waiting[:size]
        if deadline is not None and _left(deadline) < typical:
            raise TrainingTimeout(f"{len(numbers) - len(waiting)} of {len(numbers)} networks were trained in time")
        start = time.monotonic()
        try:
            _train_group(job, group, [numbers[b] for b in group], datasets, tests, deadline, label, progress, done)
        except torch.OutOfMemoryError:
            if len(group) == 1:
                raise
            size = len(group) // 2
            continue
        waiting, typical = waiting[size:], time.monotonic() - start


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
        images = torch.stack([x for x, _ in sets]).to(device)
        labels = torch.stack([y for _, y in sets]).to(device)
        batch_of = lambda samples: (images[:, samples], labels[:, samples])  # noqa: E731

    def loss(weights: dict, buffers: dict, x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=job.mixed_precision):
            logits = functional_call(network, weights | buffers, (x,))
        return F.cross_entropy(logits.to(x.dtype), y)

    step = vmap(grad_and_value(loss))
    count = datasets.num_samples if isinstance(datasets, SeparableDatasets) else images.shape[1]
    total, losses = recipe.num_steps(count), []
    with torch.no_grad(), progress_bar(total, label, "step", progress) as shown:
        for index, samples in enumerate(batches(count, recipe, job.seed)):
            gradients, value = step(parts, buffers, *batch_of(samples.to(device)))
            losses.append(value)
            flat = torch.cat([gradients[name].flatten(1) for name in shapes], 1)
            descend(weights, flat, momenta, recipe, recipe.rate(index, total))
            shown.update()
            if deadline is not None and _left(deadline) < 0:
                raise TrainingTimeout(f"the time limit came at step {index + 1} of {total} of {len(group)} networks")
    losses = torch.stack(losses, 1).cpu()
    require_finite(losses)
    for row, b in enumerate(group):
        network.load_state_dict({name: tensor[row] for name, tensor in (parts | buffers).items()})
        accuracies = [None if part is None else torch.tensor(accuracy(network.eval(), job.cast(part[b])))
                      for part in (datasets, tests)]  # fmt: skip
        seconds = torch.tensor((time.perf_counter() - start) / len(group))
        measured = job.measure and job.measure(network)
        done(b, TrainingResult(*accuracies, losses[row], seconds, measured))
