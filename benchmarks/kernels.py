"""Seconds of the Triton kernel and of what PyTorch offers instead:
``python benchmarks/kernels.py --out FILE``, a part of ``tools/on_a_gpu.py``.

It writes a row for each (problem, method); tiles are methods. All are compiled first, in
parallel processes. ``--smoke`` runs all of it at toy sizes, also without a GPU if
TRITON_INTERPRET=1 is set.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import torch
from nads_book.benchmarks.roofline import data_sheet
from torch import Tensor
from torch.nn import functional as F

from nads_core.kernels import require_kernels
from nads_core.kernels.direction import Convolution
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment

PIXELS = (128, 256, 512, 1024)  # tiles of a convolution
WARPS = (4, 8)
REPEATS = 20


@dataclass(frozen=True)
class Case:
    """One way of doing one thing, with what the thing needs at least."""

    problem: str
    method: str
    run: Callable[[], object]
    num_bytes: float  # read and written
    flop: float = 0.0
    precision: str = "float32"  # of the factors: which limit holds

    @property
    def ours(self) -> bool:
        return self.method.startswith("triton")


def convolution_cases(
    count: int,
    inputs: int,
    channels: tuple[int, int],
    kernel: int,
    padding: int,
    size: int,
    device: torch.device,
    smoke: bool,
) -> Iterator[Case]:
    """Convolve the inputs of ``count`` networks, with bias and ReLU, and go back to their
    gradients.
    """
    from nads_core.kernels.convolutions_triton import convolve

    into, out = channels
    problem = (
        f"convolutions of {count} networks, {inputs} x {into} x {size} x {size} to {out}, "
        f"kernel {kernel}"
    )
    randn = partial(torch.randn, device=device)
    images = randn(count, inputs, into, size, size)
    weights = randn(count, out, into, kernel, kernel)
    biases = randn(count, out)
    result = size + 2 * padding - kernel + 1
    gradient = randn(count, inputs, out, result, result)
    convolution = Convolution((1, 1), (padding, padding), relu=True)
    adjoint = convolution._replace(relu=False, adjoint_size=(size, size))
    flop = 4.0 * gradient.numel() * into * kernel**2
    num_bytes = 4.0 * (2 * images.numel() + 2 * weights.numel() + 3 * gradient.numel())
    case = partial(Case, problem, num_bytes=num_bytes, flop=flop)

    def fused(**tile: int) -> None:
        y = convolve(images, weights, biases, convolution, **tile)
        convolve(gradient, weights, y, adjoint, **tile)

    for pixels, warps in product(PIXELS, WARPS) if not smoke else [(256, 4)]:
        tile = {"PIXELS": pixels, "num_warps": warps}
        yield case(f"triton, PIXELS {pixels}, warps {warps}", partial(fused, **tile))

    def both(x: Tensor, weight: Tensor, bias: Tensor, slope: Tensor):
        y, back = torch.func.vjp(lambda x: F.conv2d(x, weight, bias, padding=padding).relu(), x)
        return y, back(slope)[0]

    grouped = torch.vmap(both)  # cuDNN's grouped convolution
    arguments = images, weights, biases, gradient
    yield case("vmap", lambda: grouped(*arguments), precision="tf32")
    one_by_one = lambda: [both(*each) for each in zip(*arguments, strict=True)]  # noqa: E731
    yield case("one by one", one_by_one, precision="tf32")


Problem = Callable[..., Iterator[Case]]


def problems(smoke: bool) -> list[Problem]:
    if smoke:
        return [partial(convolution_cases, 2, 2, (1, 2), 3, 1, 8)]
    convolutions = [
        (512, 16, (1, 6), 5, 0, 32),
        (512, 16, (6, 16), 5, 0, 14),  # LeNet
        (256, 16, (1, 16), 3, 1, 32),
        (256, 16, (16, 16), 3, 1, 16),  # the small CNN
    ]
    return [partial(convolution_cases, *shape) for shape in convolutions]


def compile_kernels(index: int, smoke: bool, device: str) -> None:
    """Run every kernel of a problem once, in a process of its own; its code stays on disk."""
    for case in problems(smoke)[index](torch.device(device), smoke):
        if case.ours:
            try:
                case.run()
            except Exception:  # reported where the case is timed
                continue


def seconds(run: Callable[[], object], device: torch.device, repeats: int) -> list[float]:
    """Time a function after three calls to warm up, or one without a GPU."""
    on_gpu, times = device.type == "cuda", []
    for repeat in range(-3 if on_gpu else -1, repeats):
        if on_gpu:
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        run()
        if on_gpu:
            torch.cuda.synchronize(device)
        if repeat >= 0:
            times.append(time.perf_counter() - start)
    return times


def measured(case: Case, device: torch.device, repeats: int) -> dict:
    """Return the result of one case, with the share of the device's limits that it reaches."""
    row = {
        "problem": case.problem,
        "method": case.method,
        "bytes": case.num_bytes,
        "flop": case.flop,
        "precision": case.precision,
        **environment(device),
    }
    try:
        times = seconds(case.run, device, repeats)
    except Exception as error:  # more registers or shared memory than there are
        return row | {"error": f"{type(error).__name__}: {error}"[:300]}
    median = statistics.median(times)
    row |= {"seconds": median, "all_seconds": times}
    row |= {"bytes_per_second": case.num_bytes / median, "flop_per_second": case.flop / median}
    sheet = data_sheet(row["device"])
    if sheet is not None:
        limit = max(case.num_bytes / sheet.bandwidth, case.flop / sheet.rates[case.precision])
        row |= {"limit_seconds": limit, "share_of_limit": limit / median}
    return row


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="file of the results")
    parser.add_argument("--smoke", action="store_true", help="toy sizes")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    smoke, out = options.smoke, options.out
    require_kernels("triton", device)
    every = problems(smoke)
    if device.type == "cuda":
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(len(every), mp_context=context) as pool:
            list(
                pool.map(
                    partial(compile_kernels, smoke=smoke, device=str(device)), range(len(every))
                )
            )
    content: dict = {"complete": False, "rows": []}
    for problem in every:
        for case in problem(device, smoke):
            row = measured(case, device, 1 if smoke else REPEATS)
            content["rows"].append(row)
            with atomic_write(out) as file:
                file.write(json.dumps(content, indent=1) + "\n")
            if "error" in row:
                print(f"{case.problem}, {case.method}: {row['error']}", flush=True)
                continue
            share = f"{row['share_of_limit']:6.1%} of the limit" if "share_of_limit" in row else ""
            microseconds = f"{1e6 * row['seconds']:.1f} us {share}"
            print(f"{case.problem}, {case.method}: {microseconds}", flush=True)
    with atomic_write(out) as file:
        file.write(json.dumps(content | {"complete": True}, indent=1) + "\n")


if __name__ == "__main__":
    main()
