"""Training many small networks at once: a group of them shares every vectorised step."""

import logging
import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn import functional as F

from nads_core.data.separable import SeparableDatasets
from nads_core.networks.modules import State
from nads_core.training.family import TrainingRun, load
from nads_core.training.recipes import Dataset, batches, descend
from nads_core.training.result import TrainingTimeout, require_finite
from nads_core.training.train_one import progress_bar, require_classifier

logger = logging.getLogger(__name__)

_GROUP = 64  # networks per vectorised step: larger groups would only delay the first result


def train_vectorised(run: TrainingRun) -> None:
    """Train groups of networks that fit into memory: halve a group that does not."""
    waiting, size = list(range(run.count)), _GROUP
    while waiting:
        group = waiting[:size]
        run.require_time(len(group))
        try:
            _train_group(run, group)
        except torch.OutOfMemoryError:
            if len(group) == 1:
                raise
            size = len(group) // 2
            logger.info("%d networks do not fit into memory together: trying %d", len(group), size)
        else:
            waiting = waiting[size:]


def _train_group(run: TrainingRun, group: Sequence[int]) -> None:
    """Train the B networks of a group in one vectorised step."""
    start, family, config = time.perf_counter(), run.family, run.family.config
    networks = [family.network(run.network_ids[b]).to(family.device) for b in group]
    network, data = networks[0], run.datasets[group[0]]  # whose forward pass all networks use
    require_classifier(network, data, config.recipe, run.test_datasets[group[0]])
    for each in networks:
        each.train()
    parameters, fixed = stack_module_state(networks)  # each (B, ...)
    frozen = [name for name, tensor in parameters.items() if not tensor.requires_grad]
    fixed |= {name: parameters.pop(name) for name in frozen}  # beside the buffers
    # A step updates one matrix; the networks see their weights as views of it.
    shapes = {name: tensor.shape for name, tensor in parameters.items()}
    sizes = [math.prod(shape[1:]) for shape in shapes.values()]
    weights = torch.cat([tensor.detach().flatten(1) for tensor in parameters.values()], 1)  # (B, P)
    momenta = torch.zeros_like(weights)
    parts = {n: w.view(shapes[n]) for n, w in zip(shapes, weights.split(sizes, 1), strict=True)}

    def loss(weights: State, fixed: State, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of one network on its batch, images (n, C, H, W) and labels (n,)."""
        with config.autocast(family.device):
            logits = functional_call(network, weights | fixed, (x,))
        return F.cross_entropy(logits.to(x.dtype), y)

    step = vmap(grad_and_value(loss))
    num_samples, batch_of = _batches_of(run, group, data)
    total, losses = config.recipe.num_steps(num_samples), []
    with torch.no_grad(), progress_bar(total, run.label, "step", run.progress) as bar:
        for index, samples in enumerate(batches(num_samples, config.recipe, config.seed)):
            gradients, value = step(parts, fixed, *batch_of(samples.to(family.device)))
            losses.append(value)  # (B,)
            flat = torch.cat([gradients[name].flatten(1) for name in shapes], 1)  # (B, P)
            descend(weights, flat, momenta, config.recipe, config.recipe.rate(index, total))
            bar.update()
            if run.seconds_left < 0:
                raise TrainingTimeout(
                    f"{len(group)} networks reached the timeout at step {index + 1} of {total}"
                )
    losses = torch.stack(losses, 1).cpu()  # (B, steps)
    # Finished networks come first, so that their results are passed on before the error of a
    # diverged one.
    for row, b in sorted(enumerate(group), key=lambda item: not losses[item[0]].isfinite().all()):
        require_finite(losses[row], run.network_label(b))
        load(network, {name: tensor[row] for name, tensor in (parts | fixed).items()})
        datasets = run.datasets[b], run.test_datasets[b]
        run.finish(b, network, datasets, losses[row], (time.perf_counter() - start) / len(group))


def _batches_of(
    run: TrainingRun, group: Sequence[int], first: Dataset
) -> tuple[int, Callable[[Tensor], Dataset]]:
    """Return N, and a function from sample indices (n,) to images (B, n, C, H, W) and labels (B,
    n); ``first`` is the first dataset of the group.
    """
    family, datasets = run.family, run.datasets
    # Drawn batch by batch: B datasets would fill the memory
    if isinstance(datasets, SeparableDatasets):
        labels = datasets.labels.to(family.device)  # (N,), shared by all networks
        return datasets.num_samples, lambda samples: (
            datasets.batch(group, samples, family.device, family.config.dtype),
            labels[samples].expand(len(group), -1),
        )
    x, y = first
    # (B, N, C, H, W)
    images = torch.empty(len(group), *x.shape, dtype=family.config.dtype, device=family.device)
    labels = torch.empty(len(group), *y.shape, dtype=torch.long, device=family.device)  # (B, N)
    for row, b in enumerate(group):  # one at a time, because all together may not fit on the host
        images[row], labels[row] = first if row == 0 else datasets[b]
    return images.shape[1], lambda samples: (images[:, samples], labels[:, samples])
