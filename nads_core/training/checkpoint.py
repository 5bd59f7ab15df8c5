"""Checkpoint of a training: the state after its last whole epoch, from which it resumes with the
same numbers.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from nads_core.runtime.files import load_checkpoint, save_checkpoint
from nads_core.runtime.provenance import differences, fingerprint
from nads_core.runtime.seeds import generator_state
from nads_core.training.recipe import Dataset, TrainConfig

_SECONDS = 5.0  # minimum between two files, because epochs of small networks are short


@dataclass
class Checkpoint:
    """The file of one training, which rejects the file of another one.

    Args:
        path: path of the file.
        network: network in training.
        optimiser: its optimiser.
        data: training set.
        config: options of the training.
        seconds: training time of earlier calls.
    """

    path: Path
    network: nn.Module
    optimiser: torch.optim.Optimizer
    data: Dataset
    config: TrainConfig
    seconds: float = 0.0

    def __post_init__(self) -> None:
        images, labels = self.data
        parameters, buffers = self.network.named_parameters(), self.network.named_buffers()
        self.tensors = dict(parameters) | dict(buffers)
        self.sample = images[0].cpu().clone()
        self.identity = {
            "config": asdict(self.config) | {"device": images.device.type},
            "images": [str(images.dtype), *images.shape],
            "labels": fingerprint(labels.cpu().numpy()),
            "network": {name: list(tensor.shape) for name, tensor in self.tensors.items()},
        }
        self.saved_at = time.perf_counter()

    def restore(self) -> Tensor:
        """Restore network, optimiser and the state of torch's generator; return the losses so far,
        none without a file.

        Raises:
            ValueError: if the file is damaged, of an earlier version, or of another training.
        """
        if not self.path.exists():
            return torch.empty(0)
        saved = load_checkpoint(self.path, "a training")
        different = differences(saved.get("identity", {}), self.identity)
        # Processors round differently
        if not different and (saved["sample"] - self.sample).norm() > 1e-4 * self.sample.norm():
            different = "its first image differs"
        if different:
            raise ValueError(
                f"{self.path} belongs to another training ({different:.300}): name another file"
            )
        with torch.no_grad():
            for name, tensor in self.tensors.items():
                tensor.copy_(saved["tensors"][name])
        self.optimiser.load_state_dict(saved["optimiser"])
        if self.config.device.type == "cuda":
            torch.cuda.set_rng_state(saved["generator"], self.config.device)
        else:
            torch.set_rng_state(saved["generator"])
        self.seconds = saved["seconds"]
        losses: Tensor = saved["losses"]
        return losses

    def save_if_due(self, losses: Tensor, seconds: float) -> None:
        """Write the state after an epoch, unless the last file is recent."""
        if time.perf_counter() - self.saved_at < _SECONDS:
            return
        state = {
            "identity": self.identity,
            "sample": self.sample,
            "tensors": self.tensors,
            "optimiser": self.optimiser.state_dict(),
            "generator": generator_state(self.config.device),
            "losses": losses.clone(),
            "seconds": self.seconds + seconds,
        }
        save_checkpoint(self.path, state)
        self.saved_at = time.perf_counter()
