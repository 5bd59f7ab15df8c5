"""Timing the parts of a computation of NADs, and its memory."""

import contextlib
import ctypes
import gc
import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from nads_book.benchmarks.counting import count_work
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
from nads_core.networks.stack import TOGETHER
from nads_core.runtime.threads import one_thread

NUM_EIGENVECTORS = 100
# Estimators, each with the type of the networks' numbers
CASES: dict[str, tuple[Estimator, torch.dtype]] = {
    "smoothed-16": (SmoothedGradient(16), torch.float32),
    "smoothed-16-bfloat16": (SmoothedGradient(16), torch.bfloat16),
    "smoothed-16-readouts-8": (SmoothedGradient(16, readouts=8), torch.float32),
    "point": (PointGradient(), torch.float32),
    "mixed-16": (MixedDerivative(16), torch.float32),
    "dipole": (Dipole(), torch.float32),
}


def median_seconds(call: Callable[[], object], seconds: float) -> float:
    """Return the median time of calls with this number of threads, the work on a GPU included.

    Args:
        call: function that is measured.
        seconds: duration of the measurement; a longer call is measured once.
    """
    from torch.utils.benchmark import Timer  # warns at import where there is no CUDA

    timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=seconds).median


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


def measure_network(run: Run, seconds: float = 2.0) -> dict[str, Any]:
    """Time each part of one network.

    Args:
        run: networks and estimator; on a CPU a core evaluates one at a time, on a GPU as many are
            evaluated together as `compute_nads` would.
        seconds: duration of the measurement of each part.

    Returns:
        Medians, the counted work, and the peak memory.
    """
    networks, device = run.networks, run.networks.device
    count = CHUNK if run.stacking is None else TOGETHER
    moment, starts = run.new_moment(), itertools.count(0, count)
    parts: dict[str, float] = {}

    def draw() -> None:
        first = next(starts)
        for number in range(first, first + count):
            networks.draw(number)

    def vectors() -> torch.Tensor:
        first = next(starts)
        return run.vectors(range(first, first + count))

    def measure() -> None:
        found = vectors()  # kernels are compiled
        parts["draw"] = median_seconds(draw, seconds) / count
        whole = median_seconds(vectors, seconds) / count
        parts["gradients"] = max(whole - parts["draw"], 0.0)
        # So many vectors that they are multiplied once, as in a long run
        num_added = count if moment.is_large else GROUPS * max(1, ROWS // found.shape[2])
        many = found.repeat(-(-num_added // count), 1, 1, 1)[:num_added]
        start = time.perf_counter()
        moment.add(many)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        parts["moments"] = (time.perf_counter() - start) / num_added

    with one_thread():
        peak = peak_memory(measure, device)
    return {
        "seconds_per_network": sum(parts.values()),
        "parts": parts,
        "networks": count,
        "peak_memory_bytes": peak,
        "work": count_work(networks, run.estimator),
    }


def measure_eigenvectors(dimension: int, num_vectors: int) -> dict[str, Any]:
    """Time what follows the networks: the eigenvectors of their second moment with certainties, of
    random numbers here.

    Args:
        dimension: number of pixels, D.
        num_vectors: number of networks, times readouts.

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
        start = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):  # nothing is known of random numbers
            moment.nads((), NUM_EIGENVECTORS)
        elapsed = time.perf_counter() - start

    before = peak_memory(lambda: None, "cpu")
    peak = peak_memory(work, "cpu")
    used = None if peak is None or before is None else max(peak - before, 0)
    return {
        "kind": "gram" if moment.is_large else "dense",
        "num_vectors": num_vectors,
        "num_directions": NUM_EIGENVECTORS,
        "seconds": elapsed,
        "bytes": used,
    }
