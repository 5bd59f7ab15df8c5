"""`compute_nads`: the loop over the networks of an architecture, and what it needs before."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Literal

import torch
from torch import nn
from tqdm import tqdm

from nads_core.directions import checkpoint as checkpoints
from nads_core.directions.certainty import CERTAIN
from nads_core.directions.estimators import Estimator
from nads_core.directions.nads import NADs
from nads_core.directions.run import Run
from nads_core.directions.second_moment import SecondMoment, require_options
from nads_core.directions.workers import evaluated
from nads_core.networks.architectures import Architecture, Factory
from nads_core.networks.network import Output
from nads_core.networks.stack import TOGETHER
from nads_core.runtime.arguments import Shape, require_integers
from nads_core.runtime.processes import deferred_interrupt
from nads_core.runtime.provenance import environment
from nads_core.runtime.threads import one_thread

CHUNK = 8  # networks that a worker evaluates at a time on a CPU
_FIRST_LOOK = 64  # networks after which a stopping criterion is first measured
_GROWTH = 1.25  # between two looks

Symmetries = tuple[str, ...] | Literal["auto"]


def compute_nads(
    factory: Architecture | Factory | str | Sequence[nn.Module],
    image_shape: Shape,
    num_networks: int = 2_000,
    *,
    estimator: Estimator | None = None,
    symmetries: Symmetries = "auto",
    num_directions: int | None = None,
    num_certain: int | None = None,
    output: Output | str = 0,
    dtype: torch.dtype | str = "float32",
    equal_weights: bool = False,
    seed: int = 0,
    device: torch.device | str | None = None,
    workers: int | Executor | None = None,
    kernels: str = "torch",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> NADs:
    """Compute the NADs of an architecture: eigenvectors of the second moment of its networks' input
    gradients.

    Inputs of more than 4,096 entries are large: one readout by default, no symmetries, directions
    of positive eigenvalues only, and all vectors are kept in memory; `repr` says so.

    Source: section 3.1 and eq. (4) of the paper; the estimators differ in the vector that a network
    contributes.

    Args:
        factory: one of our architectures, any function that returns a newly initialised network, or
            a name: "lenet", "torchvision:convnext_tiny", "timm:vit_tiny_patch16_224?img_size=32",
            "module:function". Or a sequence of given networks, for example trained ones, which are
            copied first; they have one readout, and no symmetries unless named.
        image_shape: shape of the input: (C, H, W) of images, (C, L) of sequences, (F,) of rows of a
            table.
        num_networks: number of networks to draw, N; with ``num_certain`` the largest number.
        estimator: `SmoothedGradient`, `PointGradient`, `Dipole` or `MixedDerivative`; by default
            ``SmoothedGradient(num_inputs=16, readouts="auto")``.
        symmetries: maps of the input that leave the distribution of networks unchanged, averaged
            over; "auto" for those that the architecture declares or, for a factory of images or
            sequences and at least 16 networks, that its networks do not contradict
            (`symmetry_tests`; the provenance has the results).
        num_directions: number of directions to return, at most D; all by default.
        num_certain: number of directions; the run ends when as many have a certainty of 0.9.
        output: index of the network's output that is f(x); or a function of whatever the network
            returns for B inputs, which returns f of each, (B,); "module:function" names such a
            function, and "logits.0" is column 0 of ``y["logits"]``.
        dtype: type of the networks, or its name. float64 networks are also summed in float64.
        equal_weights: whether the vectors of each network are divided by the norm of their mean:
            the robust choice where the norms have heavy tails.
        seed: seed of every weight and input. Network i does not depend on how many are drawn.
        device: device of the networks; by default a GPU if there is one.
        workers: number of processes, or any `concurrent.futures.Executor`, such as a Dask client's;
            by default as many processes as cores on a CPU, if after the first networks at least 20
            seconds of work are left. The results do not depend on it.
        kernels: "triton" convolves the inputs of many networks by one kernel on a GPU, if a
            convolution has at most 32 channels.
        checkpoint: file that stores the state. An interrupted call resumes from it, with the same
            result as an uninterrupted one; a finished one is extended by a call with more networks.
        progress: whether to show a progress bar.

    Returns:
        Directions in order of preference, with eigenvalues and certainties.

    Raises:
        TypeError: if ``factory`` is none of these, or returns no network.
        ImportError: for the name of a model whose library is not installed.
        ValueError: for bad arguments, networks that `networks.checks` rejects, or a checkpoint that
            is damaged or of another computation.
        MemoryError: if the matrices of large inputs do not fit.
        KeyboardInterrupt: on Ctrl-C, after saving the state to ``checkpoint`` or, without one, to a
            file that the message names.

    Example:
        >>> from nads_core import LOGREG
        >>> nads = compute_nads(LOGREG, (1, 32, 32), 64, progress=False)
        >>> nads.certainty.max() < 0.9  # all are equivalent
        tensor(True)
    """
    run = Run.prepare(
        factory, image_shape, estimator, output, dtype, equal_weights, seed, device, kernels
    )
    counts = {"num_directions": num_directions, "num_certain": num_certain}
    require_options(run.networks.image_shape, symmetries, **counts)
    moment = _accumulated(run, num_networks, num_certain, symmetries, workers, checkpoint, progress)
    return moment.nads(symmetries, num_directions)


def second_moment(
    factory: Architecture | Factory | str | Sequence[nn.Module],
    image_shape: Shape,
    num_networks: int = 2_000,
    *,
    estimator: Estimator | None = None,
    output: Output | str = 0,
    dtype: torch.dtype | str = "float32",
    equal_weights: bool = False,
    seed: int = 0,
    device: torch.device | str | None = None,
    workers: int | Executor | None = None,
    kernels: str = "torch",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> SecondMoment:
    """Compute the second moment C whose eigenvectors are the NADs, in groups of networks.

    Its ``energy`` of any direction has an interval, ``merge`` adds a run with another seed, and
    ``nads`` returns the eigenvectors. Arguments and errors are those of `compute_nads`.
    """
    run = Run.prepare(
        factory, image_shape, estimator, output, dtype, equal_weights, seed, device, kernels
    )
    return _accumulated(run, num_networks, None, "auto", workers, checkpoint, progress)


def _accumulated(
    run: Run,
    num_networks: int,
    num_certain: int | None,
    symmetries: Symmetries,
    workers: int | Executor | None,
    checkpoint: str | os.PathLike[str] | None,
    progress: bool,
) -> SecondMoment:
    """Return the second moment of the networks of a run: the Monte-Carlo loop."""
    require_integers(num_networks=num_networks)
    if not (workers is None or isinstance(workers, Executor)):
        require_integers(workers=workers)
    if isinstance(run.networks.source, tuple):
        num_networks = min(num_networks, len(run.networks.source))
    moment = run.new_moment()
    file = checkpoints.Checkpoint(checkpoint, run)
    file.restore(moment)
    done = moment.num_networks
    if done > num_networks:
        raise ValueError(f"{file.path} holds {done:,} networks, more than {num_networks:,}")
    size = CHUNK if run.stacking is None else TOGETHER
    looks = _looks(num_networks, size) if num_certain else set()
    wanted = num_certain or math.inf
    certain = _num_certain(moment, symmetries) if done in looks else 0
    chunks = [
        range(max(i, done), min(i + size, num_networks))
        for i in range(done - done % size, num_networks, size)
        if done < num_networks and certain < wanted
    ]
    started = time.monotonic()
    bar = tqdm(total=num_networks, initial=done, unit=" networks", disable=not progress)
    with bar, one_thread(), deferred_interrupt("finishing the networks in work ...") as interrupts:
        results = evaluated(run, chunks, workers, run.networks.device, interrupts)
        try:
            for vectors in results:
                interrupts.held = True
                moment.add(vectors)
                interrupts.held = False
                bar.update(len(vectors))
                file.save_if_due(moment)
                if moment.num_networks in looks:
                    certain = _num_certain(moment, symmetries)
                    if certain >= wanted:
                        break
            if interrupts and certain < wanted:
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            path = file.save(moment, fallback=f"interrupted-nads-{run.name}.npz")
            raise KeyboardInterrupt(
                f"stopped after {moment.num_networks:,} of {num_networks:,} networks; the same "
                f"call with checkpoint={str(path)!r} resumes"
            ) from None
        except BaseException:
            if not interrupts.held:  # else it has a part of a chunk
                file.save(moment)
            raise
        finally:
            results.close()  # type: ignore[attr-defined]  # a generator
    if chunks:
        file.save(moment)
    moment.finish()
    if num_certain and certain < num_certain:
        certain = _num_certain(moment, symmetries)
        if certain < num_certain:
            warnings.warn(
                f"num_certain {num_certain} not reached after {moment.num_networks:,} networks: "
                f"{certain} directions are certain by {CERTAIN}",
                stacklevel=3,
            )
    moment.provenance |= environment(run.networks.device)
    moment.provenance["seconds"] = round(file.seconds + time.monotonic() - started, 1)
    return moment


def _looks(num_networks: int, size: int) -> set[int]:
    """Return the numbers of networks, ends of chunks, after which a stopping criterion is measured:
    they do not depend on where a run was interrupted.
    """
    looks, count = set(), _FIRST_LOOK
    while count <= num_networks:
        looks.add(-(-count // size) * size)
        count = math.ceil(_GROWTH * count)
    return looks


def _num_certain(moment: SecondMoment, symmetries: Symmetries) -> int:
    return moment.eigenpairs(symmetries, None)[2].num_certain
