"""Networks in training, and the steps of several of them, which a GPU captures as CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nads_core.runtime.arguments import Facts, plain
from nads_core.runtime.graphs import capture
from nads_core.runtime.provenance import fingerprint
from nads_core.training.old_modules import state_of
from nads_core.training.old_self_check import foreign_generators, held_generators
from nads_core.training.recipes import Dataset, TrainConfig, descend


class Trainee:
    """A network with its training set, and the step of its training; all tensors stay where they
    are.

    Args:
        network: network that is trained in place.
        train: images (N, C, H, W), which are converted to the type of the weights, and labels (N,).
        config: options of the training.
    """

    def __init__(self, network: nn.Module, train: Dataset, config: TrainConfig):
        self.network, self.config, self.device = network.to(config.device), config, config.device
        network.train()
        self.layout = torch.channels_last if config.mixed_precision else torch.contiguous_format
        self.weights, self.gradients = _flatten(
            network, bool(config.mixed_precision) and self.device.type == "cuda"
        )
        self.momenta = torch.zeros_like(self.weights)
        self.data = train[0].to(self.weights), train[1].to(self.device, torch.long)

    @property
    def changing(self) -> dict[str, Tensor]:
        """All tensors that a step changes, by name."""
        return {
            "weights": self.weights,
            "momenta": self.momenta,
            **dict(self.network.named_buffers()),
        }

    @property
    def identity(self) -> Facts:
        """What identifies the training, but for the values of images and initial weights, as plain
        values.
        """
        options = {name: plain(value) for name, value in asdict(self.config).items()}
        options |= {"device": self.device.type, "dtype": str(self.weights.dtype)}
        images, labels = self.data
        return {
            "config": options,
            "images": list(images.shape),
            "labels": fingerprint(labels.cpu().numpy()),
            "network": {
                name: list(tensor.shape) for name, tensor in state_of(self.network).items()
            },
        }

    def step(self, batch: Tensor, rate: float | Tensor) -> Tensor:
        """Take a step on the samples (n,), and return the loss before it."""
        images, labels = self.data
        with self.config.autocast():
            # (n, C, H, W) -> (n, classes)
            logits = self.network(images[batch].contiguous(memory_format=self.layout))
        if not isinstance(logits, Tensor):
            raise ValueError(
                f"in train mode the network returns a {type(logits).__name__}, not logits alone, "
                "as GoogLeNet does with auxiliary classifiers: switch these off (aux_logits=False), "
                "or pass a module that returns the logits"
            )
        loss = F.cross_entropy(logits.to(images.dtype), labels[batch])
        self.gradients.zero_()
        loss.backward()
        descend(self.weights, self.gradients, self.momenta, self.config.recipe, rate)
        return loss.detach()


def _flatten(network: nn.Module, channels_last: bool) -> tuple[Tensor, Tensor]:
    """Move weights into one vector and their gradients into another; return both, (P,).

    With ``channels_last`` the filters (O, C, h, w) lie there as (O, h, w, C), in the layout of
    their images.
    """
    parameters = [p for p in network.parameters() if p.requires_grad]

    def ordered(tensor: Tensor) -> Tensor:
        return tensor.permute(0, 2, 3, 1) if channels_last and tensor.dim() == 4 else tensor

    def restored(row: Tensor, like: Tensor) -> Tensor:
        values = row.view(ordered(like).shape)
        return values.permute(0, 3, 1, 2) if channels_last and like.dim() == 4 else values

    weights = torch.cat([ordered(p.detach()).flatten() for p in parameters])
    gradients = torch.zeros_like(weights)
    sizes = [p.numel() for p in parameters]
    for p, weight, gradient in zip(
        parameters, weights.split(sizes), gradients.split(sizes), strict=True
    ):
        p.data, p.grad = restored(weight, p), restored(gradient, p)
    return weights, gradients


def step(
    trainees: Sequence[Trainee],
    streams: Sequence[torch.cuda.Stream],
    batch: Tensor,
    rate: float | Tensor,
) -> Tensor:
    """Take a step of each of B networks on the samples (n,), on streams of their own if there are
    any, and return the losses before it, (B,).
    """
    if not streams:
        return torch.stack([trainee.step(batch, rate) for trainee in trainees])
    main, losses = torch.cuda.current_stream(batch.device), []
    for trainee, stream in zip(trainees, streams, strict=True):
        stream.wait_stream(main)
        with torch.cuda.stream(stream):
            losses.append(trainee.step(batch, rate))
    for stream in streams:
        main.wait_stream(stream)
    return torch.stack(losses)


def captured(trainees: Sequence[Trainee]) -> Callable[[Tensor, float], Tensor]:
    """Return a step of all networks that runs as a CUDA graph, one for each size of a batch: the
    last of an epoch may be smaller.

    Raises:
        RuntimeError: if a network waits for the device, for example to read a value.
        ValueError: if a network draws random numbers that a graph would repeat at each step.
    """
    first = trainees[0]
    device = first.device
    streams = [torch.cuda.Stream(device) for _ in trainees] if device.type == "cuda" else []
    rate = torch.zeros((), dtype=first.weights.dtype, device=device)
    changing = [tensor for trainee in trainees for tensor in trainee.changing.values()]
    held = [value for trainee in trainees for value in held_generators(trainee.network)]
    graphs, before = {}, foreign_generators(held)
    for samples in torch.arange(len(first.data[1])).split(first.config.recipe.batch_size):
        if len(samples) not in graphs:
            own = samples.to(device)
            call = partial(step, trainees, streams, own, rate)
            graphs[len(samples)] = own, capture(call, changing, device)
    if foreign_generators(held) != before:
        raise ValueError(
            "the network draws random numbers by Python, numpy or a generator of its own, which a "
            "CUDA graph would repeat at each step: draw them from torch's global generator, or use "
            "train_networks(method='loop')"
        )

    def replay(batch: Tensor, value: float) -> Tensor:
        samples, call = graphs[len(batch)]
        samples.copy_(batch)
        rate.fill_(value)
        return call().clone()

    return replay
