"""Adding networks to second moments: interruptible, resumable, shared among processes, and ended when enough are in."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from nads_core.directions.covariance import DenseMoments, GramMoments, leading_subspace, subspace_overlap
from nads_core.directions.input_gradients import Draw, Estimator
from nads_core.machinery import distributed
from nads_core.machinery.files import replacing
from nads_core.machinery.interrupts import DeferredInterrupt
from nads_core.machinery.provenance import canonical, differences, fingerprint
from nads_core.networks.crew import Crew
from nads_core.networks.ensembles import Ensemble

_CHECKPOINT_SECONDS = 5.0  # at least, between two of them
_CHECKPOINT_PAUSE = 50  # times what saving one takes, if that is longer
_EXCHANGE_SECONDS = 5.0  # between two sums over processes
_CHECKED_NETWORKS = 8
_GROUPS = 4  # of networks, from which the error is told
_FIRST_CHECK, _CHECK_GROWTH = 64, 1.25  # networks at which the error is told, and from one check to the next


class Accumulation:
    """The moments of the networks so far, and the file that remembers them.

    Args:
        description: what is computed; a file with another description is refused.
        moments: an empty accumulator.
        path: the checkpoint, or None.
        measures_error: keep the networks in groups, so that `error` can compare halves.
        device: where the networks are drawn: the generators of a CPU and of a GPU draw different ones. A file that was
            begun on one goes on on the other, with new networks from there.

    Raises:
        ValueError: if the file is no checkpoint, or that of another computation.
    """

    def __init__(
        self,
        description: dict,
        moments: DenseMoments | GramMoments,
        path: Path | None,
        measures_error: bool = False,
        device: str = "cpu",
    ):
        self.groups = [moments.empty() for _ in range(_GROUPS if measures_error else 1)]
        self.description, self.path = description | {"groups": len(self.groups)}, path
        self.blocks_done, self.seconds, self._saved_at, self._pause = 0, 0.0, time.perf_counter(), _CHECKPOINT_SECONDS
        self.first: dict[str, Tensor] = {}  # the vector of network 0, by the kind of device that drew it
        self.device, self.devices = device, [device]  # of this call, and of all
        if path and path.exists():
            self._load(path)

    def _load(self, path: Path) -> None:
        saved = read_checkpoint(path)
        different = differences(saved["description"], self.description)
        if different:
            raise ValueError(
                f"{path} belongs to another computation ({different}): name another file, or go on with what it was "
                "begun with"
            )
        for group, state in zip(self.groups, saved["moments"], strict=True):
            group.load_state_dict(state)
        self.blocks_done, self.seconds, self.first = saved["blocks_done"], saved["seconds"], saved["first"]
        self.devices = list(dict.fromkeys([*saved["devices"], self.device]))

    def identify(self, first: Tensor) -> None:
        """Refuse a file whose network 0 had another vector: two factories can share a name."""
        first, before = first.double().cpu(), self.first.get(self.device)
        most = (
            0.3 if self.description.get("dtype") == "torch.bfloat16" else 0.05
        )  # processors differ by 0.1 in bfloat16
        if before is not None and (first - before).norm() > most * first.norm():
            raise ValueError(
                f"{self.path} belongs to another computation (the gradient of its first network differs): "
                "name another file"
            )
        self.first[self.device] = first

    def digest(self) -> str:
        """Return a short name that differs between computations."""
        return fingerprint(canonical(self.description), f"{float(self.first[self.device].norm()):.2e}")[:8]

    def elapsed(self) -> float:
        """Return the seconds spent so far, earlier calls included."""
        return self.seconds + time.perf_counter() - self._saved_at

    def total(self) -> DenseMoments | GramMoments:
        """Return the moments of all networks."""
        return _joined(self.groups)

    def error(self, num_directions: int, symmetries: tuple[str, ...], image_shape: tuple) -> tuple[float, float]:
        """Tell how far the first directions are from those of infinitely many networks.

        Two halves of the networks, each with twice the error of the whole, miss each other by the sum of their errors:
        1 - overlap is about four times the error of the whole. Four groups make three pairs of halves.

        Returns:
            The mean of 1 - overlap with the exact subspace, and twice its standard deviation over the pairs.
        """
        values = []
        for pair in ((0, 1), (0, 2), (0, 3)):
            halves = [[g for i, g in enumerate(self.groups) if (i in pair) == inside] for inside in (True, False)]
            first, second = (
                leading_subspace(_joined(half), num_directions, image_shape, symmetries) for half in halves
            )
            values.append((1 - subspace_overlap(first, second)) / 4)
        return float(torch.tensor(values).mean()), 2 * float(torch.tensor(values).std())

    def save(self, path: Path | None = None) -> None:
        """Write the state, whole or not at all."""
        path = path or self.path
        if path is None:
            return
        self.seconds, self._saved_at = self.elapsed(), time.perf_counter()
        state = {"moments": [group.state_dict() for group in self.groups], "blocks_done": self.blocks_done}
        state |= {"seconds": self.seconds, "first": self.first, "devices": self.devices}
        with replacing(path, "wb") as file:
            torch.save({"description": self.description, **state}, file)
        self._pause = max(_CHECKPOINT_SECONDS, _CHECKPOINT_PAUSE * (time.perf_counter() - self._saved_at))

    def save_if_due(self) -> None:
        """Write the state if the last time is long ago."""
        if self.path and time.perf_counter() - self._saved_at > self._pause:
            self.save()


def read_checkpoint(path: Path) -> dict:
    """Return what a checkpoint holds, on the CPU, wherever it was written.

    Raises:
        ValueError: if the file is none.
    """
    try:
        saved = torch.load(path, weights_only=True, map_location="cpu")
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ValueError(
            f"{path} is damaged, or no checkpoint of compute_nads ({type(error).__name__}): name another file, or "
            "delete it if it was one"
        ) from error
    if not isinstance(saved, dict) or not {"description", "moments", "blocks_done", "seconds"} <= saved.keys():
        raise ValueError(f"{path} is no checkpoint of compute_nads, but another file of torch's: name another file")
    if "devices" not in saved:
        raise ValueError(
            f"{path} was written by nads_core 0.1, whose checkpoints don't say which numbers they hold: finish it with "
            "that version, or name another file"
        )
    return saved


def _joined(groups: list) -> DenseMoments | GramMoments:
    if len(groups) == 1:
        return groups[0]
    whole = groups[0].empty()
    for group in groups:
        whole.merge(group)
    return whole


def _gather(moments: DenseMoments | GramMoments) -> None:
    """Replace each process's moments by those of all processes together, in place."""
    if isinstance(moments, DenseMoments):
        for tensor in moments.sums():
            distributed.add_up(tensor)
        moments.num_networks = int(distributed.added(moments.num_networks))
        return
    states = distributed.collected(moments.state_dict())
    moments.load_state_dict({key: [tensor for state in states for tensor in state[key]] for key in states[0]})


