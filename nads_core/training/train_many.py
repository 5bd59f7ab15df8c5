"""Training many networks of one architecture, by the method that suits the device.

Small networks share each step on a GPU ("vmap"), large ones capture their step as a CUDA graph
("graph"), and a CPU trains one network per core ("processes"). "loop" is the sequential baseline.
All methods do the same arithmetic up to rounding, and network b starts from the same weights in all
of them. Only random layers, such as dropout, draw from the device's generator, and from another
position of it where the step is captured.
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
from nads_core.runtime.arguments import require_choice, require_integers, usable_device
from nads_core.training.family import Measure, NetworkFamily, TrainingRun
from nads_core.training.processes import num_cores, train_in_processes
from nads_core.training.recipes import Dataset, config_of, require_dataset
from nads_core.training.result import TrainingResult, stacked
from nads_core.training.side_by_side import train_side_by_side
from nads_core.training.state import TrainingState
from nads_core.training.vectorised import train_vectorised

logger = logging.getLogger(__name__)

METHODS = ("auto", "loop", "processes", "vmap", "graph")
_VMAP_PARAMETERS = 300_000  # a larger network fills a GPU alone
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
        method: "processes" for one network per core, each on one thread; "vmap" for all networks in
            one vectorised step; "graph" for sequential trainings with a captured step; "loop" for
            sequential trainings. "auto" chooses on a CPU processes, or the loop for one network,
            one core or short trainings; on CUDA vmap for small and graph for large networks.
            Networks with dropout cannot use "vmap": one generator would draw for all of them.
        workers: number of processes; by default the number of cores that this process may use. With
            "graph" the number of networks whose steps share one graph, on streams of their own,
            without checkpoints (on a CPU the same steps are called sequentially); by default each
            network has a graph of its own.
        timeout: seconds after which unfinished networks are abandoned; none is started that would
            exceed it.
        measure: function of each network after its training (in its worker), or one function per
            network; its value becomes ``measured``.
        on_result: function of b and its result, called as soon as network b is trained.
        states: checkpoints, one per network, from which an interrupted training resumes; written at
            most once per epoch, never with "vmap". The caller deletes them (`TrainingState.forget`)
            once the result is stored.
        progress: whether to show a progress bar.
        **options: fields of `TrainConfig`.

    Returns:
        Fields of shape (B, ...).

    Raises:
        TypeError: if ``architecture`` does not return a module, or no recipe is given.
        ImportError: for the name of a model whose library is not installed.
        ValueError: for an unknown name, if there is no dataset, no test set with
            ``stop_at_full_accuracy``, data that do not fit the network, an unavailable device, a
            loss that became NaN, or with "vmap" (or several ``workers`` of "graph") an early stop,
            dropout, or networks that differ in more than weights and buffers.
        TrainingTimeout: if the networks are not trained within ``timeout`` seconds.
    """
    config = config_of(options)
    ids = list(range(len(datasets)) if network_ids is None else network_ids)
    measures = [measure] * len(ids) if callable(measure) else measure
    _require_one_each(
        datasets, test_datasets=test_datasets, network_ids=ids, states=states, measures=measures
    )
    require_choice("method", method, METHODS)
    device = usable_device(config.device)
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
    family = NetworkFamily(architecture, shape, config, device)
    if len(ids) > 1:
        _require_new_weights(family, ids[0])
    if method == "auto":
        method = _choose_method(family, datasets)
    elif method == "vmap" and (obstacle := family.obstacle()):
        raise ValueError(f"{obstacle}: method 'vmap' cannot train them, choose 'auto'")
    if method == "graph":
        if workers is None and device.type != "cuda":
            raise ValueError(f"CUDA graphs need a GPU, got device {device}: choose method='auto'")
        family = replace(family, graph=True)
    logger.info("training %d networks on %s by the method %r", len(ids), device, method)
    absent = [None] * len(ids)
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    run = TrainingRun(
        family,
        ids,
        datasets,
        test_datasets or absent,
        measures or absent,
        states or absent,
        deadline,
        progress,
        on_result,
    )
    if method == "vmap":
        train_vectorised(run)
    elif method == "graph" and workers is not None:
        require_integers(workers=workers)
        if obstacle := family.obstacle(together=workers > 1):
            raise ValueError(f"{obstacle}: one graph cannot train them, leave workers out")
        train_side_by_side(run, workers)
    elif method == "processes":
        train_in_processes(run, min(workers or num_cores(), run.count))
    else:
        train_sequentially(run)
    return stacked([run.results[b] for b in range(run.count)])


def train_sequentially(run: TrainingRun) -> None:
    """Train networks one at a time, each on the whole device; start none that would exceed the
    deadline.
    """
    for b in range(run.count):
        run.require_time()
        run.collect(b, run.task(b, run.progress)(timeout=run.seconds_left))


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
    if len({images.shape for images, _ in datasets}) > 1:
        raise ValueError(
            f"training sets differ in shape: {sorted({tuple(x.shape) for x, _ in datasets})}"
        )


def _require_new_weights(family: NetworkFamily, network_id: int) -> None:
    """Raise a ValueError if a factory returns weights again, which one network would train after
    another.
    """
    first, second = ([*family.network(network_id).parameters()] for _ in range(2))
    if any(p is q for p, q in zip(first, second, strict=False) if p.requires_grad):
        raise ValueError("the factory returned the same network twice: build a new one in it")


def _choose_method(family: NetworkFamily, datasets: Sequence[Dataset]) -> str:
    """Return the method for "auto"."""
    if family.device.type == "cuda":
        small = sum(p.numel() for p in family.network(0).parameters()) <= _VMAP_PARAMETERS
        return "vmap" if small and not family.obstacle() else "graph"
    num_samples = getattr(datasets, "num_samples", None) or len(datasets[0][1])
    steps = len(datasets) * family.config.recipe.num_steps(num_samples)
    worth = family.device.type == "cpu" and len(datasets) > 1 and steps >= _MIN_STEPS_FOR_PROCESSES
    return "processes" if worth and num_cores() > 1 else "loop"
