"""The suite: which cases are measured, and the files that keep what was found."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from nads_book.benchmarks.measuring import first_directions, measure_eigenvectors, measure_network, torchvision_resnet18
from nads_book.benchmarks.roofline import Limits, data_sheet, measure_limits
from nads_core.directions import NADs
from nads_core.directions.estimators import Dipole, Estimator, MixedDerivative, PointGradient, SmoothedGradient
from nads_core.networks.architectures import ARCHITECTURES
from nads_core.networks.ensembles import Ensemble
from nads_core.runtime.arguments import usable_device
from nads_core.runtime.files import atomic_write, checkout_folder
from nads_core.runtime.provenance import environment

CASES: dict[str, tuple[Estimator, torch.dtype]] = {
    "smoothed-16": (SmoothedGradient(16), torch.float32),
    "smoothed-16-bfloat16": (SmoothedGradient(16), torch.bfloat16),
    "smoothed-16-readouts-8": (SmoothedGradient(16, readouts=8), torch.float32),
    "point": (PointGradient(), torch.float32),
    "mixed-16": (MixedDerivative(16), torch.float32),
    "dipole": (Dipole(), torch.float32),
}
SCALE_CASE = ("smoothed-4", SmoothedGradient(4))
SCALE_SHAPES = ((3, 16, 16), (3, 32, 32), (3, 64, 64), (3, 128, 128), (3, 224, 224))
SCALE_VECTORS = 500
LARGE_SHAPE, LARGE_ESTIMATOR, LARGE_NETWORKS = (3, 224, 224), SmoothedGradient(8, readouts=8), 64
_SHOWN, _SHOWN_SIZE = 12, 112  # directions that are kept as pictures, and their height


def results_folder() -> Path:
    """Return ``benchmarks/results/`` of the checkout around the working folder, or of the one this file lies in."""
    return checkout_folder("benchmarks/results")


def load_costs(kind: str = "cost", folder: Path | None = None) -> list[dict[str, Any]]:
    """Return the results of one kind ("cost", "scale" or "large"), sorted by file name; none where there are none."""
    files = sorted((folder or results_folder()).glob(f"{kind}-*.json"))
    return [json.loads(path.read_text("utf8")) for path in files]


def load_first_directions(folder: Path | None = None) -> dict[str, np.ndarray]:
    """Return the first NADs of the large run as small pictures, (n, C, H, W), by the name of its file."""
    files = sorted((folder or results_folder()).glob("large-*.npz"))
    pictures = {}
    for path in files:
        with np.load(path) as file:
            pictures[path.stem] = file["directions"].astype(np.float32) * file["scale"]
    return pictures


def _write(folder: Path, kind: str, name: str, case: str, result: dict[str, Any], device: torch.device) -> Path:
    path = folder / f"{kind}-{name}-{case}-{device.type}.json"
    with atomic_write(path) as file:
        file.write(json.dumps(result | environment(device), indent=1) + "\n")
    return path


def _limits(device: torch.device, quick: bool) -> Limits | None:
    if device.type == "cuda":
        return data_sheet(torch.cuda.get_device_name(device))
    return measure_limits(256, 8) if quick else measure_limits()


def run_suite(
    folder: Path | None = None,
    *,
    architectures: tuple[str, ...] = tuple(ARCHITECTURES),
    cases: tuple[str, ...] = tuple(CASES),
    scale: bool = True,
    large: bool = False,
    device: torch.device | str | None = None,
    kernels: str = "torch",
    quick: bool = False,
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Measure all cases; yield each file that was written, with what it holds.

    Args:
        folder: folder of the files; `results_folder` by default.
        architectures: names of architectures.
        cases: keys of `CASES`: an estimator and the type of the networks' numbers.
        scale: whether to measure torchvision's ResNet-18 at growing inputs too.
        large: whether to compute its first 100 NADs at 3 x 224 x 224 instead of all the rest, which takes minutes.
        device: device of the measurements; by default a GPU if there is one.
        kernels: backend, as in `compute_nads`.
        quick: whether to use toy sizes, to see that everything runs; the deep networks of the paper are left out.
    """
    folder = folder or results_folder()
    device = usable_device(device)
    if large:
        yield _large(folder, device, quick)
        return
    limits, seconds, size = _limits(device, quick), 0.02 if quick else 2.0, 16 if quick else 32
    for name in architectures if not quick else [n for n in architectures if n in ("logreg", "lenet")]:
        architecture = ARCHITECTURES[name]
        shape = (1, size, size)
        for case in cases:
            estimator, dtype = CASES[case]
            ensemble = Ensemble(
                partial(architecture.build, 1, shape[1], 1), shape, device=device, dtype=dtype, kernels=kernels
            )
            result: dict[str, Any] = {"problem": _problem(name, shape), "architecture": name, "method": case}
            result |= measure_network(ensemble, estimator, limits, seconds)
            yield _write(folder, "cost", name, case, result, device), result
    shapes = ((3, 16, 16), (3, 56, 56)) if quick else SCALE_SHAPES
    for shape in shapes if scale else ():
        case, estimator = SCALE_CASE
        ensemble = Ensemble(torchvision_resnet18, shape, device=device)
        name = "torchvision-resnet18-" + "x".join(map(str, shape))
        result = {"problem": _problem("torchvision's resnet18", shape), "image_shape": list(shape), "method": case}
        result |= measure_network(ensemble, estimator, limits, seconds)
        result["eigenvectors"] = measure_eigenvectors(math.prod(shape), 20 if quick else SCALE_VECTORS, device=device)
        yield _write(folder, "scale", name, case, result, device), result


def _problem(name: str, shape: tuple[int, int, int]) -> str:
    return f"{name}, {' x '.join(map(str, shape))}"


def _large(folder: Path, device: torch.device, quick: bool) -> tuple[Path, dict[str, Any]]:
    """Compute the first 100 NADs of torchvision's ResNet-18 at 3 x 224 x 224; keep some as small pictures."""
    shape, networks = ((3, 56, 56), 8) if quick else (LARGE_SHAPE, LARGE_NETWORKS)
    estimator = SmoothedGradient(2, readouts=2) if quick else LARGE_ESTIMATOR
    nads, found = first_directions(
        torchvision_resnet18, shape, estimator, networks, device=device, dtype=torch.bfloat16, progress=not quick
    )
    found = {
        "problem": "first 100 NADs of " + _problem("torchvision's resnet18", shape), "image_shape": list(shape),
        "method": repr(estimator), "dtype": "bfloat16", **found,
    }  # fmt: skip
    path = _write(folder, "large", "torchvision-resnet18-" + "x".join(map(str, shape)), "first-100", found, device)
    _save_pictures(nads, path.with_suffix(".npz"))
    return path, found


def _save_pictures(nads: NADs, path: Path) -> None:
    size = min(_SHOWN_SIZE, nads.directions.shape[-1])
    small = F.interpolate(nads.directions[:_SHOWN], size=(size, size), mode="area").numpy()
    scale = np.abs(small).max(axis=(1, 2, 3), keepdims=True) / 127
    with atomic_write(path, "wb") as file:
        np.savez_compressed(file, directions=np.round(small / scale).astype(np.int8), scale=scale)
