"""Timing the parts of a computation of NADs, and a step of a training."""

import contextlib
import ctypes
import gc
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nads_book.benchmarks.roofline import Limits, count_work, timed
from nads_core.directions import (
    DENSE_LIMIT,
    Dipole,
    Draw,
    Estimator,
    MixedDerivative,
    PointGradient,
    SmoothedGradient,
)
from nads_core.directions.covariance import debias, gram_eigenpairs, leading_eigenpairs
from nads_core.directions.evaluation import fitting_batch
from nads_core.directions.moments import DenseMoments, GramMoments
from nads_core.directions.run import empty_moments
from nads_core.networks.architectures import Architecture
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.threaded import ThreadedEnsemble
from nads_core.runtime.processes import process_pool
from nads_core.training import Recipe, train_networks

_FEWEST, _MOST = 3, 20  # repeats
_PATIENCE = 12.0  # seconds after which one repeat does
_LONG = 0.2  # seconds of a training step from which on a single one is timed
_ROWS = 512  # at least, between two sums over D x D entries

# Estimators, each with the type of the networks' numbers
CASES: dict[str, tuple[Estimator, torch.dtype]] = {
    "smoothed-16": (SmoothedGradient(16), torch.float32),
    "smoothed-16-bfloat16": (SmoothedGradient(16), torch.bfloat16),
    "smoothed-16-readouts-8": (SmoothedGradient(16, readouts=8), torch.float32),
    "point": (PointGradient(), torch.float32),
    "mixed-16": (MixedDerivative(16), torch.float32),
    "dipole": (Dipole(), torch.float32),
}


def peak_memory(work: Callable[[], object], device: torch.device | str) -> int | None:
    """Run ``work`` and return the peak memory: of the process on a CPU, of the tensors on a GPU;
    None if unknown.

    The memory of the process includes Python and PyTorch, a few hundred megabytes. Where a
    container forbids resetting its peak, the result is the peak since the process started.
    """
    gc.collect()
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # return freed memory to the system
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    work()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    return None


def torchvision_resnet18() -> nn.Module:
    """Return torchvision's ResNet-18 with one output: an ImageNet network, for inputs
    of any size.
    """
    from torchvision.models import resnet18

    return resnet18(num_classes=1)


