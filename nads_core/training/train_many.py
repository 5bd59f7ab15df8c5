"""Training many networks of one architecture, by the method that suits the device.

A GPU captures a step as a CUDA graph, of several networks if they are small ("graph"), and a CPU
trains one network per core ("processes"). "loop" is the sequential baseline. All methods do the
same arithmetic up to rounding, and network b starts from the same weights in all of them. Only
random layers, such as dropout, draw from the device's generator, and from another position of it
where the step is captured.
"""

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import torch

from nads_core.networks.architectures import Architecture, Factory, architecture_named
from nads_core.runtime.arguments import require_choice, require_integers
from nads_core.training.family import Measure, Member, NetworkFamily, getter
from nads_core.training.processes import num_cores, train_in_processes
from nads_core.training.recipes import (
    Dataset,
    TrainConfig,
    config_of,
    require_dataset,
    require_one_shape,
)
from nads_core.training.result import TrainingResult, stacked
from nads_core.training.state import TrainingState

logger = logging.getLogger(__name__)

METHODS = ("auto", "loop", "processes", "graph")
_MIN_STEPS_FOR_PROCESSES = 2_000  # starting workers takes as long as about 500 steps of a LeNet


def train_networks(
    architecture: Architecture | Factory | str,
    datasets: Sequence[Dataset],
    test_datasets: Sequence[Dataset] | None = None,
    *,
    num_classes: int = 2,
    network_ids: Sequence[int] | None = None,
    method: str = "auto",
    workers: int | None = None,
    timeout: float | None = None,
    measure: Measure | Sequence[Measure] | None = None,
    on_result: Callable[[int, TrainingResult], None] | None = None,
    states: Sequence[TrainingState] | None = None,
    progress: bool = True,
    **options: Any,
) -> TrainingResult:
    """Train one network on each of B datasets.

    Network b is a function of the seed, its id and its dataset alone, whatever is trained together
    with it: up to rounding on any device; with dropout, on one device and by one method. All
    networks see their samples in one order.

    Args:
        architecture: an `Architecture`, a function that returns a new network with ``num_classes``
            outputs, or a name that `compute_nads` takes: "lenet", "torchvision:resnet18",
            "timm:vit_tiny_patch16_224?img_size=32", "module:function".
        datasets: B training sets, for example `SeparableDatasets`; item b is images (N, C, H, W)
            and labels (N,). Items are requested when their network is due; those of a sequence that
            is not a list, in a worker.
        test_datasets: B test sets.
        num_classes: number of outputs of networks of an `Architecture` or of a library's model.
        network_ids: ids of the networks (B,), to train some of a larger family; 0 to B - 1 by
            default.
        method: "processes" for one network per core, each on one thread; "graph" for steps that are
            captured as CUDA graphs (on a CPU they are called); "loop" for sequential trainings.
            "auto" chooses the graph on CUDA, and on a CPU processes, or the loop for one network,
            one core or short trainings.
        workers: number of processes; by default the number of cores that this process may use. With
            "graph" the number of networks whose steps share one graph, on streams of their own, and
            which have no checkpoints; by default 8 small networks, or a large one. A network that
            may stop early or that has dropout is alone in its graph: it would depend on the others.
            One that diverges ends the training of the others in its graph: 1 keeps their results.
        timeout: seconds after which unfinished networks are abandoned.
        measure: function of each network after its training (in its worker), or one function per
            network; its value becomes ``measured``.
        on_result: function of b and its result, called as soon as network b is trained.
        states: checkpoints, one per network, from which an interrupted training resumes; written at
            most once per epoch, and not by several networks in one graph. The caller deletes them
            (`TrainingState.forget`) once the result is stored.
        progress: whether to show a progress bar.
        **options: fields of `TrainConfig`.

    Returns:
        Fields of shape (B, ...).

    Raises:
        TypeError: if ``architecture`` does not return a module, or no recipe is given.
        ImportError: for the name of a model whose library is not installed.
        ValueError: for an unknown name, if there is no dataset, no test set with
            ``stop_at_full_accuracy``, data that do not fit the network, an unavailable device, or a
            loss that became NaN; by a graph, for random numbers of Python or numpy in a step.
        RuntimeError: by a graph, if a step reads a value; the method "loop" allows both.
        TrainingTimeout: if the networks are not trained within ``timeout`` seconds.
    """
    config = config_of(options)
    ids = list(range(len(datasets)) if network_ids is None else network_ids)
    measures = [measure] * len(ids) if callable(measure) else measure
    _require_one_each(
        datasets, test_datasets=test_datasets, network_ids=ids, states=states, measures=measures
    )
    require_choice("method", method, METHODS)
    if workers is not None:
        require_integers(workers=workers)
    device = config.device
    if config.mixed_precision is None:
        has_bfloat16 = device.type == "cuda" and torch.cuda.is_bf16_supported(
            including_emulation=False
        )
        config = replace(config, mixed_precision=has_bfloat16 and config.dtype == torch.float32)
    # Sequences that create their items on demand state their shape in an attribute.
    shape = tuple(getattr(datasets, "image_shape", None) or datasets[0][0].shape[1:])  # (C, H, W)
    if isinstance(architecture, str):
        architecture = architecture_named(architecture, shape, num_classes)
    if isinstance(architecture, Architecture):
        architecture = partial(architecture.build, shape[0], shape[1], num_classes)
    family = NetworkFamily(architecture, shape, config)
    if len(ids) > 1:
        _require_new_weights(family, ids[0])
    if method == "auto":
        method = _choose_method(config, datasets)
    logger.info("training %d networks on %s by the method %r", len(ids), device, method)
    absent = [None] * len(ids)
    members = [
        Member(
            network_id,
            f"network {b + 1} of {len(ids)}" if len(ids) > 1 else "training",
            getter(datasets, b, device),
            getter(test_datasets or absent, b, device),
            (measures or absent)[b],
            (states or absent)[b],
        )
        for b, network_id in enumerate(ids)
    ]
    results: dict[int, TrainingResult] = {}

    def collect(b: int, result: TrainingResult) -> None:
        results[b] = result
        if on_result:
            on_result(b, result)

    deadline = math.inf if timeout is None else time.monotonic() + timeout
    if method == "processes":
        most = min(workers or num_cores(), len(ids))
        train_in_processes(family, members, most, deadline, progress, collect)
    else:
        graph = method == "graph"
        at_once = family.at_once(workers) if graph else 1
        train_sequentially(
            family, members, at_once, collect, graph=graph, deadline=deadline, progress=progress
        )
    return stacked([results[b] for b in range(len(ids))])


