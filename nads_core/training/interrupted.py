"""The state of a training after its last complete epoch, in a file from which a killed process resumes."""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from nads_core.runtime.files import atomic_write
from nads_core.runtime.seeds import generator_state

_SECONDS = 5.0  # at least, between two files: an epoch of a small network takes less than writing one is worth


@dataclass
class TrainingState:
    """One training's file. Its name has to stand for all that decides about the training.

    Args:
        path: file of the state; it exists from the end of the first epoch until `forget` is called.
    """

    path: Path
    seconds: float = 0.0  # that earlier calls took
    _saved_at: float = field(default=0.0, repr=False)

    def restore(self, tensors: Mapping[str, Tensor], device: torch.device) -> list[Tensor]:
        """Fill tensors and torch's generator as they were; return the losses so far, none to begin from the start.

        Raises:
            ValueError: if the file is damaged.
        """
        self._saved_at = time.perf_counter()
        if not self.path.exists():
            return []
        try:
            saved = torch.load(self.path, weights_only=True, map_location="cpu")
            for name, tensor in tensors.items():
                tensor.copy_(saved["tensors"][name])
            _set_generator(saved["generator"], device)
            self.seconds = saved["seconds"]
            return list(saved["losses"].to(device))
        except (RuntimeError, KeyError, EOFError, pickle.UnpicklingError) as error:
            raise ValueError(
                f"{self.path} does not hold a training to go on with ({type(error).__name__}): without that file it "
                "begins again"
            ) from error

    def save_if_due(
        self, tensors: Mapping[str, Tensor], losses: list[Tensor], device: torch.device, seconds: float
    ) -> None:
        """Write the state after an epoch, unless the last time is a moment ago."""
        if time.perf_counter() - self._saved_at < _SECONDS:
            return
        state = {"tensors": dict(tensors), "losses": torch.stack(losses), "generator": generator_state(device)}
        state["seconds"] = self.seconds + seconds
        with atomic_write(self.path, "wb") as file:
            torch.save(state, file)
        self._saved_at = time.perf_counter()

    def forget(self) -> None:
        """Delete the file: what the training reached is kept elsewhere."""
        self.path.unlink(missing_ok=True)


def _set_generator(state: Tensor, device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
