"""The cost of architectures and estimators.

    python benchmarks/costs.py            # minutes: every estimator, then growing inputs
    python benchmarks/costs.py --large    # minutes: only the first NADs at 3 x 224 x 224

``--quick`` runs all of it at toy sizes.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from nads_book.benchmarks import measure_eigenvectors, measure_network, prepared
from nads_book.benchmarks.measuring import CASES, peak_memory
from nads_book.benchmarks.stored import results_folder, write_result
from torch import nn

from nads_core.directions.compute import second_moment
from nads_core.directions.estimators import SmoothedGradient
from nads_core.networks.architectures import ARCHITECTURES
from nads_core.runtime.arguments import usable_device

SCALE_CASE = ("smoothed-4", SmoothedGradient(4))
SCALE_SHAPES = ((3, 16, 16), (3, 32, 32), (3, 64, 64), (3, 128, 128), (3, 224, 224))
SCALE_VECTORS = 500
LARGE_SHAPE, LARGE_ESTIMATOR, LARGE_NETWORKS = (3, 224, 224), SmoothedGradient(8, readouts=8), 64
LARGE_DIRECTIONS, COMPARED = 100, (1, 10, 100)  # leading directions

Named = tuple[str, dict[str, Any]]  # a results file's name, and its content


def torchvision_resnet18() -> nn.Module:
    """Return torchvision's ResNet-18 with one output: an ImageNet network, for inputs of any size."""
    from torchvision.models import resnet18

    return resnet18(num_classes=1)


def costs(device: torch.device, quick: bool) -> Iterator[Named]:
    """Measure every architecture and estimator."""
    shape = (1, 16, 16) if quick else (1, 32, 32)
    for name in ("logreg", "lenet") if quick else ARCHITECTURES:
        build = partial(ARCHITECTURES[name].build, 1, shape[1], 1)
        for case, (estimator, dtype) in CASES.items():
            run = prepared(build, shape, estimator, dtype, device)
            result = {"problem": _problem(name, shape), "architecture": name, "method": case}
            result |= measure_network(run, 0.02 if quick else 2.0)
            yield f"cost-{name}-{case}", result


def growing_inputs(device: torch.device, quick: bool) -> Iterator[Named]:
    """Measure torchvision's ResNet-18 at growing inputs."""
    case, estimator = SCALE_CASE
    for shape in ((3, 16, 16), (3, 56, 56)) if quick else SCALE_SHAPES:
        problem = _problem("torchvision's resnet18", shape)
        result = {"problem": problem, "image_shape": list(shape), "method": case}
        run = prepared(torchvision_resnet18, shape, estimator, device=device)
        result |= measure_network(run, 0.02 if quick else 2.0)
        num_vectors = 20 if quick else SCALE_VECTORS
        result["eigenvectors"] = measure_eigenvectors(math.prod(shape), num_vectors)
        yield f"scale-torchvision-resnet18-{'x'.join(map(str, shape))}-{case}", result


def large(device: torch.device, quick: bool) -> Iterator[Named]:
    """Compute the first NADs of torchvision's ResNet-18 at 3 x 224 x 224 from the Gram matrix, with
    the certainties of their subspaces.
    """
    shape, num_networks = ((3, 56, 56), 8) if quick else (LARGE_SHAPE, LARGE_NETWORKS)
    estimator = SmoothedGradient(2, readouts=2) if quick else LARGE_ESTIMATOR
    result: dict[str, Any] = {
        "problem": "first 100 NADs of " + _problem("torchvision's resnet18", shape),
        "image_shape": list(shape),
        "method": repr(estimator),
        "num_networks": num_networks,
    }

    def work() -> None:
        start = time.perf_counter()
        options = {"estimator": estimator, "device": device}
        moment = second_moment(torchvision_resnet18, shape, num_networks, **options)
        middle = time.perf_counter()
        nads = moment.nads((), LARGE_DIRECTIONS)
        end = time.perf_counter()
        result["seconds"] = {"networks": middle - start, "eigenvectors": end - middle}
        result["first_directions"] = {
            str(k): {
                "certainty": float(nads.leading_certainty[k - 1]),
                "chance": k / len(nads.basis),
            }
            for k in COMPARED
            if k <= len(nads)
        }
        result["eigenvalues"] = nads.eigenvalues.tolist()

    result["peak_memory_bytes"] = peak_memory(work, device)
    yield f"first_directions-torchvision-resnet18-{'x'.join(map(str, shape))}", result


def _problem(name: str, shape: tuple[int, ...]) -> str:
    return f"{name}, {' x '.join(map(str, shape))}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print one line per results file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--large", action="store_true", help="only compute the first NADs at 3 x 224 x 224")
    add("--quick", action="store_true", help="toy sizes, to check that everything runs")
    add("--out", type=Path, default=results_folder(), help="folder of the results")
    add("--device", help="cpu, cuda, ...; a GPU if available by default")
    options = parser.parse_args(arguments)
    device, quick = usable_device(options.device), options.quick
    if options.large:
        results = large(device, quick)
    else:
        parts = (costs, growing_inputs)
        results = (each for part in parts for each in part(device, quick))
    for name, result in results:
        path = write_result(f"{name}-{device.type}", result, device, options.out)
        seconds = result.get("seconds_per_network")
        print(path.stem, "" if seconds is None else f"{1e3 * seconds:.2f} ms", flush=True)


if __name__ == "__main__":
    main()