def train_sequentially(
    family: NetworkFamily,
    members: Sequence[Member],
    at_once: int,
    collect: Callable[[int, TrainingResult], None],
    **options: Any,
) -> None:
    """Train groups of networks one after another, each on the whole device, and collect their
    results; halve a group that does not fit into memory. Options are those of `fit`.
    """
    first = 0
    while first < len(members):
        group = members[first : first + at_once]
        try:
            results = family.train(group, **options)
        except torch.OutOfMemoryError:
            if len(group) == 1:
                raise
            at_once = len(group) // 2
            logger.info("%d networks do not fit into memory: trying %d", len(group), at_once)
        else:
            for b, result in enumerate(results, first):
                collect(b, result)
            first += len(group)


def _require_one_each(datasets: Sequence[Dataset], **others: Sequence[object] | None) -> None:
    """Raise a ValueError unless each network has one item of each kind, and all training sets of a
    list one shape.
    """
    if not len(datasets):
        raise ValueError("got 0 datasets: give one per network")
    for name, items in others.items():
        if items is not None and len(items) != len(datasets):
            raise ValueError(
                f"got {len(datasets)} datasets and {len(items)} {name}: give one per network"
            )
    if not isinstance(datasets, (list, tuple)):
        return  # items may be created on demand
    for data in chain(datasets, others["test_datasets"] or ()):
        require_dataset(data, "every dataset")
    require_one_shape(datasets)


def _require_new_weights(family: NetworkFamily, network_id: int) -> None:
    """Raise a ValueError if a factory returns weights again, which one network would train after
    another.
    """
    first, second = ([*family.network(network_id).parameters()] for _ in range(2))
    if any(p is q for p, q in zip(first, second, strict=False) if p.requires_grad):
        raise ValueError("the factory returned the same network twice: build a new one in it")


def _choose_method(config: TrainConfig, datasets: Sequence[Dataset]) -> str:
    """Return the method for "auto"."""
    if config.device.type == "cuda":
        return "graph"
    num_samples = getattr(datasets, "num_samples", None) or len(datasets[0][1])
    steps = len(datasets) * config.recipe.num_steps(num_samples)
    worth = config.device.type == "cpu" and len(datasets) > 1 and steps >= _MIN_STEPS_FOR_PROCESSES
    return "processes" if worth and num_cores() > 1 else "loop"
