"""The cost of architectures and estimators, against the limits of the device.

python benchmarks/costs.py            # minutes: every architecture and estimator, then growing inputs
python benchmarks/costs.py --large    # minutes: only the first 100 NADs of torchvision's ResNet-18 at 3 x 224 x 224
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nads_book.benchmarks import measure_eigenvectors, measure_network, torchvision_resnet18
from nads_book.benchmarks.measuring import CASES, peak_memory
from nads_book.benchmarks.roofline import Limits, data_sheet, measure_limits
from nads_book.benchmarks.stored import results_folder, write_result
from torch import nn
from torch.nn import functional as F

from nads_core.directions import NADs
from nads_core.directions.accumulation import Accumulation, accumulate
from nads_core.directions.covariance import gram_eigenpairs
from nads_core.directions.estimators import (
    Estimator,
    SmoothedGradient,
)
from nads_core.directions.evaluation import BatchEvaluator, require_gradients
from nads_core.directions.moments import GramMoments
from nads_core.directions.stopping import subspace_error
from nads_core.networks.architectures import ARCHITECTURES
from nads_core.networks.ensembles import Ensemble
from nads_core.runtime.arguments import usable_device
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment

SCALE_CASE = ("smoothed-4", SmoothedGradient(4))
SCALE_SHAPES = ((3, 16, 16), (3, 32, 32), (3, 64, 64), (3, 128, 128), (3, 224, 224))
SCALE_VECTORS = 500
LARGE_SHAPE, LARGE_ESTIMATOR, LARGE_NETWORKS = (3, 224, 224), SmoothedGradient(8, readouts=8), 64
_SHOWN, _SHOWN_SIZE = 12, 112  # directions that are kept as pictures, and their height


def first_directions(
    factory: Callable[[], nn.Module],
    image_shape: tuple[int, int, int],
    estimator: Estimator,
    num_networks: int,
    *,
    count: int = 100,
    compared: tuple[int, ...] = (1, 10, 100),
    seed: int = 0,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
    progress: bool = True,
) -> tuple[NADs, dict[str, Any]]:
    """Compute the first NADs for large inputs from the Gram matrix, with their uncertainty.

    Args:
        factory: function that returns a new network.
        image_shape: (C, H, W).
        estimator: estimator of the gradients.
        num_networks: number of networks.
        count: number of NADs.
        compared: numbers of leading directions whose error is estimated.
        seed: seed of all networks.
        device: device of the computation; by default a GPU if there is one.
        dtype: number type of the networks.
        progress: whether to show a progress bar.

    Returns:
        The NADs, and seconds, peak memory, and for each number of directions the overlap between
        halves of the networks, with twice its standard deviation over pairs of halves, and what
        random directions give.

    Raises:
        ValueError: for fewer networks than four blocks.
    """
    ensemble = Ensemble(factory, image_shape, seed=seed, device=device, dtype=dtype)
    if num_networks < 4 * ensemble.block_size:
        raise ValueError(
            f"halves need at least {4 * ensemble.block_size} networks, got num_networks = {num_networks}"
        )
    dimension, name = math.prod(image_shape), getattr(factory, "__qualname__", "network")
    description = {
        "architecture": name,
        "image_shape": list(image_shape),
        "estimator": repr(estimator),
        "seed": seed,
    }
    results: dict[str, Any] = {}

    def work() -> None:
        start = time.perf_counter()
        state = Accumulation(
            description, GramMoments(dimension, ensemble.device), None, measures_error=True
        )
        vector, _ = require_gradients(ensemble, estimator, name)
        state.identify(ensemble.identity() | {"vector": vector.double().cpu()})
        accumulate(
            BatchEvaluator(ensemble, estimator, name), state, num_networks, progress=progress
        )
        gradients = time.perf_counter() - start
        whole = state.total()
        assert isinstance(whole, GramMoments)
        results["pairs"] = gram_eigenpairs(*whole.vectors(), count)
        results["seconds"] = {
            "networks": gradients,
            "eigenvectors": time.perf_counter() - start - gradients,
        }
        results["errors"] = {
            k: subspace_error(state.groups, k, (), image_shape)
            for k in compared
            if k <= len(results["pairs"][0])
        }

    peak = peak_memory(work, ensemble.device)
    values, directions = results["pairs"]
    provenance = description | {
        "dtype": str(dtype),
        "num_networks": num_networks,
        **environment(ensemble.device),
    }
    nads = NADs(directions.float().cpu().view(-1, *image_shape), values.float().cpu(), provenance)
    overlaps = {
        str(k): {"half_overlap": 1 - 4 * error, "two_deviations": 4 * two, "chance": k / dimension}
        for k, (error, two) in results["errors"].items()
    }
    result = {
        "num_networks": num_networks,
        "seconds": results["seconds"],
        "first_directions": overlaps,
        "peak_memory_bytes": peak,
        "stated_bytes": GramMoments.needed_bytes(
            dimension, num_networks * estimator.readouts, count, dtype
        ),
        "eigenvalues": [float(value) for value in values],
    }
    return nads, result


def _limits(device: torch.device, quick: bool) -> Limits | None:
    if device.type == "cuda":
        return data_sheet(torch.cuda.get_device_name(device))
    return measure_limits(256, 8) if quick else measure_limits()


def run_suite(
    folder: Path,
    device: torch.device,
    quick: bool = False,
    *,
    architectures: Sequence[str] = tuple(ARCHITECTURES),
    cases: Sequence[str] = tuple(CASES),
    scale: bool = True,
    kernels: str = "torch",
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Measure all cases; yield each file that was written, with its content.

    Args:
        folder: folder of the files.
        device: device of the measurements.
        quick: whether to use toy sizes; the deep networks of the paper are left out.
        architectures: names of architectures.
        cases: keys of `CASES`: an estimator and the type of the networks' numbers.
        scale: whether to measure torchvision's ResNet-18 at growing inputs too.
        kernels: backend, as in `compute_nads`.
    """
    limits, seconds, size = _limits(device, quick), 0.02 if quick else 2.0, 16 if quick else 32
    for name in (
        architectures if not quick else [n for n in architectures if n in ("logreg", "lenet")]
    ):
        architecture = ARCHITECTURES[name]
        shape = (1, size, size)
        for case in cases:
            estimator, dtype = CASES[case]
            ensemble = Ensemble(
                partial(architecture.build, 1, shape[1], 1),
                shape,
                device=device,
                dtype=dtype,
                kernels=kernels,
            )
            result: dict[str, Any] = {
                "problem": _problem(name, shape),
                "architecture": name,
                "method": case,
            }
            result |= measure_network(ensemble, estimator, limits, seconds)
            yield write_result(f"cost-{name}-{case}-{device.type}", result, device, folder), result
    shapes = ((3, 16, 16), (3, 56, 56)) if quick else SCALE_SHAPES
    for shape in shapes if scale else ():
        case, estimator = SCALE_CASE
        ensemble = Ensemble(torchvision_resnet18, shape, device=device)
        name = "torchvision-resnet18-" + "x".join(map(str, shape))
        result = {
            "problem": _problem("torchvision's resnet18", shape),
            "image_shape": list(shape),
            "method": case,
        }
        result |= measure_network(ensemble, estimator, limits, seconds)
        result["eigenvectors"] = measure_eigenvectors(
            math.prod(shape), 20 if quick else SCALE_VECTORS, device=device
        )
        yield write_result(f"scale-{name}-{case}-{device.type}", result, device, folder), result


