"""Seconds of each Triton kernel and its PyTorch reference, torch.compile and cuBLAS: ``python benchmarks/kernels.py``.

Writes one JSON file a (problem, method, device) into ``benchmarks/results/`` and prints which kernels earn their keep:
one that is not the fastest method of its problem is to be removed. ``--tune`` tries other tiles. ``--smoke`` runs all
of it at toy sizes, also without a GPU if TRITON_INTERPRET=1 is set.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType

import kernel_references
import torch
from nads_book.benchmarks.roofline import data_sheet
from torch.nn import functional as F

import nads_core as nc
from nads_core import kernels
from nads_core.directions.moments import DenseMoments
from nads_core.kernels import require_kernels
from nads_core.networks import Ensemble, Initialisation
from nads_core.runtime.provenance import environment

RESULTS = Path(__file__).parent / "results"


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


def compiled(function: Callable, smoke: bool) -> Callable:
    return function if smoke else torch.compile(function)  # compiling takes longer than all the rest


def draw_cases(name: str, count: int, image_size: int, device: torch.device, smoke: bool) -> Iterator[Case]:
    """Draw the weights of ``count`` networks."""
    architecture, shape = nc.ARCHITECTURES[name], (1, image_size, image_size)

    def factory() -> torch.nn.Module:
        return architecture.build(1, image_size, 1)

    shipped, together = (Ensemble(factory, shape, device=device) for _ in range(2))
    together.block_size = count
    problem, blocks = f"weights of {count} {name}", -(-count // shipped.block_size)
    num_bytes = 4.0 * count * shipped.num_parameters
    yield Case(problem, "torch, as shipped", lambda: [shipped.draw(block) for block in range(blocks)], num_bytes)
    yield Case(problem, "torch, one block", lambda: together.draw(0), num_bytes)
    parameters = Initialisation.of(factory, device).random_parameters()

    def draw(backend: ModuleType = kernels) -> list[torch.Tensor]:
        return backend.draw_weights(parameters, seed=1, first=0, count=count, stream=0, device=device)

    yield Case(problem, "triton", draw, num_bytes)
    if count * shipped.num_parameters < 5e7:  # it needs some hundred bytes a number
        yield Case(problem, "reference", lambda: draw(kernel_references), num_bytes)
        function = compiled(draw, smoke)
        yield Case(problem, "reference, compiled", lambda: function(kernel_references), num_bytes)


def moment_cases(count: int, per_network: int, size: int, device: torch.device, smoke: bool) -> Iterator[Case]:
    """Add the contributions of ``count`` networks to both sums."""
    problem = f"moments of {count} x {per_network} x {size}"
    contributions = torch.randn(count, per_network, size, device=device)
    seen, noise = (torch.zeros(size, size, dtype=torch.float64, device=device) for _ in range(2))
    products = per_network + 1 if per_network > 1 else 1
    num_bytes = 4.0 * contributions.numel() + 2 * 8 * (2 if per_network > 1 else 1) * size**2
    flop = 1.0 * count * products * size * (size + 1)  # of the lower triangle

    def add(backend: ModuleType = kernels) -> None:
        backend.add_second_moments(seen, noise, contributions)

    yield Case(problem, "triton", add, num_bytes, flop, "tf32")
    moments = DenseMoments(size, device)

    def shipped() -> None:
        moments.update(contributions)
        moments.sums()

    yield Case(problem, "torch, as shipped", shipped, num_bytes, flop, "float64")
    yield Case(problem, "reference", lambda: add(kernel_references), num_bytes, flop, "float64")
    function = compiled(add, smoke)
    yield Case(problem, "reference, compiled", lambda: function(kernel_references), num_bytes, flop, "float64")
    for precision in ("float64", "float32", "tf32"):
        rows = contributions.flatten(0, 1).to(torch.float64 if precision == "float64" else torch.float32)
        total = torch.zeros(size, size, dtype=rows.dtype, device=device)

        def multiply(rows=rows, total=total, tf32=precision == "tf32") -> None:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            total.addmm_(rows.T, rows)
            torch.backends.cuda.matmul.allow_tf32 = False

        yield Case(problem, f"addmm alone, {precision}", multiply, num_bytes, flop, precision)


def convolution_cases(
    count: int, inputs: int, channels: tuple[int, int], kernel: int, size: int, device: torch.device
) -> Iterator[Case]:
    """Convolve the inputs of ``count`` networks, each with its own weights: is there room for a kernel of ours?"""
    into, out = channels
    problem = f"convolutions of {count} networks, {inputs} x {into} x {size} x {size} to {out}, kernel {kernel}"
    images = torch.randn(count, inputs, into, size, size, device=device)
    weights = torch.randn(count, out, into, kernel, kernel, device=device)
    result = size - kernel + 1
    flop = 2.0 * count * inputs * out * into * kernel**2 * result**2
    num_bytes = 4.0 * (images.numel() + weights.numel() + count * inputs * out * result**2)
    rows = weights.flatten(2)  # (B, out, into * kernel^2)

    def unfolded() -> torch.Tensor:
        columns = F.unfold(images.flatten(0, 1), kernel).view(count, inputs, -1, result**2)
        return rows[:, None] @ columns

    def one_by_one() -> list[torch.Tensor]:
        return [F.conv2d(x, w) for x, w in zip(images, weights, strict=True)]

    grouped = torch.vmap(F.conv2d)  # cuDNN's grouped convolution
    yield Case(problem, "vmap", lambda: grouped(images, weights), num_bytes, flop)
    yield Case(problem, "one by one", one_by_one, num_bytes, flop)
    yield Case(problem, "unfold and matmul", unfolded, num_bytes, flop)


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
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    times = seconds(case.run, device, repeats)
    median = statistics.median(times)
    result = {
        "problem": case.problem, "method": case.method, "repeats": repeats, "seconds": median, "all_seconds": times,
        "bytes": case.num_bytes, "bytes_per_second": case.num_bytes / median, "flop": case.flop,
        "flop_per_second": case.flop / median, "precision": case.precision, **environment(device),
    }  # fmt: skip
    if device.type == "cuda":
        result["peak_memory_bytes"] = torch.cuda.max_memory_allocated(device)
    sheet = data_sheet(result["device"])
    if sheet is not None:
        limit = max(case.num_bytes / sheet.bandwidth, case.flop / sheet.rates[case.precision])
        result |= {"limit_seconds": limit, "share_of_limit": limit / median}
    return result


def verdict(cases: list[Case], results: list[dict]) -> str:
    """Return whether the kernel of a problem is its fastest method, as text."""
    times = [(result["seconds"], case) for case, result in zip(cases, results, strict=True)]
    others = [pair for pair in times if not pair[1].ours and not pair[1].method.startswith("addmm alone")]
    ours, theirs = (min(pairs, key=lambda p: p[0], default=None) for pairs in ([p for p in times if p[1].ours], others))
    if ours is None:
        return f"    fastest: {theirs[1].method}"
    word = "earns its keep" if ours[0] < theirs[0] else "to be removed"
    return f"    {ours[1].method}: {word}, {theirs[0] / ours[0]:.2f} times as fast as {theirs[1].method}"


def tune(device: torch.device, repeats: int) -> None:
    """Print the time of other tiles of the second-moment kernel, fastest first."""
    from nads_core.kernels.second_moments_triton import launch

    contributions = torch.randn(256, 8, 1024, device=device)
    seen, noise = (torch.zeros(1024, 1024, dtype=torch.float64, device=device) for _ in range(2))
    measurements = []
    for tile, networks, warps, stages in product((32, 64, 128), (16, 32, 64), (4, 8), (2, 3, 4)):
        options = {"TILE": tile, "NETWORKS": networks, "num_warps": warps, "num_stages": stages}
        try:
            times = seconds(lambda o=options: launch(seen, noise, contributions, **o), device, repeats)  # noqa: B023
        except Exception as error:  # more registers or shared memory than there are
            print(f"{options}: {type(error).__name__}")
            continue
        measurements.append((statistics.median(times), options))
    for median, options in sorted(measurements, key=lambda pair: pair[0])[:5]:
        print(f"{1e6 * median:9.1f} us {options}", flush=True)


def problems(device: torch.device, smoke: bool) -> Iterator[list[Case]]:
    if smoke:
        yield list(draw_cases("logreg", 3, 8, device, smoke))
        yield list(moment_cases(5, 2, 70, device, smoke))
        yield list(convolution_cases(2, 2, (1, 2), 3, 8, device))
        return
    for name, count in (("lenet", 256), ("vgg11", 32), ("resnet18", 32), ("densenet121", 32)):
        yield list(draw_cases(name, count, 32, device, smoke))
    for shape in ((256, 8, 1024), (2048, 1, 1024), (64, 32, 1024), (256, 8, 3072)):
        yield list(moment_cases(*shape, device, smoke))
    for shape in ((256, 16, (1, 6), 5, 32), (256, 16, (6, 16), 5, 14), (64, 16, (64, 64), 3, 34)):
        yield list(convolution_cases(*shape, device))


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--tune", action="store_true", help="try tiles of the second-moment kernel instead")
    parser.add_argument("--smoke", action="store_true", help="toy sizes, to see that everything runs")
    options = parser.parse_args()
    device = torch.device(options.device)
    require_kernels("triton", device)
    if options.tune:
        tune(device, options.repeats)
        return
    repeats = 1 if options.smoke else options.repeats
    options.out.mkdir(parents=True, exist_ok=True)
    for cases in problems(device, options.smoke):
        print(cases[0].problem)
        results = [measured(case, device, repeats) for case in cases]
        for result in results:
            slug = re.sub(r"[^a-z0-9]+", "-", f"{result['problem']}-{result['method']}".lower())
            path = options.out / f"kernels-{slug}-{device.type}.json"
            path.write_text(json.dumps(result, indent=1) + "\n")
            share = f"{result['share_of_limit']:6.1%} of the limit" if "share_of_limit" in result else ""
            rates = f"{result['bytes_per_second'] / 1e9:9.2f} GB/s {result['flop_per_second'] / 1e12:8.3f} TFLOP/s"
            print(f"    {result['method']:24} {1e6 * result['seconds']:10.1f} us {rates} {share}")
        print(verdict(cases, results) + ("" if device.type == "cuda" else " (interpreted: no measurement)"), flush=True)


if __name__ == "__main__":
    main()