def check_gradients(ensemble: Ensemble, estimator: Estimator, name: str) -> Tensor:
    """Refuse a network that ignores its input, before hours are spent on it; return the vector of network 0."""
    first = None
    for block, _ in ensemble.blocks(_CHECKED_NETWORKS):
        draw = estimator.draw(ensemble, block)[:_CHECKED_NETWORKS].thin()
        contributions = estimator.contributions(ensemble, draw)
        first = contributions[0].mean(0) if first is None else first
        _require_finite(ensemble.outputs(draw.state, draw.inputs), block * ensemble.block_size, name, ensemble.seed)
        _require_finite(contributions.flatten(1), block * ensemble.block_size, name, ensemble.seed)
        if contributions.any():
            return first
    raise ValueError(
        f"the output of {name} does not depend on its input: "
        f"the estimator's vectors are zero for {_CHECKED_NETWORKS} networks"
    )


def _require_finite(values: Tensor, first: int, name: str, seed: int) -> None:
    finite = values.flatten(1).isfinite().all(1)
    if not finite.all():
        index = first + int((~finite).nonzero()[0])
        raise ValueError(
            f"network {index} of {name} (seed {seed}) returned NaN or infinite values: check its initialisation and "
            "divisions, and that eval mode is meant"
        )


@dataclass(frozen=True)
class Tolerance:
    """When to stop: once the first directions are known.

    Args:
        error: largest 1 - overlap with the exact subspace, at the upper end of its interval.
        num_directions: of the subspace.
        symmetries: that the second moment is averaged over.
    """

    error: float
    num_directions: int
    symmetries: tuple[str, ...]


