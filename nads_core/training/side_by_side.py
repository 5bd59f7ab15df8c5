"""Training a few large networks at once: one CUDA graph has a step of each, on a stream of its own.

The graph is made once. Networks and data are loaded into its tensors, so that further groups cost
no capture. On a CPU, which has no graphs, the same steps are called one after another.
"""

import contextlib
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nads_core.data.separable import SeparableDatasets
from nads_core.networks.modules import state_of
from nads_core.runtime.graphs import capture
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training.family import TrainingRun, load
from nads_core.training.recipes import Dataset, batches
from nads_core.training.result import TrainingTimeout, require_finite
from nads_core.training.train_one import Trainee, progress_bar, require_classifier

_EVALUATED = 2_000  # images of one evaluation


def train_side_by_side(run: TrainingRun, at_once: int) -> None:
    """Train groups of networks; start none that would exceed the deadline."""
    lanes = None
    for first in range(0, run.count, at_once):
        group = range(first, min(first + at_once, run.count))
        run.require_time(len(group))
        lanes = lanes or _Lanes(run, min(at_once, run.count))
        lanes.train(group)


class _Lanes:
    """Tensors of networks that are trained at once, and the graph of their steps.

    Args:
        run: networks and data; the first training set gives the shapes of all.
        count: number of networks.
    """

    def __init__(self, run: TrainingRun, count: int):
        self.run, self.family = run, run.family
        device, config = self.family.device, self.family.config
        images, labels = _on_device(run.datasets, 0, device)
        network, test = self.family.network(run.network_ids[0]).to(device), run.test_datasets[0]
        require_classifier(network, (images, labels), config.recipe, test)
        self.trainees = []
        for _ in range(count):
            blank = torch.zeros_like(images, dtype=config.dtype), torch.zeros_like(labels)
            self.trainees.append(
                Trainee(self.family.network(run.network_ids[0]), blank, config, device)
            )
        self.order = [
            samples.to(device) for samples in batches(len(images), config.recipe, config.seed)
        ]
        self.rate = torch.zeros((), device=device)
        self.losses = torch.zeros(count, dtype=config.dtype, device=device)
        self.streams = [
            torch.cuda.Stream(device) for _ in range(count if device.type == "cuda" else 0)
        ]
        changed = [tensor for trainee in self.trainees for tensor in trainee.changing.values()]
        self.samples, self.steps = {}, {}
        # The last batch of an epoch may be smaller
        for size in {len(samples) for samples in self.order}:
            self.samples[size] = torch.arange(size, device=device)
            self.steps[size] = capture(partial(self._step, self.samples[size]), changed, device)

    def _step(self, samples: Tensor) -> Tensor:
        """Take a step of each network, and return their losses (count,)."""
        if not self.streams:
            for row, trainee in enumerate(self.trainees):
                self.losses[row] = trainee.step(samples, self.rate)
            return self.losses
        main = torch.cuda.current_stream(self.family.device)
        for row, (trainee, stream) in enumerate(zip(self.trainees, self.streams, strict=True)):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                self.losses[row].copy_(trainee.step(samples, self.rate))
        for stream in self.streams:
            main.wait_stream(stream)
        return self.losses

    def train(self, group: Sequence[int]) -> None:
        """Train the networks of a group; lanes beyond them repeat what they did before."""
        run, config, device = self.run, self.family.config, self.family.device
        start = time.perf_counter()
        for trainee, b in zip(self.trainees, group, strict=False):
            load(trainee.network, state_of(self.family.network(run.network_ids[b])))
            trainee.momenta.zero_()
            for target, values in zip(
                trainee.data, _on_device(run.datasets, b, device), strict=True
            ):
                target.copy_(values)
        losses = []
        with contextlib.ExitStack() as stack:
            stack.enter_context(
                seeded(seed_sequence(config.seed, 3, run.network_ids[group[0]]), device)
            )
            bar = stack.enter_context(
                progress_bar(len(self.order), run.label, "step", run.progress)
            )
            for number, samples in enumerate(self.order):
                self.samples[len(samples)].copy_(samples)
                self.rate.fill_(config.recipe.rate(number, len(self.order)))
                losses.append(self.steps[len(samples)]().clone())
                bar.update()
                if (number + 1) % (len(self.order) // config.recipe.epochs) == 0:
                    losses[-1].tolist()  # wait for the device: it is steps behind
                    if run.seconds_left < 0:
                        raise TrainingTimeout(
                            f"{len(group)} networks took too long: {number + 1} steps done"
                        )
        by_network = torch.stack(losses, 1).cpu()  # (count, steps)
        seconds = (time.perf_counter() - start) / len(group)
        for trainee, b, values in zip(self.trainees, group, by_network, strict=False):
            require_finite(values, run.network_label(b))
            tested = run.test_datasets[b] is not None
            test = _on_device(run.test_datasets, b, device) if tested else None
            run.finish(b, trainee.network, (trainee.data, test), values, seconds, _EVALUATED)
            trainee.network.train()


def _on_device(datasets: Sequence[Any], b: int, device: torch.device) -> Dataset:
    """Return dataset b on a device; a separable one is made there."""
    if isinstance(datasets, SeparableDatasets):
        return datasets.batch([b], device=device)[0], datasets.labels.to(device)
    images, labels = datasets[b]
    return images.to(device), labels.to(device, torch.long)
