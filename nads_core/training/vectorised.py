"""Training many small networks together: a group of them takes each step as one vectorised step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn import functional as F

from nads_core.data.separable import SeparableDatasets
from nads_core.training.accuracies import accuracy
from nads_core.training.call import Call
from nads_core.training.datasets import Dataset
from nads_core.training.recipes import batches, descend
from nads_core.training.result import TrainingDiverged, TrainingResult, TrainingTimeout, require_finite
from nads_core.training.single import progress_bar

_GROUP = 64  # networks in one vectorised step: more would only postpone the first result


def train_vectorised(call: Call) -> None:
    """Train groups of networks that fit into memory: a group that doesn't is halved."""
    waiting, size, typical = list(range(call.count)), _GROUP, 0.0
    while waiting:
        group = waiting[:size]
        if call.seconds_left < typical:
            raise TrainingTimeout(f"{call.count - len(waiting)} of {call.count} networks were trained in time")
        start = time.monotonic()
        try:
            _train_group(call, group)
        except torch.OutOfMemoryError:
            if len(group) == 1:
                raise
            size = len(group) // 2
            continue
        waiting, typical = waiting[size:], time.monotonic() - start


def _train_group(call: Call, group: Sequence[int]) -> None:
    """Train the B networks of a group in one vectorised step."""
    start, settings, recipe = time.perf_counter(), call.settings, call.settings.recipe
    networks = [settings.network(call.numbers[b]).to(settings.device).train() for b in group]
    network = networks[0]  # whose forward pass all take, each with its own weights
    parameters, buffers = stack_module_state(networks)  # each (B, ...)
    # A step updates one matrix; the networks see their weights as views of it.
    shapes = {name: tensor.shape for name, tensor in parameters.items()}
    sizes = [math.prod(shape[1:]) for shape in shapes.values()]
    weights = torch.cat([tensor.detach().flatten(1) for tensor in parameters.values()], 1)  # (B, P)
    momenta = torch.zeros_like(weights)
    parts = {n: w.view(shapes[n]) for n, w in zip(shapes, weights.split(sizes, 1), strict=True)}

    def loss(weights: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of one network on its batch, images (n, C, H, W) and labels (n,)."""
        with torch.autocast(settings.device.type, torch.bfloat16, enabled=settings.mixed_precision):
            logits = functional_call(network, weights | buffers, (x,))
        return F.cross_entropy(logits.to(x.dtype), y)

    step = vmap(grad_and_value(loss))
    num_samples, batch_of = _batches_of(call, group)
    total, losses = recipe.num_steps(num_samples), []
    with torch.no_grad(), progress_bar(total, call.label, "step", call.progress) as shown:
        for index, samples in enumerate(batches(num_samples, recipe, settings.seed)):
            gradients, value = step(parts, buffers, *batch_of(samples.to(settings.device)))
            losses.append(value)  # (B,)
            flat = torch.cat([gradients[name].flatten(1) for name in shapes], 1)  # (B, P)
            descend(weights, flat, momenta, recipe, recipe.rate(index, total))
            shown.update()
            if call.seconds_left < 0:
                raise TrainingTimeout(f"the time limit came at step {index + 1} of {total} of {len(group)} networks")
    losses = torch.stack(losses, 1).cpu()  # (B, steps)
    for row, b in sorted(enumerate(group), key=lambda one: not losses[one[0]].isfinite().all()):  # the finished first
        try:
            require_finite(losses[row])
        except TrainingDiverged as error:
            raise call.diverged(b, error) from error
        network.load_state_dict({name: tensor[row] for name, tensor in (parts | buffers).items()})
        train_accuracy = torch.tensor(accuracy(network.eval(), settings.cast(call.datasets[b])))
        test = call.test_dataset(b)
        test_accuracy = None if test is None else torch.tensor(accuracy(network.eval(), settings.cast(test)))
        seconds = torch.tensor((time.perf_counter() - start) / len(group))
        measure = call.measure(b)
        measured = measure and measure(network)
        call.on_result(b, TrainingResult(train_accuracy, test_accuracy, losses[row], seconds, measured))


def _batches_of(call: Call, group: Sequence[int]) -> tuple[int, Callable[[Tensor], Dataset]]:
    """Return N, and what maps sample indices (n,) to images (B, n, C, H, W) and labels (B, n) of a group."""
    device, dtype, datasets = call.settings.device, call.settings.dtype, call.datasets
    if isinstance(datasets, SeparableDatasets):  # made batch by batch: B datasets would fill the memory
        labels = datasets.labels.to(device)  # (N,), the same for all
        return datasets.num_samples, lambda samples: (
            datasets.batch(group, samples, device, dtype),
            labels[samples].expand(len(group), -1),
        )
    x, y = call.settings.cast(datasets[group[0]])
    images = torch.empty(len(group), *x.shape, dtype=x.dtype, device=device)  # (B, N, C, H, W)
    labels = torch.empty(len(group), *y.shape, dtype=y.dtype, device=device)  # (B, N)
    for row, b in enumerate(group):  # one at a time: together they could be too much for the host
        x, y = (x, y) if row == 0 else call.settings.cast(datasets[b])
        images[row], labels[row] = x, y
    return images.shape[1], lambda samples: (images[:, samples], labels[:, samples])
