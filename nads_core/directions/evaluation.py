"""The vectors of blocks of networks: evaluated by all threads of a process, and refused where they cannot be right."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from nads_core.directions.estimators import Draw, Estimator
from nads_core.networks.ensembles import Ensemble, ThreadedEnsemble
from nads_core.networks.zero_init import described, find_zero_init

Block = tuple[int, int]  # its number, and how many of its networks count: all but for the last one

_CHECKED_NETWORKS = 8


class Evaluation:
    """What the networks of an ensemble contribute, evaluated by as many threads as torch has.

    Args:
        ensemble: the networks.
        estimator: what each contributes.
        name: of the architecture, for messages.
        batch_size: networks that a thread evaluates together.
        scale: factor of all vectors, see `moment_scale`.
        normalise: whether the vectors of a network are divided by the norm of their mean.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        estimator: Estimator,
        name: str,
        batch_size: int,
        scale: float = 1.0,
        normalise: bool = False,
    ):
        self.estimator, self.name, self.batch_size = estimator, name, batch_size
        self.scale, self.normalise = scale, normalise
        self.block_size = ensemble.block_size
        self._crew = ThreadedEnsemble(ensemble)
        self.blocks_at_once = max(1, batch_size // ensemble.block_size) * self._crew.size

    def contributions(self, blocks: list[Block]) -> Tensor:
        """Return the vectors (B * readouts, J, D) of the networks of several blocks.

        Raises:
            ValueError: if a network returns NaN or infinite values.
        """
        share = -(-len(blocks) // self._crew.size)  # blocks a thread
        return torch.cat(self._crew.map(self._evaluate, [blocks[i : i + share] for i in range(0, len(blocks), share)]))

    def _evaluate(self, own: Ensemble, blocks: list[Block]) -> Tensor:
        draw = Draw.cat([self.estimator.draw(own, block)[:count] for block, count in blocks])
        batches = [draw[i : i + self.batch_size] for i in range(0, len(draw), self.batch_size)]
        contributions = torch.cat([self.estimator.contributions(own, batch) for batch in batches])
        vectors = contributions.reshape(len(draw), -1)  # (B, readouts * J * D)
        # Blocks need not follow each other: of several processes each has every n-th.
        numbers = (block * own.block_size + row for block, count in blocks for row in range(count))
        _require_finite(vectors, numbers, self.name, own.seed)
        if self.scale != 1:
            contributions = contributions * self.scale
        if self.normalise:
            norms = contributions.mean(1, keepdim=True).double().norm(dim=2, keepdim=True)  # (B * readouts, 1, 1)
            contributions = (contributions / norms.clamp(min=1e-300)).to(contributions)
        return contributions


def require_gradients(ensemble: Ensemble, estimator: Estimator, name: str) -> tuple[Tensor, float]:
    """Raise a ValueError if networks ignore their input, before hours are spent on them.

    Returns:
        The vector of network 0, (D,), by which a computation can be recognised, and the `moment_scale` of the first
        networks.
    """
    first = None
    for block, _ in ensemble.blocks(_CHECKED_NETWORKS):
        draw = estimator.draw(ensemble, block)[:_CHECKED_NETWORKS].thin()
        contributions = estimator.contributions(ensemble, draw)
        first = contributions[0].mean(0) if first is None else first
        numbers = range(block * ensemble.block_size, block * ensemble.block_size + len(draw))
        _require_finite(ensemble.outputs(draw.state, draw.inputs), numbers, name, ensemble.seed)
        _require_finite(contributions.reshape(len(draw), -1), numbers, name, ensemble.seed)
        if contributions.any():
            return first, moment_scale(contributions)
    zero = {part: value for part, value in find_zero_init(ensemble.template).items() if value == 0}
    remedy = "; fresh_readout=True draws a last linear layer of zeros as nn.Linear does" if zero else ""
    raise ValueError(
        f"the output of {name} does not depend on its input: the estimator's vectors are zero for "
        f"{_CHECKED_NETWORKS} networks" + (f" (it begins with {described(zero)}{remedy})" if zero else "")
    )


def moment_scale(vectors: Tensor) -> float:
    """Return the power of two that brings the mean square of vectors to about 1, or 1 if it lies in [1e-24, 1e24].

    Eigenvalues are squares: gradients of 1e-22 have some of 1e-44, which is 0 in float32. A power of two changes no
    digit of what does not underflow.
    """
    square = float(vectors.double().square().mean())
    return 1.0 if 1e-24 <= square <= 1e24 else 2.0 ** -round(math.log2(square) / 2)


def _require_finite(values: Tensor, numbers: Iterable[int], name: str, seed: int) -> None:
    """Raise a ValueError that names the first network of B whose values (B, ...) are not finite."""
    finite = values.flatten(1).isfinite().all(1)  # (B,)
    if not finite.all():
        index = list(numbers)[int((~finite).nonzero()[0])]
        raise ValueError(
            f"network {index} of {name} (seed {seed}) returned NaN or infinite values: check its initialisation and "
            "divisions, and that eval mode is meant"
        )


def fitting_batch(ensemble: Ensemble, estimator: Estimator) -> int:
    """Networks evaluated together: one block on a CPU; on a GPU as many as an eighth of its free memory holds."""
    if ensemble.device.type != "cuda":
        return ensemble.block_size
    free, _ = torch.cuda.mem_get_info(ensemble.device)
    dimension = math.prod(ensemble.image_shape)
    passes = estimator.passes(dimension)
    back = passes.backward + passes.mixed
    # Layers of 64 channels that are in memory at a time, a ResNet's, which is an upper guess for most networks: 38 an
    # input are kept for the way back, and any way through them has two, where it comes from and where it goes.
    layers = 38 * passes.forward + 2 * back if back else 2 * passes.forward
    network_bytes = 4 * (3 * ensemble.num_parameters + 64 * dimension * layers)
    return int(max(1, min(256, free // 8 // network_bytes)))
