"""Timing the parts of a computation of NADs, and a step of a training."""

import contextlib
import ctypes
import gc
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nads_book.benchmarks.roofline import Limits, count_work, timed
from nads_core.directions import (
    Dipole,
    Estimator,
    MixedDerivative,
    PointGradient,
    SecondMoment,
    SmoothedGradient,
)
from nads_core.directions.certainty import GROUPS
from nads_core.directions.compute import CHUNK
from nads_core.directions.moments import ROWS
from nads_core.directions.run import Run
from nads_core.networks import Networks
from nads_core.networks.stack import TOGETHER
from nads_core.runtime.threads import one_thread

_FEWEST, _MOST = 3, 20  # repeats
_PATIENCE = 12.0  # seconds after which one repeat does
_LONG = 0.2  # seconds of a training step from which on a single one is timed

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


def prepared(
    factory: Any,
    image_shape: tuple[int, ...],
    estimator: Estimator,
    dtype: torch.dtype | str = "float32",
    device: torch.device | str | None = None,
    kernels: str = "torch",
) -> Run:
    """Return a run of `compute_nads`, whose first networks are checked."""
    return Run.prepare(factory, image_shape, estimator, 0, dtype, False, 0, device, kernels)


def measure_network(run: Run, limits: Limits | None, seconds: float = 2.0) -> dict[str, Any]:
    """Time each part of one network, and compare it with its lower bound.

    Args:
        run: networks and estimator; on a CPU a core evaluates one at a time, on a GPU as many are
            evaluated together as `compute_nads` would.
        limits: limits of the device, None where they are unknown.
        seconds: duration of the measurement; at least three repeats, or one where that takes long.

    Returns:
        Medians, all times, `roofline.Work`, its two times at the limits, and the peak memory.
    """
    networks, device = run.networks, run.networks.device
    count = CHUNK if run.stacking is None else TOGETHER
    times: dict[str, list[float]] = {"draw": [], "gradients": [], "moments": []}
    moment = run.new_moment()

    def measure() -> None:
        start = time.perf_counter()
        vectors = run.vectors(range(count))  # kernels are compiled
        while _more(times["draw"], start, seconds):
            first = count * len(times["draw"])
            numbers = range(first, first + count)
            _, drawing = timed(partial(_drawn, networks, numbers), device)
            vectors, whole = timed(partial(run.vectors, numbers), device)
            times["draw"].append(drawing / count)
            times["gradients"].append(max(whole - drawing, 0.0) / count)
        # So many vectors that they are multiplied once, as in a long run
        num_added = count if moment.is_large else GROUPS * max(1, ROWS // vectors.shape[2])
        many = vectors.repeat(-(-num_added // count), 1, 1, 1)[:num_added]
        _, adding = timed(partial(moment.add, many), device)
        times["moments"].append(adding / num_added)

    with one_thread():
        peak = peak_memory(measure, device)
    parts = {name: statistics.median(values) for name, values in times.items()}
    work = count_work(networks, run.estimator, not moment.is_large)
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
        in_tf32 = device.type == "cuda" and networks.dtype == torch.float32
        precision = "tf32" if in_tf32 else None
        bounds = {
            "operations": work.operations_seconds(limits, precision),
            "bytes": work.bytes_seconds(limits),
        }
        result |= {"limits": asdict(limits), "limit_seconds": bounds}
        result["times_limit"] = result["seconds_per_network"] / max(bounds.values())
    return result


def _drawn(networks: Networks, numbers: range) -> None:
    for number in numbers:
        networks.draw(number)


def _more(times: list[float], start: float, seconds: float) -> bool:
    elapsed = time.perf_counter() - start
    fewest = min(_FEWEST, 1 + int(seconds / 0.1)) if elapsed < _PATIENCE else 1
    return len(times) < fewest or (elapsed < seconds and len(times) < _MOST)


def measure_eigenvectors(dimension: int, num_vectors: int, count: int = 100) -> dict[str, Any]:
    """Time what follows the networks: the eigenvectors of their second moment with certainties, of
    random numbers here.

    Args:
        dimension: number of pixels, D.
        num_vectors: number of networks, times readouts.
        count: number of eigenvectors.

    Returns:
        The ``kind`` of moments, "dense" matrices or vectors ("gram"); seconds, and the
        bytes that the moments and the eigenvectors took beyond what the process had before.
    """
    moment, elapsed = SecondMoment((dimension,)), 0.0
    generator = torch.Generator().manual_seed(0)

    def work() -> None:
        nonlocal elapsed
        for rest in range(num_vectors, 0, -32):
            moment.add(torch.randn(min(rest, 32), 2, 1, dimension, generator=generator))
        with warnings.catch_warnings(action="ignore"):  # nothing is known of random numbers
            _, elapsed = timed(lambda: moment.nads((), count), torch.device("cpu"))

    before = peak_memory(lambda: None, "cpu")
    peak = peak_memory(work, "cpu")
    used = None if peak is None or before is None else max(peak - before, 0)
    return {
        "kind": "gram" if moment.is_large else "dense",
        "num_vectors": num_vectors,
        "num_directions": count,
        "seconds": elapsed,
        "bytes": used,
    }
