"""The networks that one call of `train_networks` trains, with their data and callbacks."""

import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from nads_core.kernels import faster_max_pooling
from nads_core.networks.architectures import Factory
from nads_core.networks.modules import State, require_module, state_of
from nads_core.networks.self_check import differing
from nads_core.runtime.arguments import Shape
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.recipes import Dataset, TrainConfig
from nads_core.training.result import TrainingResult, TrainingTimeout
from nads_core.training.state import TrainingState
from nads_core.training.train_one import Bar, evaluated, fit, outputs_of

Measure = Callable[[nn.Module], object]


@dataclass(frozen=True)
class NetworkFamily:
    """Networks of one architecture with the same options; network i follows from the seed and i
    alone.
    """

    factory: Factory
    image_shape: Shape  # (C, H, W)
    config: TrainConfig
    device: torch.device
    graph: bool = False  # whether a step is captured as a CUDA graph

    def network(self, network_id: int) -> nn.Module:
        """Return a network with its initial weights."""
        with seeded(seed_sequence(self.config.seed, 2, network_id), self.device):
            network = require_module(self.factory())
        # `to` would drop imaginary parts
        if any(tensor.is_complex() for tensor in network.parameters()):
            raise ValueError(
                "networks with complex weights cannot be trained: "
                "hold real and imaginary parts instead"
            )
        return network.to(self.config.dtype)

    def train(
        self,
        network_id: int,
        train: Callable[[], Dataset],
        test: Callable[[], Dataset | None],
        measure: Measure | None,
        **options: Any,
    ) -> TrainingResult:
        """Train one network on the data that two functions return; options as in `fit`."""
        network = self.network(network_id)
        if self.device.type == "cpu" and not self.config.mixed_precision:
            network = faster_max_pooling(network)
        with seeded(seed_sequence(self.config.seed, 3, network_id), self.device):
            datasets = train(), test()
            result = fit(network, datasets, self.config, graph=self.graph, **options)
        return result if measure is None else replace(result, measured=measure(network))

    def obstacle(self, together: bool = True) -> str | None:
        """Return why one network with the weights of others would train otherwise than they do,
        in one step with them if ``together``, else one after another; None if it would not.
        """
        if self.config.stop_loss is not None or self.config.stop_at_full_accuracy:
            return "stop_loss and stop_at_full_accuracy stop networks at different steps"
        if different := differing(self.network(0), self.network(1)):
            return f"networks differ in {', '.join(different)}"
        if not together:
            return None
        # A training step of a network with dropout draws random numbers, which would depend on the
        # other networks.
        with seeded(0), torch.no_grad():
            network = self.network(0).cpu()
            network.train()
            before = torch.get_rng_state()
            outputs_of(network, torch.zeros(2, *self.image_shape, dtype=self.config.dtype))
            is_random = not torch.equal(before, torch.get_rng_state())
        return "the network draws random numbers in training (dropout?)" if is_random else None


def load(network: nn.Module, state: State) -> None:
    """Copy parameters and buffers into a network, whose tensors stay where they are."""
    with torch.no_grad():
        for name, tensor in state_of(network).items():
            tensor.copy_(state[name])


@dataclass
class TrainingRun:
    """The networks of one call of `train_networks`, their data, deadline, callbacks and results; b
    counts from 0.
    """

    family: NetworkFamily
    network_ids: Sequence[int]  # network b is member network_ids[b] of the family
    datasets: Sequence[Dataset]
    test_datasets: Sequence[Dataset | None]
    measures: Sequence[Measure | None]
    states: Sequence[TrainingState | None]
    deadline: float  # of time.monotonic; infinite for none
    progress: bool  # whether to show a progress bar
    on_result: Callable[[int, TrainingResult], None] | None
    results: dict[int, TrainingResult] = field(default_factory=dict)
    seconds_per_network: float = 0.0  # of the last network; 0 before the first is trained

    @property
    def count(self) -> int:
        """Number of networks."""
        return len(self.network_ids)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; infinite without one."""
        return self.deadline - time.monotonic()

    def require_time(self, num_networks: int = 1) -> None:
        """Raise a TrainingTimeout if the next networks would exceed the deadline."""
        if self.seconds_left < num_networks * self.seconds_per_network:
            raise TrainingTimeout(
                f"{len(self.results)} of {self.count} networks were trained within the timeout"
            )

    def collect(self, b: int, result: TrainingResult) -> None:
        """Store the result of network b and pass it on."""
        self.results[b], self.seconds_per_network = result, float(result.seconds or 0)
        if self.on_result:
            self.on_result(b, result)

    def finish(
        self,
        b: int,
        network: nn.Module,
        datasets: tuple[Dataset, Dataset | None],
        losses: Tensor,
        seconds: float,
        batch_size: int = 250,
    ) -> None:
        """Evaluate and measure network b after its training, and collect the result.

        Args:
            b: number of the network.
            network: the trained network, which is in eval mode afterwards.
            datasets: training set of the network, and its test set if there is one.
            losses: loss of each step, (steps,).
            seconds: share of the time that this network took.
            batch_size: number of images evaluated at once.
        """
        config, measure = self.family.config, self.measures[b]
        network.eval()
        accuracies = evaluated(network, datasets, config, self.family.device, batch_size)
        measured = measure and measure(network)
        self.collect(b, TrainingResult(*accuracies, losses, torch.tensor(seconds), measured))

    @property
    def label(self) -> str:
        """Text of the progress bar."""
        return f"training {self.count} networks" if self.count > 1 else "training"

    def network_label(self, b: int) -> str:
        """Return the name of network b in progress bars and errors."""
        return f"network {b + 1} of {self.count}" if self.count > 1 else "training"

    def task(self, b: int, shown: bool = False) -> Callable[..., TrainingResult]:
        """Return a function of a timeout that trains network b, here with a progress bar, or in a
        worker process.
        """
        return partial(
            self.family.train,
            self.network_ids[b],
            _getter(self.datasets, b),
            _getter(self.test_datasets, b),
            self.measures[b],
            state=self.states[b],
            bar=Bar(self.network_label(b), shown),
        )


def _getter(datasets: Sequence[object], b: int) -> Callable[[], Any]:
    """Return a function that returns dataset b, which is created on demand unless a list holds it
    already.
    """
    if isinstance(datasets, (list, tuple)):
        datasets, b = [datasets[b]], 0  # a worker process receives this dataset alone
    return partial(operator.getitem, datasets, b)
