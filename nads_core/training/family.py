"""The networks that one call of `train_networks` trains, with their data."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from nads_core.data.separable import SeparableDatasets
from nads_core.kernels import faster_layers
from nads_core.networks.architectures import Factory
from nads_core.runtime.arguments import Shape
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.old_modules import require_module
from nads_core.training.recipes import Dataset, TrainConfig
from nads_core.training.result import TrainingResult
from nads_core.training.state import TrainingState
from nads_core.training.train_one import fit, outputs_of

Measure = Callable[[nn.Module], object]
_SMALL = 300_000  # parameters; a larger network trains long enough to need a checkpoint
_AT_ONCE = 8  # small networks in a step: an H100 does not train more of them faster


@dataclass(frozen=True)
class Member:
    """One network of a family, its data, which functions return when it is trained, and what else
    it is given.
    """

    network_id: int
    name: str  # in errors and progress bars
    train: Callable[[], Dataset]
    test: Callable[[], Dataset | None]
    measure: Measure | None
    state: TrainingState | None


@dataclass(frozen=True)
class NetworkFamily:
    """Networks of one architecture with the same options; network i follows from the seed and i
    alone.
    """

    factory: Factory
    image_shape: Shape  # (C, H, W)
    config: TrainConfig

    def network(self, network_id: int) -> nn.Module:
        """Return a network with its initial weights."""
        with seeded(seed_sequence(self.config.seed, 2, network_id), self.config.device):
            network = require_module(self.factory())
        # `to` would drop imaginary parts
        if any(tensor.is_complex() for tensor in network.parameters()):
            raise ValueError(
                "networks with complex weights cannot be trained: "
                "hold real and imaginary parts instead"
            )
        return network.to(self.config.dtype)

    def train(self, members: Sequence[Member], **options: Any) -> list[TrainingResult]:
        """Train networks together; options as in `fit`."""
        networks = [self.network(each.network_id) for each in members]
        if self.config.device.type == "cpu" and not self.config.mixed_precision:
            networks = [faster_layers(network, convolutions=False) for network in networks]
        first = members[0]
        with seeded(seed_sequence(self.config.seed, 3, first.network_id), self.config.device):
            results = fit(
                networks,
                [(each.train(), each.test()) for each in members],
                self.config,
                names=[each.name for each in members],
                state=first.state if len(members) == 1 else None,
                **options,
            )
        return [
            replace(result, measured=each.measure and each.measure(network))
            for result, each, network in zip(results, members, networks, strict=True)
        ]

    def at_once(self, most: int | None = None) -> int:
        """Return how many networks share a step: ``most``, by default 8 small networks or a large
        one, but one alone if it may stop before the others, or draws random numbers in training, as
        dropout does: it would depend on them.
        """
        network = self.network(0).cpu()
        small = sum(p.numel() for p in network.parameters()) <= _SMALL
        most = most or (_AT_ONCE if small else 1)
        if most == 1 or self.config.stop_loss is not None or self.config.stop_at_full_accuracy:
            return 1
        with seeded(0), torch.no_grad():
            network.train()
            before = torch.get_rng_state()
            outputs_of(network, torch.zeros(2, *self.image_shape, dtype=self.config.dtype))
            return most if torch.equal(before, torch.get_rng_state()) else 1


def getter(datasets: Sequence[Any], b: int, device: torch.device) -> Callable[[], Any]:
    """Return a function that returns dataset b, which is created on demand, a separable one on the
    device, unless a list holds it already.
    """
    if isinstance(datasets, SeparableDatasets):
        return partial(datasets.on, device, b)
    if isinstance(datasets, (list, tuple)):
        datasets, b = [datasets[b]], 0  # a worker process receives this dataset alone
    return partial(operator.getitem, datasets, b)
