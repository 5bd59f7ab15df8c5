"""Training many networks of one architecture, each on its own dataset, by the fastest method of the device.

On a CPU every core trains one network on one thread (method "processes", in `processes`). On a GPU small networks share
one vectorised step ("vmap", in `vectorised`), and large ones are trained sequentially, with the step captured as a CUDA
graph ("graph") or not ("loop", both in `sequential`). All methods compute the same numbers up to rounding. Network b
starts from the same weights in all of them. Only random numbers during training, such as dropout masks, come from the
device's generator, whose position differs if the step is captured.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from nads_core.networks.architectures import Architecture
from nads_core.runtime.arguments import usable_device
from nads_core.training.call import Call, Measure, Settings
from nads_core.training.datasets import Dataset, image_shape, num_samples, require_dataset
from nads_core.training.interrupted import TrainingState
from nads_core.training.processes import num_cores, train_in_processes
from nads_core.training.recipes import Recipe
from nads_core.training.result import TrainingResult, stacked
from nads_core.training.sequential import train_in_turn
from nads_core.training.vectorised import train_vectorised

METHODS = ("auto", "loop", "processes", "vmap", "graph")
_VMAP_PARAMETERS = 300_000  # larger networks fill a GPU alone
_WORTH_PROCESSES = 2_000  # steps: starting workers takes as long as about 500 steps of a LeNet


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
    measure: Measure | Sequence[Measure] | None = None,
    on_result: Callable[[int, TrainingResult], None] | None = None,
    states: Sequence[TrainingState] | None = None,
    progress: bool = True,
) -> TrainingResult:
    """Train one network on each of B datasets, as many at a time as the device is fastest with.

    Network b is a function of ``seed``, its number and its dataset alone, not of the other networks: up to rounding on
    any device, with dropout on one device and by one method. All see their samples in one order.

    Args:
        architecture: one of ours, or a function that returns a new network with ``num_classes`` outputs.
        datasets: B training sets, for example `SeparableDatasets`; item b is images (N, C, H, W) and labels (N,). An
            item is asked for only when its network is due; of a sequence that is not a list, in a worker.
        test_datasets: B test sets.
        recipe: `SEPARABLE_RECIPE` and `CIFAR10_RECIPE` are the paper's, for D(v) and for photos.
        num_classes: number of classes of the networks that ``architecture`` builds.
        seed: seed of initial weights and of the order of samples.
        numbers: numbers of the networks, in place of 0 to B - 1, for a part of a larger family.
        device: device of the networks; a GPU if available by default.
        dtype: number type of weights and images.
        mixed_precision: whether layers run in bfloat16; by default on a GPU that supports it, for float32 weights.
        method: "processes": one network per core, each on one thread; "vmap": all networks in one vectorised step;
            "graph": sequential training with the step captured as a CUDA graph; "loop": sequential training. "auto"
            selects processes on a CPU (sequential without the package loky), vmap for small and graph for large
            networks on CUDA. Networks with dropout cannot use "vmap", where one generator would draw for all.
        workers: number of workers of method "processes"; by default the number of cores available to this process.
        stop_loss: loss at which a network stops, as the mean of its last 20 steps (not with "vmap").
        stop_perfect: whether a network stops after an epoch that lowered its mean loss, if then every test image is
            classified correctly (not with "vmap").
        timeout: seconds after which training ends; networks that would exceed it are not started, or abandoned.
        measure: function of each trained network (in its worker), or one function per network; its result becomes
            ``measured``.
        on_result: callback with b and the result of network b, as soon as it is ready.
        states: files from which interrupted networks resume, one per network; written once per epoch, never with
            "vmap". Delete them (`TrainingState.forget`) once the result is stored.
        progress: whether to show a progress bar.

    Returns:
        Fields of shape (B, ...).

    Raises:
        TypeError: if ``architecture`` returns something else than a module.
        ImportError: for "processes" without the package loky.
        ValueError: if there is no dataset, or no test set with ``stop_perfect``, if data don't fit the network, for a
            device that is not there, for "vmap" with a reason to stop or a network that draws random numbers in
            training, or if a loss became NaN.
        TrainingTimeout: after ``timeout`` seconds.
    """
    numbers = list(range(len(datasets)) if numbers is None else numbers)
    measures = [measure] * len(numbers) if callable(measure) else measure
    _require_one_each(datasets, test_datasets, numbers=numbers, states=states, measures=measures)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose from {METHODS}")
    device = usable_device(device)
    if mixed_precision is None:
        has_bfloat16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        mixed_precision = has_bfloat16 and dtype == torch.float32
    _require_alike(datasets, test_datasets)
    shape = image_shape(datasets)
    if isinstance(architecture, Architecture):
        factory = partial(architecture.build, shape[0], shape[1], num_classes)
    else:
        factory = architecture
    settings = Settings(
        factory, shape, recipe, seed, device, dtype, mixed_precision,
        stop_loss=stop_loss, stop_perfect=stop_perfect,
    )  # fmt: skip
    if method == "auto":
        method = _fastest(settings, datasets)
    elif method == "vmap":
        _require_vectorisable(settings)
    settings = replace(settings, captured=method == "graph")
    results: dict[int, TrainingResult] = {}

    def keep(b: int, result: TrainingResult) -> None:
        results[b] = result
        if on_result:
            on_result(b, result)

    deadline = math.inf if timeout is None else time.monotonic() + timeout
    call = Call(settings, numbers, datasets, test_datasets, measures, states, deadline, progress, keep)
    if method == "vmap":
        train_vectorised(call)
    elif method == "processes":
        train_in_processes(call, min(workers or num_cores(), call.count))
    else:
        train_in_turn(call)
    return stacked([results[b] for b in range(call.count)])


def _require_one_each(
    datasets: Sequence[Dataset], test_datasets: Sequence[Dataset] | None, **others: Sequence[Any] | None
) -> None:
    """Raise a ValueError unless every network has one of each."""
    count = len(datasets)
    if not count or (test_datasets is not None and len(test_datasets) != count):
        raise ValueError(f"got {count} training and {len(test_datasets or [])} test sets: give one of each a network")
    for name, items in others.items():
        if items is not None and len(items) != count:
            raise ValueError(f"got {count} datasets and {len(items)} {name}: give one a network")


def _require_alike(datasets: Sequence[Dataset], test_datasets: Sequence[Dataset] | None) -> None:
    """Raise a ValueError unless the items of a list are datasets, and training sets have one shape."""
    if not isinstance(datasets, (list, tuple)):
        return  # its items may be made when they are asked for
    for data in (*datasets, *(test_datasets or ())):
        require_dataset(data, "every dataset")
    if len({images.shape for images, _ in datasets}) > 1:
        raise ValueError(f"training sets differ in shape: {sorted({tuple(x.shape) for x, _ in datasets})}")


def _require_vectorisable(settings: Settings) -> None:
    """Raise a ValueError if networks could not be trained in one step, as if each were alone."""
    if settings.stops:
        raise ValueError(
            "stop_loss and stop_perfect end one network before the others, which one vectorised step cannot: take "
            "method='auto'"
        )
    if settings.draws:
        raise ValueError(
            "the network draws random numbers in training (dropout?), which would depend on the networks beside it in "
            "one vectorised step: take method='auto', or another one"
        )


def _fastest(settings: Settings, datasets: Sequence[Dataset]) -> str:
    """Return the method that "auto" stands for."""
    if settings.device.type == "cuda":
        small = sum(p.numel() for p in settings.network(0).parameters()) <= _VMAP_PARAMETERS
        return "vmap" if small and not settings.stops and not settings.draws else "graph"
    steps = len(datasets) * settings.recipe.num_steps(num_samples(datasets))
    worth = settings.device.type == "cpu" and len(datasets) > 1 and steps >= _WORTH_PROCESSES
    return "processes" if worth and num_cores() > 1 and importlib.util.find_spec("loky") else "loop"