def _problem(name: str, shape: tuple[int, int, int]) -> str:
    return f"{name}, {' x '.join(map(str, shape))}"


def _large(folder: Path, device: torch.device, quick: bool) -> tuple[Path, dict[str, Any]]:
    """Compute the first 100 NADs of torchvision's ResNet-18 at 3 x 224 x 224; keep some as small
    pictures.
    """
    shape, networks = ((3, 56, 56), 8) if quick else (LARGE_SHAPE, LARGE_NETWORKS)
    estimator = SmoothedGradient(2, readouts=2) if quick else LARGE_ESTIMATOR
    nads, result = first_directions(
        torchvision_resnet18,
        shape,
        estimator,
        networks,
        device=device,
        dtype=torch.bfloat16,
        progress=not quick,
    )
    result = {
        "problem": "first 100 NADs of " + _problem("torchvision's resnet18", shape),
        "image_shape": list(shape),
        "method": repr(estimator),
        "dtype": "bfloat16",
        **result,
    }
    name = f"large-torchvision-resnet18-{'x'.join(map(str, shape))}-first-100-{device.type}"
    path = write_result(name, result, device, folder)
    _save_pictures(nads, path.with_suffix(".npz"))
    return path, result


def _save_pictures(nads: NADs, path: Path) -> None:
    size = min(_SHOWN_SIZE, nads.directions.shape[-1])
    small = F.interpolate(nads.directions[:_SHOWN], size=(size, size), mode="area").numpy()
    scale = np.abs(small).max(axis=(1, 2, 3), keepdims=True) / 127
    with atomic_write(path, "wb") as file:
        np.savez_compressed(file, directions=np.round(small / scale).astype(np.int8), scale=scale)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print one line per results file; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--architectures", nargs="+", choices=tuple(ARCHITECTURES), help="architectures to measure")
    add("--cases", nargs="+", choices=tuple(CASES), help="estimators and number types to measure")
    add(
        "--no-scale",
        dest="scale",
        action="store_false",
        default=None,
        help="skip the growing inputs",
    )
    add(
        "--large",
        action="store_true",
        help="only compute the first 100 NADs at 3 x 224 x 224 (minutes)",
    )
    add("--quick", action="store_true", help="toy sizes, to check that everything runs")
    add(
        "--out",
        type=Path,
        default=results_folder(),
        help="folder for the results; benchmarks/results by default",
    )
    add("--device", help="cpu, cuda, ...; a GPU if available by default")
    add("--kernels", help="torch, or triton for the library's own kernels on a GPU")
    options = vars(parser.parse_args(arguments))
    folder, large = options.pop("out"), options.pop("large")
    general = {name: options.pop(name) for name in ("device", "quick")}
    chosen = {name: value for name, value in options.items() if value is not None}
    if large and chosen:
        parser.error(f"--large is not valid with {', '.join(chosen)}: leave it out")
    try:
        device = usable_device(general["device"])
    except ValueError as error:
        parser.error(str(error))
    files = (
        [_large(folder, device, general["quick"])]
        if large
        else run_suite(folder, device, general["quick"], **chosen)
    )
    for path, result in files:
        cost = (
            f"{1e3 * result['seconds_per_network']:10.2f} ms per network"
            if "parts" in result
            else ""
        )
        ratio = f"{result['times_limit']:8.1f} times the limit" if "times_limit" in result else ""
        print(f"{path.stem:<52} {cost} {ratio}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