def measure_network(
    ensemble: Ensemble, estimator: Estimator, limits: Limits | None, seconds: float = 2.0
) -> dict[str, Any]:
    """Time each part of one network, and compare it with its lower bound.

    Args:
        ensemble: the networks; on a GPU as many are evaluated together as `compute_nads` would.
        estimator: estimator that is applied to each.
        limits: limits of the device, None where they are unknown.
        seconds: duration of the measurement; at least three repeats, or one where that takes long.

    Returns:
        Medians, all times, `roofline.Work`, its two times at the limits, and the peak memory.
    """
    device, dimension = ensemble.device, math.prod(ensemble.image_shape)
    dense = dimension <= DENSE_LIMIT
    crew = ThreadedEnsemble(ensemble)
    blocks = max(1, fitting_batch(ensemble, estimator) // ensemble.block_size)
    count = blocks * ensemble.block_size * crew.size
    times: dict[str, list[float]] = {"draw": [], "gradients": [], "moments": []}

    def draw(own: Ensemble, turn: int) -> Draw:
        return Draw.cat([estimator.draw(own, turn * blocks + block) for block in range(blocks)])

    def draw_all(repeat: int) -> list[Draw]:
        return crew.map(draw, range(repeat * crew.size, (repeat + 1) * crew.size))

    def differentiate(draws: list[Draw]) -> Tensor:
        return torch.cat(crew.map(lambda own, drawn: estimator.contributions(own, drawn), draws))

    def measure() -> None:
        # The 2 D evaluations of a dipole need no warming up
        if estimator.passes(dimension).forward <= dimension:
            differentiate(draw_all(0))
        start = time.perf_counter()
        while _more(times["draw"], start, seconds):
            drawn, drawing = timed(lambda: draw_all(len(times["draw"])), device)
            contributions, differentiating = timed(partial(differentiate, drawn), device)
            times["draw"].append(drawing / count)
            times["gradients"].append(differentiating / count)
        start = time.perf_counter()
        if dense:  # (B, J, D), B so large that the sums are written as rarely as in a long run
            contributions = contributions.repeat(
                -(-_ROWS // (len(contributions) * contributions.shape[1])), 1, 1
            )
        _add(empty_moments(ensemble), contributions)  # kernels are compiled
        moments = empty_moments(ensemble)
        while _more(times["moments"], start, seconds / 4):
            _, elapsed = timed(partial(_add, moments, contributions), device)
            times["moments"].append(elapsed / len(contributions) * estimator.readouts)
            moments = moments.empty() if not dense else moments

    peak = peak_memory(measure, device)
    parts = {name: statistics.median(values) for name, values in times.items()}
    work = count_work(ensemble, estimator, dense)
    result: dict[str, Any] = {
        "seconds_per_network": sum(parts.values()),
        "parts": parts,
        "repeats": len(times["draw"]),
        "networks": count,
        "all_seconds_per_network": times,
        "peak_memory_bytes": peak,
        "work": asdict(work),
    }
    if limits is not None:
        # cuDNN's default
        in_tf32 = device.type == "cuda" and ensemble.dtype == torch.float32
        precision = "tf32" if in_tf32 else None
        bounds = {
            "operations": work.operations_seconds(limits, precision),
            "bytes": work.bytes_seconds(limits),
        }
        result |= {"limits": asdict(limits), "limit_seconds": bounds}
        result["times_limit"] = result["seconds_per_network"] / max(bounds.values())
    return result


def _more(times: list[float], start: float, seconds: float) -> bool:
    elapsed = time.perf_counter() - start
    fewest = min(_FEWEST, 1 + int(seconds / 0.1)) if elapsed < _PATIENCE else 1
    return len(times) < fewest or (elapsed < seconds and len(times) < _MOST)


def _add(moments: DenseMoments | GramMoments, contributions: Tensor) -> None:
    moments.update(contributions)
    if isinstance(moments, DenseMoments):
        moments.sums()


def measure_eigenvectors(
    dimension: int, num_vectors: int, count: int = 100, device: torch.device | str = "cpu"
) -> dict[str, Any]:
    """Time what follows the networks: the eigenvectors of their moments, of random numbers here.

    Args:
        dimension: number of pixels, D.
        num_vectors: number of networks, times readouts.
        count: number of eigenvectors.
        device: device of the computation.

    Returns:
        The ``kind`` of moments, "dense" or "gram", that `compute_nads` takes; seconds, and the
        bytes that the moments and the eigenvectors took beyond what the process had before.
    """
    device = torch.device(device)
    kind = "dense" if dimension <= DENSE_LIMIT else "gram"
    generator = torch.Generator(device).manual_seed(0)
    elapsed = 0.0

    def work() -> None:
        nonlocal elapsed
        moments = (DenseMoments if kind == "dense" else GramMoments)(dimension, device)
        for rest in range(num_vectors, 0, -32):
            moments.update(
                torch.randn(min(rest, 32), 2, dimension, device=device, generator=generator)
            )
        if isinstance(moments, DenseMoments):
            moments.sums()
            _, elapsed = timed(
                lambda: leading_eigenpairs(debias(*moments.moments()), count), device
            )
        else:
            _, elapsed = timed(lambda: gram_eigenpairs(*moments.vectors(), count), device)

    before = peak_memory(lambda: None, device)
    peak = peak_memory(work, device)
    used = None if peak is None or before is None else max(peak - before, 0)
    return {
        "kind": kind,
        "num_vectors": num_vectors,
        "num_directions": count,
        "seconds": elapsed,
        "bytes": used,
    }


def seconds_per_step(
    architecture: Architecture,
    image_shape: tuple[int, int, int],
    recipe: Recipe,
    *,
    mixed_precision: bool = False,
) -> float:
    """Measure one step of a training as `train_networks` does it for one network, on one thread of
    a CPU.

    It is the time that further epochs add, so that what every training does once is not in it.

    Args:
        architecture: architecture of the network.
        image_shape: (C, H, W) of its images.
        recipe: recipe whose batch size is used.
        mixed_precision: whether layers run in bfloat16.
    """

    def seconds(epochs: int, batches: int) -> float:
        images = torch.randn(
            batches * recipe.batch_size, *image_shape, generator=torch.Generator().manual_seed(0)
        )
        result = train_networks(
            architecture,
            [(images, torch.arange(len(images)) % 2)],
            recipe=replace(recipe, epochs=epochs),
            mixed_precision=mixed_precision,
            device="cpu",
            workers=process_pool(1),
            progress=False,
        )
        return float(result.seconds)  # of one network

    seconds(1, 1)  # warms up the worker
    epochs, batches = (2, 1) if seconds(1, 1) > _LONG else (9, 16)
    return (seconds(epochs, batches) - seconds(1, batches)) / ((epochs - 1) * batches)
