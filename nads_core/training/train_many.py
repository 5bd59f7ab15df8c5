"""Training many networks of one architecture: a map of `train_network` over workers."""

import operator
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

import torch
from torch import nn

from nads_core.kernels import faster_layers
from nads_core.networks.architectures import Architecture, Factory, architecture_named
from nads_core.networks.network import require_network
from nads_core.runtime.arguments import require_integers, usable_device
from nads_core.runtime.processes import executor_of, in_turn, num_cores, turn
from nads_core.runtime.seeds import drawn, seed_sequence, seeded
from nads_core.training.recipe import (
    SEPARABLE_RECIPE,
    Dataset,
    Recipe,
    TrainConfig,
    require_dataset,
)
from nads_core.training.result import TrainingResult, stacked
from nads_core.training.train_one import fit, progress_bar

_MIN_STEPS_FOR_PROCESSES = 2_000  # starting workers takes as long as about 500 steps of a LeNet


def train_networks(
    architecture: Architecture | Factory | str,
    datasets: Sequence[Dataset],
    test_datasets: Sequence[Dataset] | None = None,
    *,
    num_classes: int = 2,
    recipe: Recipe = SEPARABLE_RECIPE,
    seed: int = 0,
    network_ids: Sequence[int] | None = None,
    device: torch.device | str | None = None,
    mixed_precision: bool = False,
    stop_loss: float | None = None,
    stop_at_full_accuracy: bool = False,
    workers: int | Executor | None = None,
    progress: bool = True,
) -> TrainingResult:
    """Train one new network on each of B datasets.

    Network b is a function of the seed, its id and its dataset alone, whatever is trained beside
    it, up to rounding. All networks see their samples in one order.

    Args:
        architecture: an `Architecture`, a function that returns a new network with ``num_classes``
            outputs, or a name that `compute_nads` takes: "lenet", "torchvision:resnet18",
            "timm:vit_tiny_patch16_224?img_size=32", "module:function".
        datasets: B training sets, for example `SeparableDatasets`; item b is images (N, C, H, W)
            and labels (N,). Items of a sequence that is not a list are requested in the worker.
        test_datasets: B test sets.
        num_classes: number of outputs of networks of an `Architecture` or of a library's model.
        recipe: see `train_network`, as for the options that are not listed here.
        seed: seed of the initial weights, the order of the samples, and random layers.
        network_ids: ids of the networks (B,), to train some of a larger family; 0 to B - 1 by
            default.
        device: see `train_network`.
        mixed_precision: see `train_network`.
        stop_loss: see `train_network`.
        stop_at_full_accuracy: see `train_network`.
        workers: number of processes of one thread each, or any `concurrent.futures.Executor`, such
            as Dask's ``client.get_executor()``; 1 trains in this process, and threads train one
            after another. By default one process per core for long trainings of several networks on
            a CPU, otherwise 1.
        progress: whether to show a progress bar.

    Returns:
        Fields of shape (B, ...).

    Raises:
        TypeError: if ``architecture`` does not return a module.
        ImportError: for the name of a model whose library is not installed.
        ValueError: for an unknown name, if there is no dataset, no test set with
            ``stop_at_full_accuracy``, data that do not fit the network, an unavailable device, or a
            loss that became NaN.
        MemoryError: if a process was killed.
    """
    config = TrainConfig(
        recipe, seed, usable_device(device), mixed_precision, stop_loss, stop_at_full_accuracy
    )
    count = len(datasets)
    ids = range(count) if network_ids is None else network_ids
    given = {"datasets": datasets, "test_datasets": test_datasets, "network_ids": ids}
    counts = {name: len(items) for name, items in given.items() if items is not None}
    if {*counts.values()} != {count or 1}:
        raise ValueError(f"got {counts}: give one of each per network, and at least one dataset")
    first = datasets[0]
    require_dataset(first, "every dataset")
    shape = tuple(first[0].shape[1:])  # (C, H, W)
    if isinstance(architecture, str):
        architecture = architecture_named(architecture, shape, num_classes)
    if isinstance(architecture, Architecture):
        architecture = partial(architecture.build, shape[0], shape[1], num_classes)
    if workers is None:
        steps = count * recipe.num_steps(len(first[1]))
        long = config.device.type == "cpu" and steps >= _MIN_STEPS_FOR_PROCESSES
        workers = min(num_cores(), count) if long else 1
    if not isinstance(workers, Executor):
        require_integers(workers=workers)
    if count > 1:
        _require_new_weights(architecture)
    calls = [
        partial(
            _train_item,
            architecture,
            network_id,
            _item(datasets, b),
            None if test_datasets is None else _item(test_datasets, b),
            config,
            label=f"network {b + 1} of {count}" if count > 1 else "training",
        )
        for b, network_id in enumerate(ids)
    ]
    if count == 1 or workers == 1:
        return stacked([call(progress=progress) for call in calls])
    results = []
    with (
        executor_of(workers) as pool,
        progress_bar(count, f"training {count} networks", "network", progress) as bar,
    ):
        call = partial(in_turn, torch.get_default_dtype())
        for result in pool.map(call, calls):  # an error cancels the others
            results.append(result)
            bar.update()
    return stacked(results)


def train_new(
    factory: Factory,
    network_id: int,
    train: Dataset,
    test: Dataset | None,
    config: TrainConfig,
    **options: Any,
) -> tuple[nn.Module, TrainingResult]:
    """Train one new network, which follows from the seed and its id alone.

    Args:
        factory: function that returns a new network.
        network_id: id of the network.
        train: training set.
        test: test set.
        config: options of the training.
        **options: keywords of `fit`.

    Returns:
        The trained network, on the device, and its result.
    """
    seed, device = config.seed, config.device
    with turn:
        network = require_network(drawn(factory, seed_sequence(seed, 2, network_id), device))
        if device.type == "cpu" and not config.mixed_precision:
            network = faster_layers(network, convolutions=False)
        with seeded(seed_sequence(seed, 3, network_id), device):
            return network, fit(network, train, test, config, **options)


def _train_item(
    factory: Factory,
    network_id: int,
    train: Callable[[], Dataset],
    test: Callable[[], Dataset] | None,
    config: TrainConfig,
    **options: Any,
) -> TrainingResult:
    """Train a network on data that are made here, in the worker."""
    tests = None if test is None else test()
    return train_new(factory, network_id, train(), tests, config, **options)[1]


def _item(datasets: Sequence[Any], b: int) -> Callable[[], Any]:
    """Return a function that returns dataset b: of a list, it alone goes to the worker."""
    if isinstance(datasets, (list, tuple)):
        datasets, b = [datasets[b]], 0
    return partial(operator.getitem, datasets, b)


def _require_new_weights(factory: Factory) -> None:
    """Raise a ValueError if a factory returns weights again, which one network would train after
    another.
    """
    with seeded(0):
        first, second = (require_network(factory()).parameters() for _ in range(2))
    if {id(weight) for weight in first if weight.requires_grad} & {*map(id, second)}:
        raise ValueError("the factory returned the same network twice: build a new one in it")
