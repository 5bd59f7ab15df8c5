"""Accumulation of second moments over networks: resumable after an interrupt, and shared among
processes.

Checkpoints of unfinished computations are written atomically, and can be read on any machine.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from nads_core.directions.eigenpairs import Eigenpairs, EigenProblem
from nads_core.directions.evaluation import BatchEvaluator, Block
from nads_core.directions.moments import (
    DenseMoments,
    HalfSamples,
    Moments,
    effective_share,
    merged,
    split_halves,
)
from nads_core.directions.options import ComputeOptions
from nads_core.directions.stopping import GROUPS, StoppingRule
from nads_core.directions.symmetry_tests import self_terms
from nads_core.networks.ensembles import Identity
from nads_core.runtime import distributed
from nads_core.runtime.arguments import Facts
from nads_core.runtime.files import load_checkpoint, save_checkpoint
from nads_core.runtime.interrupts import deferred_interrupt
from nads_core.runtime.provenance import canonical, differences, fingerprint

_CHECKPOINT_SECONDS = 5.0  # at least, between two of them
_CHECKPOINT_PAUSE = 50  # times what saving one takes, if that is longer
_SAME_OUTPUTS = 1e-3  # relative difference of the outputs of one network on two processors
_EXCHANGED_BATCHES = 8  # of each process, between two sums over processes
# Attributes that a checkpoint stores under their own names
_STORED = ("description", "blocks_done", "seconds", "identities", "devices", "scale", "powers")


class Accumulation:
    """Moments of the networks so far, and the checkpoint that stores them.

    Args:
        description: everything that determines the numbers; a file with another description is
            rejected. A short fingerprint of it takes the place of ``{run}`` in the name of the
            file.
        moments: accumulator of the kind and size that is wanted.
        path: path of the checkpoint, or None.
        measures_error: whether to sum the networks in groups, whose halves `subspace_error`
            compares.
        device: kind of device that draws the networks: the generators of a CPU and of a GPU draw
            different ones. A file that was begun on one kind can be resumed on the other, which
            draws the remaining networks.
        scale: factor of the networks' vectors; an existing file has its own.

    Raises:
        ValueError: if the file is no checkpoint, or that of another computation.
    """

    def __init__(
        self,
        description: Facts,
        moments: Moments,
        path: Path | None,
        measures_error: bool = False,
        device: str = "cpu",
        scale: float = 1.0,
    ):
        self.groups = [moments.empty() for _ in range(GROUPS if measures_error else 1)]
        self.half_samples, self.scale = HalfSamples(), scale
        self.description = description | {"groups": len(self.groups)}
        # Symmetries are tested where the moments are dense
        dense = isinstance(moments, DenseMoments)
        self._images = tuple(description.get("image_shape", ())) if dense else ()
        self.powers = torch.zeros(1, dtype=torch.float64)  # sums of `_powers`
        self.name = fingerprint(canonical(self.description | {"block_size": None}))[:8]
        self.path = path and path.with_name(path.name.replace("{run}", self.name))
        self.blocks_done, self.seconds = 0, 0.0
        self._clock_start, self._pause = time.perf_counter(), _CHECKPOINT_SECONDS
        # Of the factory, by the kind of device that drew the networks
        self.identities: dict[str, Identity] = {}
        self.device, self.devices = device, [device]  # of this call, and of all calls
        if self.path and self.path.exists():
            self._restore(read_checkpoint(self.path))

    def _restore(self, saved: Facts) -> None:
        before = saved["description"]
        # Devices draw blocks of different sizes: a file is continued with its own
        now = self.description | {"block_size": before.get("block_size")}
        if different := differences(before, now):
            raise self._of_another(different)
        for group, state in zip(self.groups, saved["moments"], strict=True):
            group.load_state_dict(state)
        self.half_samples.load_state_dict(saved["first_networks"])
        for name in _STORED:
            setattr(self, name, saved[name])
        if self.device not in self.devices:
            self.devices.append(self.device)

    def identify(self, identity: Identity) -> None:
        """Compare the factory with that of the file, because factories can share names.

        Args:
            identity: `Ensemble.identity` of the factory, with the vector of network 0.

        Raises:
            ValueError: if they differ.
        """
        before = self.identities.setdefault(self.device, identity)
        # Processors differ by 0.1 in gradients of bfloat16
        rounding = 0.3 if self.description.get("dtype") == "torch.bfloat16" else 0.05
        if change := _change(before, identity, rounding):
            raise self._of_another(change)

    def _of_another(self, difference: str) -> ValueError:
        """Return the error for a file that does not belong to this computation."""
        return ValueError(
            f"{self.path} belongs to another computation ({difference}): name another file"
        )

    def elapsed(self) -> float:
        """Return the seconds spent so far, earlier calls included."""
        return self.seconds + time.perf_counter() - self._clock_start

    def total(self) -> Moments:
        """Return the moments of all networks."""
        return merged(self.groups)

    def eigenpairs(self, count: int, debiasing: str, symmetries: tuple[str, ...]) -> Eigenpairs:
        """Return the leading eigenpairs of the second moment, see `EigenProblem`."""
        moments, share = self.total(), self.effective_share
        return EigenProblem(
            moments, self.half_samples, count, self._images, debiasing, symmetries, share
        ).eigenpairs()

    def _powers(self, halves: Tensor) -> Tensor:
        """Return the sums over networks that `effective_share` and `self_terms` are made of, from
        their halves (B, R, 2, D).
        """
        squares = halves.mean(2).double().square().sum(2).mean(1)  # |g|^2 (B,), means over readouts
        norms = torch.stack([torch.ones_like(squares), squares, squares.square()]).sum(1)
        return torch.cat([norms, self_terms(halves, self._images)]).cpu()

    @property
    def effective_share(self) -> float:
        """The effective number of networks over their number."""
        return effective_share(*self.powers[:3].tolist())

    @property
    def self_terms(self) -> Tensor:
        """The `self_terms` of all networks."""
        return self.powers[3:]

    def add(
        self, blocks: list[Block], contributions: Tensor, block_size: int, groups: list[Moments]
    ) -> Tensor:
        """Add the networks of several blocks, each to the group of its number.

        Args:
            blocks: blocks of the networks.
            contributions: vectors of their networks, (B * readouts, J, D).
            block_size: size of all blocks but the last.
            groups: moments to add to.

        Returns:
            What these networks add to ``powers``.
        """
        contributions = contributions * self.scale
        powers = torch.zeros_like(self.powers)
        readouts = len(contributions) // sum(count for _, count in blocks)
        parts = contributions.split([count * readouts for _, count in blocks])
        for (block, _), part in zip(blocks, parts, strict=True):
            groups[block % len(groups)].update(part)
            self.half_samples.update(block, block_size, part, readouts)
            halves = torch.stack(split_halves(part), dim=1)  # (B * R, 2, D)
            powers = powers + self._powers(halves.unflatten(0, (-1, readouts)))
        return powers

    def save(self, path: Path) -> None:
        """Write a checkpoint, whole or not at all: the attributes in `_STORED`, and the states of
        all moments.

        Raises:
            OSError: if there is no space for it, or the folder is not writable; an earlier file is
                unchanged then.
        """
        self.seconds, self._clock_start = self.elapsed(), time.perf_counter()
        content = {name: getattr(self, name) for name in _STORED}
        content["moments"] = [group.state_dict() for group in self.groups]
        content["first_networks"] = self.half_samples.state_dict()
        save_checkpoint(path, content)
        self._pause = max(
            _CHECKPOINT_SECONDS, _CHECKPOINT_PAUSE * (time.perf_counter() - self._clock_start)
        )

    def reject(self) -> None:
        """Rename the checkpoint, whose networks may be wrong, so that no call resumes it."""
        with suppress(FileNotFoundError):  # where there is none, or another process was faster
            if self.path:
                self.path.replace(self.path.with_name(f"{self.path.name}.rejected"))

    def save_if_due(self) -> None:
        """Write the state if it has a file and the last time is long ago."""
        if self.path and time.perf_counter() - self._clock_start > self._pause:
            self.save(self.path)


def accumulate(
    evaluator: BatchEvaluator,
    state: Accumulation,
    num_networks: int,
    rule: StoppingRule | None = None,
    progress: bool = True,
) -> int:
    """Add the networks that ``state`` lacks, all of them or until the stopping rule is met.

    Returns:
        The number of networks in ``state``.

    Raises:
        KeyboardInterrupt: on Ctrl-C, when the state has been saved; the message names the file.
        ValueError: if a network returns NaN, or the checkpoint holds more networks than requested.
    """
    from tqdm import tqdm

    ensemble, size = evaluator.ensemble, evaluator.ensemble.block_size
    _require_num_networks(num_networks, state, size)
    rule = rule or StoppingRule(ensemble.image_shape, ComputeOptions())
    lead = distributed.rank() == 0
    blocks = list(ensemble.blocks(num_networks, state.blocks_done))
    # An incomplete block, which no checkpoint holds
    rest = [blocks.pop()] if blocks and blocks[-1][1] < size else []
    bar = tqdm(
        total=num_networks,
        initial=state.blocks_done * size,
        unit="net",
        desc=f"NADs of {evaluator.name}",
        disable=not progress or not lead,
        mininterval=0.5,
    )
    checks = rule.check_schedule(size)
    check = next(number for number in checks if number >= state.blocks_done)
    # Processes differ in threads and free memory; all of them sum after as many blocks
    at_once = int(distributed.broadcast(evaluator.blocks_at_once))
    if distributed.size() > 1:
        at_once *= distributed.size() * _EXCHANGED_BATCHES
    enough = False

    def stop_if_interrupted() -> None:
        if any(distributed.all_gather(bool(interrupted))):
            raise KeyboardInterrupt(_saved_when_interrupted(state, num_networks, size))

    with bar, deferred_interrupt("stopping after the batches in progress ...") as interrupted:
        while True:
            if state.blocks_done == check:
                met, values = rule.measure(state)
                bar.set_postfix(values)
                enough = bool(distributed.broadcast(met))  # processors round differently
                check = next(checks)
            if enough or not blocks:
                break
            count = int(min(at_once, check - state.blocks_done))
            batch, blocks = blocks[:count], blocks[count:]
            _add_shared(state, evaluator, batch, bar.update)
            state.blocks_done += len(batch)
            if lead:
                state.save_if_due()
            stop_if_interrupted()
        if lead and state.path:
            state.save(state.path)  # whole blocks only, so that a later call can add networks
        if rest and not enough:  # every process adds these for itself
            contributions = evaluator.contributions(rest)
            stop_if_interrupted()
            state.powers = state.powers + state.add(rest, contributions, size, state.groups)
            bar.update(rest[0][1])
    return state.blocks_done * size if enough else num_networks


def _require_num_networks(num_networks: int, state: Accumulation, block_size: int) -> None:
    """Raise a ValueError if the state has more networks, or too few for the error of halves."""
    done = state.blocks_done * block_size
    if done > num_networks:
        raise ValueError(
            f"{state.path} already holds {done} networks: num_networks = {num_networks} is too few"
        )
    needed = (len(state.groups) - 1) * block_size + 1  # so that no group is empty
    if num_networks < needed:
        raise ValueError(
            f"a tolerance needs {needed} networks or more, got num_networks = {num_networks}"
        )


def _add_shared(
    state: Accumulation,
    evaluator: BatchEvaluator,
    blocks: list[Block],
    advance: Callable[[int], object],
) -> None:
    """Add blocks, of which each process evaluates its share, and sum over processes.

    Args:
        state: moments to add to.
        evaluator: evaluator of the networks.
        blocks: consecutive blocks.
        advance: function that takes the number of networks done since the last call.
    """
    num_processes = distributed.size()
    local_groups = state.groups if num_processes == 1 else [group.empty() for group in state.groups]
    share, step = blocks[distributed.rank() :: num_processes], evaluator.blocks_at_once
    size, powers = evaluator.ensemble.block_size, torch.zeros_like(state.powers)
    for batch in [share[i : i + step] for i in range(0, len(share), step)]:
        powers = powers + state.add(batch, evaluator.contributions(batch), size, local_groups)
        advance(num_processes * sum(count for _, count in batch))
    state.powers = state.powers + sum(distributed.all_gather(powers))
    if num_processes == 1:
        return
    for group, added in zip(state.groups, local_groups, strict=True):
        added.gather()
        group.merge(added)  # type: ignore[arg-type]  # all groups are of one kind
    if state.half_samples.wants(blocks[0][0], size):  # the same answer in all processes
        state.half_samples.gather()


def _change(old: Identity, new: Identity, allowed: float) -> str:
    """Describe how a factory differs from that of a checkpoint; return "" if it does not.

    Args:
        old: identity in the checkpoint.
        new: identity of the factory.
        allowed: relative difference of the vectors of the first network that is rounding.
    """
    before, now = old["outputs"], new["outputs"]  # (networks, inputs)
    # (inputs,), relative
    change = (now - before).norm(dim=0) / before.norm(dim=0).clamp(min=1e-300)
    size = float(change.nan_to_num(0, 0).max())
    if size > _SAME_OUTPUTS:
        layers = differences(old["layers"], new["layers"]) or "its layers do not"
        return f"the outputs of its first networks differ by {100 * size:.2g} %; {layers}"
    if old["replayed"] != new["replayed"]:
        return "one factory draws the weights of many networks together, the other one by one"
    if (new["vector"] - old["vector"]).norm() > allowed * new["vector"].norm():
        return "the vectors that its estimator returns for the first network differ"
    return ""


def _saved_when_interrupted(state: Accumulation, num_networks: int, block_size: int) -> str:
    """Save the state, and return the message that names the file."""
    path = state.path
    if not path:
        # Factories can share a description, as lambdas do; the gradient of network 0 differs
        norm = distributed.broadcast(float(state.identities[state.device]["vector"].norm()))
        path = Path(f"interrupted-nads-{state.name}-{norm:.2e}.ckpt")
    if distributed.rank() == 0:
        state.save(path)
    done = f"stopped after {state.blocks_done * block_size} of {num_networks} networks"
    return f"{done}; the same call with checkpoint={str(path)!r} resumes"


def read_checkpoint(path: Path) -> Facts:
    """Return what a checkpoint holds, on the CPU, wherever it was written.

    Raises:
        ValueError: if the file is none, was cut off, or differs by a bit from what was written.
    """
    saved: Facts = load_checkpoint(path, "compute_nads")
    if not isinstance(saved, dict) or not {"moments", "first_networks", *_STORED} <= saved.keys():
        raise ValueError(
            f"{path} is no checkpoint of compute_nads, or of an earlier version: name another file"
        )
    return saved
