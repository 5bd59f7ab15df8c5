"""Checkpoints of trainings: the state after the last whole epoch, from which a killed training resumes."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from nads_core.runtime.files import load_checkpoint, save_checkpoint
from nads_core.runtime.seeds import generator_state

_SECONDS = 5.0  # minimum between two files, because epochs of small networks are short


@dataclass
class TrainingState:
    """Checkpoint of one training. Its path must identify everything that determines the training.

    Args:
        path: path of the file, which exists from the end of the first epoch until `forget` is called.
        seconds: training time of earlier calls.
    """

    path: Path
    seconds: float = 0.0
    _saved_at: float = field(default=0.0, repr=False)

    def restore(self, tensors: Mapping[str, Tensor], device: torch.device) -> list[Tensor]:
        """Restore tensors and the state of torch's generator; return the losses so far, none without a file.

        Raises:
            ValueError: if the file is damaged.
        """
        self._saved_at = time.perf_counter()
        if not self.path.exists():
            return []
        saved = load_checkpoint(self.path, "a training")
        for name, tensor in tensors.items():
            tensor.copy_(saved["tensors"][name])
        if device.type == "cuda":
            torch.cuda.set_rng_state(saved["generator"], device)
        else:
            torch.set_rng_state(saved["generator"])
        self.seconds = saved["seconds"]
        return list(saved["losses"].to(device))

    def save_if_due(
        self, tensors: Mapping[str, Tensor], losses: list[Tensor], device: torch.device, seconds: float
    ) -> None:
        """Write the state after an epoch, unless the last file is recent."""
        if time.perf_counter() - self._saved_at < _SECONDS:
            return
        state = {
            "tensors": dict(tensors), "losses": torch.stack(losses), "generator": generator_state(device),
            "seconds": self.seconds + seconds,
        }  # fmt: skip
        save_checkpoint(self.path, state)
        self._saved_at = time.perf_counter()

    def forget(self) -> None:
        """Delete the file once the result is stored elsewhere."""
        self.path.unlink(missing_ok=True)
