"""The state of a run in a file, from which the same call resumes."""

from __future__ import annotations

import itertools
import json
import os
import time
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nads_core.directions.moments import Moments
from nads_core.directions.workers import Evaluated
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import differences

_EVERY = 30.0  # seconds between two saves, or 20 times what a save takes
_SAME = 1e-3  # relative difference of the first network's vectors that is rounding
_NUMBERS = ("scale", "num_networks", "num_vectors", "silent")


class Checkpoint:
    """The file of a run.

    Args:
        path: path of the file; None to save only after an interrupt.
        job: what evaluates the networks.
    """

    def __init__(self, path: str | os.PathLike[str] | None, job: Evaluated):
        self.path = Path(path).expanduser() if path else None
        self.job, self.seconds = job, 0.0
        self._began = time.monotonic()
        self._due = self._began + _EVERY

    @cached_property
    def first(self) -> Tensor:
        """Vectors of network 0, (1, J, R, D), by which a factory is recognised."""
        return self.job.vectors(range(1)).double().cpu()

    def restore(self, moment: Moments) -> None:
        """Put the state in the file, if there is one, into a second moment without networks.

        Raises:
            ValueError: if the file is damaged, or that of another run.
        """
        if self.path is None or not self.path.exists():
            return
        try:
            with self.path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = {name: torch.from_numpy(file[name]) for name in file if name != "facts"}
                facts = json.loads(str(file["facts"]))
            first = arrays["first"]
        except Exception as error:  # a reader of something else can raise anything
            raise ValueError(
                f"{self.path} is damaged, or no checkpoint of compute_nads ({error!r}): name "
                "another file, or delete it"
            ) from error
        if changed := differences(facts["description"], moment.description):
            raise ValueError(f"{self.path} is of another computation: {changed}")
        if first.shape != self.first.shape or not (
            (first - self.first).norm() <= _SAME * self.first.norm()
        ):
            raise ValueError(
                f"{self.path} is of another factory: the vectors of network 0 differ; name another "
                "file"
            )
        for name in _NUMBERS:
            setattr(moment, name, facts[name])
        self.seconds = facts["seconds"]
        moment.sums = arrays.get("sums")
        if moment.sums is not None:
            for total in moment.sums:  # of earlier files not symmetric
                total.copy_((total + total.T) / 2)
        moment.rows = list(arrays["rows"].split(1)) if "rows" in arrays else []

    def save_if_due(self, moment: Moments) -> None:
        """Save the state where the last save is long ago."""
        if self.path and time.monotonic() > self._due:
            self.save(moment)

    def save(self, moment: Moments, fallback: str | None = None) -> Path | None:
        """Write the state, whole or not at all; return the file.

        Args:
            moment: the state.
            fallback: file without a path of its own, with a number where it exists; None to write
                none.

        Raises:
            OSError: if it cannot be written; an earlier file is unchanged then.
        """
        path = self.path or (_unused(Path(fallback)) if fallback else None)
        if path is None:
            return None
        begin = time.monotonic()
        facts = {name: getattr(moment, name) for name in _NUMBERS}
        facts["description"] = moment.description
        facts["seconds"] = self.seconds + begin - self._began
        arrays = {"facts": np.array(json.dumps(facts)), "first": self.first.numpy()}
        if moment.sums is not None:
            arrays["sums"] = moment.sums.numpy()
        if moment.rows:
            arrays["rows"] = torch.cat(moment.rows).numpy()
        with atomic_write(path, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # no allow_pickle in it
        now = time.monotonic()
        self._due = now + max(_EVERY, 20 * (now - begin))
        return path


def _unused(path: Path) -> Path:
    """Return a path, with the first number that makes it one of no file."""
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in itertools.count(2))
    return next(one for one in itertools.chain([path], numbered) if not one.exists())