def accumulate(
    ensemble: Ensemble,
    estimator: Estimator,
    state: Accumulation,
    num_networks: int,
    batch_size: int | None = None,
    tolerance: Tolerance | None = None,
    progress: bool = True,
) -> int:
    """Add the networks that ``state`` does not hold yet, all of them or until the tolerance is met.

    Returns:
        How many networks there are.

    Raises:
        KeyboardInterrupt: on Ctrl-C, when the state has been saved; the message says where.
        ValueError: if a network returns NaN, or the checkpoint holds more networks than asked for.
    """
    from tqdm import tqdm

    batch_size = batch_size or fitting_batch(ensemble)
    size = ensemble.block_size
    done = state.blocks_done * size
    if done > num_networks:
        raise ValueError(
            f"{state.path} already holds {done} networks, more than num_networks = {num_networks}: ask for as many at "
            "least, or name another file"
        )
    least = (len(state.groups) - 1) * size + 1
    if tolerance and num_networks < least:
        raise ValueError(
            f"tolerance compares {len(state.groups)} groups of networks, in blocks of {size}: ask for {least} networks "
            f"at least, not {num_networks}"
        )
    name, workers, lead = state.description["architecture"], distributed.size(), distributed.rank() == 0
    bar = tqdm(
        total=num_networks, initial=done, unit="net", desc=f"NADs of {name}", disable=not progress or not lead,
        mininterval=0.5,
    )  # fmt: skip
    blocks = list(ensemble.blocks(num_networks, state.blocks_done))
    rest = [blocks.pop()] if blocks and blocks[-1][1] < size else []
    together = max(1, batch_size // size)  # blocks evaluated by one thread
    crew = Crew(ensemble)
    per_step = together * crew.size
    checks = _check_blocks(size) if tolerance else iter([math.inf])
    check = next(checks)

    def stop_if_interrupted() -> None:
        if distributed.largest(interrupt.received):
            path = state.path or Path(f"interrupted-nads-{state.digest()}.ckpt")
            if lead:
                state.save(path)
            raise KeyboardInterrupt(
                f"stopped after {state.blocks_done * size} of {num_networks} networks; "
                f"call again with checkpoint={str(path)!r} to go on"
            )

    def known() -> bool:
        """Whether the tolerance is met, looked at on the same networks however they come in."""
        nonlocal check
        if state.blocks_done < check:
            return False
        while check <= state.blocks_done:
            met, check = check == state.blocks_done, next(checks)
        if not met:
            return False
        error, spread = state.error(tolerance.num_directions, tolerance.symmetries, ensemble.image_shape)
        bar.set_postfix_str(f"error {error:.3f} ± {spread:.3f}")
        return error + spread <= tolerance.error

    with bar, DeferredInterrupt("stopping after this batch ...") as interrupt:
        steps, enough = 1, known()  # steps of each worker, from one exchange to the next
        while blocks and not enough:
            start = time.perf_counter()
            most = int(min(workers * per_step * steps, check - state.blocks_done))
            share, blocks = blocks[:most], blocks[most:]
            parts = state.groups if workers == 1 else [group.empty() for group in state.groups]
            mine = share[distributed.rank() :: workers]
            for some in [mine[i : i + per_step] for i in range(0, len(mine), per_step)]:
                _add(parts, some, _contributions(crew, estimator, some, batch_size, name))
                bar.update(workers * sum(count for _, count in some))
            if workers > 1:
                for group, part in zip(state.groups, parts, strict=True):
                    _gather(part)
                    group.merge(part)
                seconds = distributed.agreed(time.perf_counter() - start) / steps
                steps = max(1, round(_EXCHANGE_SECONDS / seconds))
            state.blocks_done = share[-1][0] + 1
            if lead:
                state.save_if_due()
            stop_if_interrupted()
            enough = known()
        if lead:
            state.save()  # whole blocks only, so that a later call can add networks
        if rest and not enough:  # each worker adds these few for itself
            contributions = _contributions(crew, estimator, rest, batch_size, name)
            stop_if_interrupted()
            _add(state.groups, rest, contributions)
            bar.update(rest[0][1])
    return state.blocks_done * size if enough else num_networks


def _check_blocks(block_size: int) -> Iterator[int]:
    """Yield the numbers of blocks at which the error is told."""
    networks, last = _FIRST_CHECK, 0
    while True:
        blocks = max(_GROUPS, last + 1, round(networks / block_size))
        yield blocks
        networks, last = networks * _CHECK_GROWTH, blocks


def _add(groups: list[DenseMoments | GramMoments], blocks: list[tuple[int, int]], contributions: Tensor) -> None:
    """Add each block's networks to the group that its number says."""
    readouts = len(contributions) // sum(count for _, count in blocks)
    parts = contributions.split([count * readouts for _, count in blocks])
    for (block, _), part in zip(blocks, parts, strict=True):
        groups[block % len(groups)].update(part)


def _contributions(
    crew: Crew, estimator: Estimator, blocks: list[tuple[int, int]], batch_size: int, name: str
) -> Tensor:
    """Return the vectors (B, J, D) of the networks of some blocks."""

    def work(ensemble: Ensemble, some: list[tuple[int, int]]) -> Tensor:
        draw = Draw.cat([estimator.draw(ensemble, block)[:count] for block, count in some])
        parts = [draw[i : i + batch_size] for i in range(0, len(draw), batch_size)]
        contributions = torch.cat([estimator.contributions(ensemble, part) for part in parts])
        _require_finite(contributions.reshape(len(draw), -1), some[0][0] * ensemble.block_size, name, ensemble.seed)
        return contributions

    each = -(-len(blocks) // crew.size)
    return torch.cat(crew.map(work, [blocks[i : i + each] for i in range(0, len(blocks), each)]))


def fitting_batch(ensemble: Ensemble) -> int:
    """Networks evaluated together: one block on a CPU; on a GPU as many as an eighth of its free memory holds."""
    if ensemble.device.type != "cuda":
        return ensemble.block_size
    free, _ = torch.cuda.mem_get_info(ensemble.device)
    activations = 16 * 64 * math.prod(ensemble.image_shape) * 40  # a ResNet's, at 16 inputs; an upper guess for most
    bytes_each = 4 * (3 * ensemble.num_parameters + activations)
    return int(max(1, min(256, free // 8 // bytes_each)))
