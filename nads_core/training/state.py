"""Checkpoints of trainings: the state after the last whole epoch, from which a killed training
resumes.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from nads_core.runtime.arguments import Facts
from nads_core.runtime.files import load_checkpoint, save_checkpoint
from nads_core.runtime.provenance import differences
from nads_core.runtime.seeds import generator_state
from nads_core.training.steps import Trainee

_SECONDS = 5.0  # minimum between two files, because epochs of small networks are short


@dataclass
class TrainingState:
    """Checkpoint of one training, which rejects the file of another one.

    Args:
        path: path of the file, which exists from the end of the first epoch until `forget` is
            called.
        seconds: training time of earlier calls.
    """

    path: Path
    seconds: float = 0.0
    _saved_at: float = field(default=0.0, repr=False)
    _identity: Facts = field(default_factory=dict, init=False, repr=False)

    def restore(self, trainee: Trainee) -> list[Tensor]:
        """Restore a network in training and the state of torch's generator; return the losses (1,)
        so far, none without a file.

        Raises:
            ValueError: if the file is damaged, of an earlier version, or of another training: of
                other options, shapes or labels, or of another first image but for rounding.
        """
        sample = trainee.data[0][0]
        self._saved_at = time.perf_counter()
        self._identity = {"training": trainee.identity, "sample": sample.cpu().clone()}
        if not self.path.exists():
            return []
        saved = load_checkpoint(self.path, "a training")
        if "sample" not in saved:
            raise ValueError(
                f"{self.path} holds no state of a training, or one of an earlier version: delete it"
            )
        different = differences(saved["training"], self._identity["training"])
        image = saved["sample"].to(sample)
        # Processors round differently
        if not different and (image - sample).norm() > 1e-4 * image.norm():
            different = "its first image differs"
        if different:
            raise ValueError(
                f"{self.path} belongs to another training ({different:.300}): name another file"
            )
        for name, tensor in trainee.changing.items():
            tensor.copy_(saved["tensors"][name])
        if trainee.device.type == "cuda":
            torch.cuda.set_rng_state(saved["generator"], trainee.device)
        else:
            torch.set_rng_state(saved["generator"])
        self.seconds = saved["seconds"]
        return [*saved["losses"].to(trainee.device).split(1)]

    def save_if_due(self, trainee: Trainee, losses: list[Tensor], seconds: float) -> None:
        """Write the state after an epoch, unless the last file is recent."""
        if time.perf_counter() - self._saved_at < _SECONDS:
            return
        state = {
            "tensors": trainee.changing,
            "losses": torch.cat(losses),
            "generator": generator_state(trainee.device),
            "seconds": self.seconds + seconds,
            **self._identity,
        }
        save_checkpoint(self.path, state)
        self._saved_at = time.perf_counter()

    def forget(self) -> None:
        """Delete the file once the result is stored elsewhere."""
        self.path.unlink(missing_ok=True)
