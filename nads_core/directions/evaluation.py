"""Evaluation of blocks of networks by all threads of a process, and checks that their vectors are
valid.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nads_core.directions.estimators import Draw, Estimator
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.modules import failure
from nads_core.networks.readouts import described
from nads_core.networks.threaded import ThreadedEnsemble
from nads_core.runtime.memory import available_memory

# Number of the block, and number of its networks: only the last block may be incomplete
Block = tuple[int, int]

_CHECKED_NETWORKS = 8
_TRIED_NETWORKS = 128  # where the first ones ignore their input
_MOST_AT_ONCE = 512  # a dipole evaluates so many inputs at once
# The last 4 of 256 networks are compared with what the factory builds, and beyond 2,048 those of
# 2,048: on a GPU, where an audit takes as long as 100 LeNets, more would take most of the time
_AUDITED, _AUDITED_OF, _MANY = 4, 256, 2_048
_MEASURED_NETWORKS, _MOST_NETWORKS = 2, 512  # of which memory is measured; evaluated together
_CPU_BYTES = 2**27  # of a thread; all together have a quarter of the free memory, if that is less


@dataclass
class BatchEvaluator:
    """Evaluation of the vectors of an ensemble's networks, by as many threads as torch has.

    Args:
        ensemble: networks.
        estimator: estimator of each network's vectors.
        name: name of the architecture, for messages.
        batch_size: number of networks that a thread draws and evaluates together; `fitting_batch`
            by default.
        equal_weights: whether the vectors of a network are divided by the norm of their mean.
    """

    ensemble: Ensemble
    estimator: Estimator
    name: str
    batch_size: int | None = None
    equal_weights: bool = False

    def __post_init__(self) -> None:
        self._threads = ThreadedEnsemble(self.ensemble)
        self.set_block_size(self.ensemble.block_size)

    def set_block_size(self, size: int) -> None:
        """Draw blocks of this size, such as those of a checkpoint of another device."""
        if size != self.ensemble.block_size:
            self.ensemble.restart()  # `require_gradients` has begun a block of another size
        self.ensemble.block_size = size
        threads = self._threads.size
        self._batch = self.batch_size or fitting_batch(self.ensemble, self.estimator, threads)
        self.blocks_at_once = max(1, self._batch * threads // size)

    def contributions(self, blocks: list[Block]) -> Tensor:
        """Return the vectors (B * readouts, J, D) of the networks of several blocks, of which some
        are audited.

        Raises:
            ValueError: if a network returns NaN or infinite values, or an audited one is not what
                the factory builds.
        """
        size, together = self.ensemble.block_size, self._batch
        parts = [
            (block, slice(first, min(first + together, count)))
            for block, count in blocks
            for first in range(0, count, together)
        ]
        length = max(1, together // size)  # whole blocks, or one part
        tasks = [parts[i : i + length] for i in range(0, len(parts), length)]
        vectors = self._threads.map(self._evaluate, tasks)
        ensembles = self._threads.ensembles
        for index in (block * size + row for block, count in blocks for row in range(count)):
            if (number := audit_number(index)) is not None:
                ensembles[number % len(ensembles)].audit(index)
        return vectors[0] if len(vectors) == 1 else torch.cat(vectors)

    def audit_threads(self, index: int) -> None:
        """Compare one more network with what each thread makes of it now, after all others: a
        forward pass can change what a later one returns.
        """
        for ensemble in self._threads.ensembles:
            ensemble.audit(index)

    def _evaluate(self, ensemble: Ensemble, parts: list[tuple[int, slice]]) -> Tensor:
        # Blocks need not be consecutive: each of n processes evaluates every n-th.
        size = ensemble.block_size
        network_ids = [block * size + row for block, rows in parts for row in range(size)[rows]]
        draw = Draw.cat(
            [self.estimator.draw(ensemble.restrict(rows), block) for block, rows in parts]
        )
        try:
            contributions = self.estimator.contributions(ensemble, draw)
        except Exception as error:  # of the network or the estimator
            raise self._failure(ensemble, draw, network_ids, error) from error
        count, dimension, shape = len(draw), math.prod(ensemble.image_shape), contributions.shape
        if len(shape) != 3 or shape[0] % count or shape[2] != dimension:
            expected = f"({count} * readouts, J, {dimension}), readouts of a network together"
            raise ValueError(
                f"{self.estimator} returned vectors of shape {tuple(shape)}, expected {expected}"
            )
        _require_finite(contributions.reshape(count, -1), network_ids, self.name, ensemble.seed)
        if self.equal_weights:
            # (B * readouts, 1, 1)
            norms = contributions.mean(1, keepdim=True).double().norm(dim=2, keepdim=True)
            contributions = (contributions / norms.clamp(min=1e-300)).to(contributions)
        return contributions

    def _failure(
        self, ensemble: Ensemble, draw: Draw, network_ids: list[int], error: Exception
    ) -> Exception:
        """Return the error for networks that cannot be evaluated; it names the first one that fails
        alone.
        """
        networks = f"networks {network_ids[0]} to {network_ids[-1]}"
        for row, index in enumerate(network_ids):
            try:
                self.estimator.contributions(ensemble, draw[row : row + 1])
            except Exception as own:
                error, networks = own, f"network {index}"
                break
        return failure(f"{networks} of {self.name} (seed {ensemble.seed}) failed", error)


def require_gradients(ensemble: Ensemble, estimator: Estimator, name: str) -> tuple[Tensor, float]:
    """Raise a ValueError if the first networks ignore their input, mix those of a batch, or their
    gradients underflow.

    Returns:
        The vector of network 0, (D,), by which a computation can be recognised; and the power of
        two that brings the mean square of the vectors to about 1, or 1 if it lies in [1e-24, 1e24].
    """
    count = min(_CHECKED_NETWORKS, ensemble.block_size)
    vector, tried, reason = None, 0, ""
    for start in range(0, _TRIED_NETWORKS, count):
        if start == _CHECKED_NETWORKS:  # all of them are dead: by design, or by chance
            zero = {part: value for part, value in ensemble.zero_init().items() if value == 0}
            if zero:
                remedy = "reinit_readout=True draws a last linear layer of zeros as nn.Linear does"
                reason = f" (it begins with {described(zero)}; {remedy})"
                break
        block, row = divmod(start, ensemble.block_size)
        draw = estimator.draw(ensemble.restrict(slice(row, row + count)), block)
        if start == 0:
            forward = estimator.passes(math.prod(ensemble.image_shape)).forward
            at_once = min(_MOST_AT_ONCE, forward)
            ensemble.require_independent_inputs(draw.state, draw.inputs, at_once)
        draw = draw.thin()  # two inputs suffice to see whether f depends on its input
        contributions = estimator.contributions(ensemble, draw)
        vector = contributions[0].mean(0) if vector is None else vector
        outputs = ensemble.outputs(draw.state, draw.inputs)
        for values in (outputs, contributions.reshape(len(draw), -1)):
            _require_finite(values, range(start, start + count), name, ensemble.seed)
        if contributions.any():
            square, dtype = float(contributions.double().square().mean()), contributions.dtype
            if square**0.5 < 1e3 * torch.finfo(dtype).tiny:  # the number format has few digits left
                wider = "float64" if dtype == torch.float32 else "float32"
                raise ValueError(
                    f"the gradients of {name} are near {square**0.5:.0e}, too small for {dtype}: "
                    f"use {wider}"
                )
            # Eigenvalues are squares: gradients of 1e-22 have some of 1e-44, which is 0 in float32.
            # A power of two changes no digit of what does not underflow.
            far = not 1e-24 <= square <= 1e24
            return vector, 2.0 ** -round(math.log2(square) / 2) if far else 1.0
        tried = start + count
    raise ValueError(
        f"the output of {name} does not depend on its input, or too little for {ensemble.dtype}: "
        f"the estimator's vectors are zero for {tried} networks{reason}"
    )


def _require_finite(values: Tensor, network_ids: Sequence[int], name: str, seed: int) -> None:
    """Raise a ValueError that names the first network of B whose values (B, ...) are not finite."""
    finite = values.flatten(1).isfinite().all(1)  # (B,)
    if not finite.all():
        index = network_ids[int((~finite).nonzero()[0])]
        advice = "check its initialisation and divisions, and that eval mode is meant"
        raise ValueError(
            f"network {index} of {name} (seed {seed}) returned NaN or infinite values: {advice}"
        )


def fitting_batch(ensemble: Ensemble, estimator: Estimator, num_threads: int = 1) -> int:
    """Return how many networks a thread draws and evaluates together, at most one block on a CPU:
    those whose inputs and vectors a quarter of the free memory holds; on a GPU by the memory that a
    few need.
    """
    size, itemsize = ensemble.block_size, ensemble.dtype.itemsize
    free = available_memory(ensemble.device) or 0  # unknown where it is not used
    if ensemble.device.type == "cpu":
        dimension = math.prod(ensemble.image_shape)
        passes = estimator.passes(dimension)
        vectors = min(_MOST_AT_ONCE, max(passes.forward, passes.backward, passes.mixed))
        network_bytes = 4 * vectors * dimension * itemsize  # inputs, gradients and copies
        fitting = min(_CPU_BYTES, free / 4 / num_threads) / network_bytes
        return max(1, min(size, int(fitting)))
    if ensemble.device.type != "cuda":
        return size
    draw = estimator.draw(ensemble, 0)[:_MEASURED_NETWORKS]
    before = torch.cuda.memory_allocated(ensemble.device)
    torch.cuda.reset_peak_memory_stats(ensemble.device)
    try:
        estimator.contributions(ensemble, draw)
    except torch.OutOfMemoryError:
        return 1
    used = torch.cuda.max_memory_allocated(ensemble.device) - before
    # Drawn, and once more where several blocks are joined
    weights = 3 * ensemble.num_parameters * itemsize
    return int(max(1, min(_MOST_NETWORKS, free / 4 / (used / len(draw) + weights))))


def audit_number(index: int) -> int | None:
    """Return the number of a network's audit, by which threads take turns; None for a network that
    is not audited.
    """
    every = _AUDITED_OF if index < _MANY else _MANY
    group, place = divmod(index, every)
    return group * _AUDITED + place % _AUDITED if place >= every - _AUDITED else None
