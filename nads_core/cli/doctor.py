"""``nads doctor``: list available optional features; ``nads doctor --gpu``: verify a GPU against the CPU.

The checks compare results of `networks`, `directions` and `training` that a GPU computes by another path than a CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nads_core.data.fourier import fourier_direction
from nads_core.data.images import DatasetNotFoundError, load_images
from nads_core.data.separable import SeparableDatasets
from nads_core.directions import SmoothedGradient, compute_nads
from nads_core.directions.moments import DenseMoments, FusedMoments
from nads_core.kernels import draw_weights, require_kernels
from nads_core.networks.architectures import ARCHITECTURES, LENET, RESNET18
from nads_core.networks.ensembles import Ensemble
from nads_core.networks.initialisation import Initialisation
from nads_core.runtime.arguments import usable_device
from nads_core.runtime.memory import available_memory
from nads_core.runtime.provenance import environment
from nads_core.runtime.seeds import seeded
from nads_core.training import Recipe, TrainingState, num_cores, train_networks


@dataclass(frozen=True)
class Finding:
    """Outcome of one check.

    Args:
        name: quantity that was compared.
        ok: whether the difference is within rounding.
        detail: size of the difference, or the error.
        advice: consequence of a difference.
        seconds: duration of the check.
    """

    name: str
    ok: bool
    detail: str
    advice: str
    seconds: float

    def __str__(self) -> str:
        verdict = "ok  " if self.ok else "FAIL"
        advice = "" if self.ok else f"\n       -> {self.advice}"
        return f"{verdict}  {self.name}: {self.detail} ({self.seconds:.1f} s){advice}"


def _small_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(54, 2)
    )


_RECIPE = Recipe(epochs=3, learning_rate=0.4, batch_size=32, momentum=0.9, weight_decay=5e-3, clip_norm=0.3)


def _datasets() -> tuple[SeparableDatasets, SeparableDatasets]:
    directions = torch.stack([fourier_direction((1, n), 8) for n in range(3)])
    return SeparableDatasets(directions, 160, 2.0, 0.5, 0), SeparableDatasets(directions, 100, 2.0, 0.5, 1)


def _trained(device: torch.device, method: str, dtype: torch.dtype = torch.float64, **options: Any) -> torch.Tensor:
    """Return the losses of three small networks."""
    train, test = _datasets()
    return train_networks(
        _small_network,
        train,
        test,
        recipe=_RECIPE,
        dtype=dtype,
        device=device,
        method=method,
        progress=False,
        **options,
    ).losses


def _largest(a: torch.Tensor, b: torch.Tensor) -> float:
    """Return the largest difference, relative to the largest number."""
    a, b = a.double().cpu(), b.double().cpu()
    return float((a - b).abs().max() / b.abs().max().clamp(min=1e-300))


def _weights(device: torch.device) -> float:
    require_kernels("triton", device)
    worst = 0.0  # on a CPU Triton's interpreter would need minutes for the other architectures
    for architecture in ARCHITECTURES.values() if device.type == "cuda" else [LENET]:
        parameters = Initialisation.of(partial(architecture.build, 1, 32, 1), device).random_parameters()
        if parameters is None:  # PyTorch draws these, because an initialisation takes several operations
            continue
        drawn = (draw_weights(parameters, seed=3, first=5, count=2, device=device, twin=twin) for twin in (False, True))
        worst = max(worst, *(_largest(a, b) for a, b in zip(*drawn, strict=True) if b.numel() and b.abs().max() > 0))
    return worst


def _moments(device: torch.device) -> float:
    generator = torch.Generator().manual_seed(0)
    contributions = torch.randn(96, 9, 1024, generator=generator)
    exact = DenseMoments(1024)
    exact.update(contributions.double())
    fused = FusedMoments(1024, device)
    fused.update(contributions.to(device))
    return max(_largest(a, b) for a, b in zip(fused.sums(), exact.sums(), strict=True))


def _vectorised(device: torch.device) -> float:
    return _largest(_trained(device, "vmap"), _trained(torch.device("cpu"), "loop"))


def _loop(device: torch.device) -> float:
    return _largest(_trained(device, "loop"), _trained(torch.device("cpu"), "loop"))


def _graph(device: torch.device) -> float:
    return _largest(_trained(device, "graph"), _trained(device, "loop"))


def _rounded(device: torch.device) -> float:
    exact, rounded = (_trained(device, "loop", torch.float32, mixed_precision=mixed) for mixed in (False, True))
    return float((exact[:, :4] - rounded[:, :4]).abs().max())


def _directions(device: torch.device) -> float:
    compute = partial(compute_nads, LENET, 128, num_directions=10, seed=1, progress=False)
    here, there = (compute(device=place) for place in ("cpu", device))
    return 1 - here.overlap(there, k=10)


def _deep_gradients(device: torch.device) -> float:
    """Compare input gradients of the same two ResNet-18 networks with those of a CPU."""
    gradients = []
    for place in ("cpu", device):
        ensemble = Ensemble(lambda: RESNET18.build(1, 32, 1), (1, 32, 32), device=place, dtype=torch.float64)
        images = torch.randn(2, 2, 1, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        gradients.append(ensemble.input_gradients(ensemble.stack(2), images.to(place)))
    return _largest(gradients[1], gradients[0])


def _readouts(device: torch.device) -> float:
    """Compare vectorised input gradients of eight networks with two readouts with sequential ones on a CPU."""
    here, there = (
        Ensemble(lambda: LENET.build(1, 16, 1), (1, 16, 16), device=place, dtype=torch.float64, evaluation=evaluation)
        for place, evaluation in (("cpu", "loop"), (device, "vmap"))
    )
    drawn = SmoothedGradient(4, readouts=2).draw(here, 0)[:8]
    assert drawn.readouts is not None, "the estimator has two readouts"
    state = {name: tensor.to(device) for name, tensor in drawn.state.items()}
    moved = there.input_gradients(state, drawn.inputs.to(device), drawn.readouts.to(device))
    return _largest(moved, here.input_gradients(drawn.state, drawn.inputs, drawn.readouts))


def _checkpoint(device: torch.device) -> float:
    compute = partial(compute_nads, LENET, estimator=None, num_directions=10, seed=1, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nads.ckpt"
        compute(64, device=device, checkpoint=path)
        moved = compute(128, device="cpu", checkpoint=path)
    return 1 - moved.overlap(compute(128, device="cpu"), k=10)


class _StoppedError(Exception):
    """Signal that ends a training early."""


class _Stopping(TrainingState):
    """State that stops its training after the first epoch has been written."""

    def save_if_due(self, *arguments: Any) -> None:
        self._saved_at = -1e9
        super().save_if_due(*arguments)
        raise _StoppedError


def _state(device: torch.device) -> float:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{n}.part" for n in range(3)]
        for n in range(3):
            train, test = _datasets()
            with contextlib.suppress(_StoppedError):
                train_networks(
                    _small_network, [train[n]], [test[n]], recipe=_RECIPE, dtype=torch.float64, device=device,
                    method="loop", progress=False, network_ids=[n], states=[_Stopping(paths[n])],
                )  # fmt: skip
        if not all(path.exists() for path in paths):
            raise RuntimeError("no state was written")
        resumed = _trained(device, "loop", states=[TrainingState(path) for path in paths])
    return _largest(resumed, _trained(device, "loop"))


def _generators(device: torch.device) -> float:
    torch.randn(1, device=device)
    with seeded(5, device):
        first = torch.randn(3, device=device)
    before = torch.randn(3, device=device)
    with seeded(5, device):
        second = torch.randn(3, device=device)
    return _largest(first, second) + float(torch.equal(before, first))


# Name of a check, its function, the difference that rounding explains, and what to avoid if the check fails.
CHECKS: tuple[tuple[str, Callable[[torch.device], float], float, str], ...] = (
    ("input gradients of ResNet-18, against the CPU", _deep_gradients, 1e-9, "do not use this device"),
    ("input gradients of two readouts, against the CPU", _readouts, 1e-9, "leave readouts at 1"),
    ("first 10 NADs of LeNet, against the CPU", _directions, 1e-4, "do not compute NADs on this device"),
    ("weights of the Triton kernel, against its reference", _weights, 1e-5, 'leave kernels at "torch"'),
    ("second moments of the Triton kernel in tf32, against float64", _moments, 2e-3, 'leave kernels at "torch"'),
    # The learning rate of a step is a float32 number on a GPU and a Python float on a CPU.
    ("sequential training, against the CPU", _loop, 1e-6, "do not train on this device"),
    ("vectorised training, against the CPU", _vectorised, 1e-6, 'use method="graph" instead of "vmap"'),
    ("training as CUDA graphs, against the loop", _graph, 1e-6, 'use method="loop" instead of "graph"'),
    ("first losses in bfloat16, against float32", _rounded, 0.05, "leave mixed_precision at False"),
    ("NADs resumed on the CPU", _checkpoint, 1e-4, "do not resume checkpoints on another device"),
    ("training resumed after an epoch", _state, 1e-8, "do not resume training on this device"),
    ("generators restored after seeding", _generators, 0.0, "do not rely on seeds on this device"),
)  # fmt: skip


def examine(device: torch.device | str = "cuda") -> Iterator[Finding]:
    """Compare results of a device with those of the CPU, and yield the outcome of each check.

    On a CPU the kernels run in Triton's interpreter if TRITON_INTERPRET=1 is set, and CUDA graphs are skipped. The
    checks end after a CUDA error, from which a process does not recover.

    Raises:
        ValueError: if the device is not available.
    """
    device = usable_device(device)
    for name, check, rounding, advice in CHECKS:
        if check is _graph and device.type != "cuda":
            continue
        start = time.perf_counter()
        try:
            difference = check(device)
            ok, detail = difference <= rounding, f"differs by {difference:.1e}, rounding explains {rounding:.0e}"
        except Exception as error:  # noqa: BLE001 every error is a result of the check
            ok, detail = False, f"{type(error).__name__}: {error}"
        yield Finding(name, ok, detail, advice, time.perf_counter() - start)
        if "CUDA error" in detail:
            return


def describe() -> Iterator[str]:
    """Yield one line per optional feature of this machine."""
    facts: dict[str, object] = dict(environment(usable_device(None)))
    free = available_memory("cpu")
    facts["cores"] = f"{num_cores()}" + (f", {free / 2**30:.1f} GB of memory free" if free else "")
    facts["bfloat16"] = f"{_bfloat16_speed():.1f} times the speed of float32 in matrix products"
    facts["Triton"] = "available" if _installed("triton") else "not installed: kernels stay at torch"
    facts["GPU"] = "none: chapters run at preset demo; preset paper needs one"
    if torch.cuda.is_available():
        device = torch.cuda.get_device_properties(0)
        facts["GPU"] = f"{device.name}, {device.total_memory / 2**30:.0f} GB: nads doctor --gpu verifies it"
    try:
        facts["photos"] = load_images("cifar10", train=False, num_images=10, progress=False, download=False).source
    except (DatasetNotFoundError, OSError) as error:
        facts["photos"] = f"none: chapters 7 and 8 use generated images: {error}"
    absent = "none: chapters 5 and 6 omit comparisons with the published directions (NADS_REFERENCE)"
    facts["references"] = os.environ.get("NADS_REFERENCE") or absent
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = os.environ.get("NADS_CHROMIUM", next(filter(None, map(shutil.which, names)), ""))
    facts["browser"] = browser or "none: tests of the pages are skipped"
    missing = [name for name in ("matplotlib", "jupyter_book", "papermill", "torchvision") if not _installed(name)]
    install = f"missing {', '.join(missing)}: pip install nads-core[book]"
    facts["book"] = install if missing else "all requirements are installed"
    for name, value in facts.items():
        yield f"{name:<12} {value}"


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _bfloat16_speed() -> float:
    """Return the speed of a matrix product in bfloat16 relative to float32: some processors emulate bfloat16."""
    device, seconds = usable_device(None), {}
    for dtype in (torch.float32, torch.bfloat16):
        matrix = torch.ones(1024, 1024, device=device, dtype=dtype)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            (matrix @ matrix)[0, 0].item()  # reading a number waits for a GPU
            times.append(time.perf_counter() - start)
        seconds[dtype] = min(times)
    return seconds[torch.float32] / seconds[torch.bfloat16]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads doctor``."""
    parser.add_argument("--gpu", action="store_true", help="compare results of the GPU with those of the CPU")
    parser.add_argument("--device", help="device to compare instead of the first GPU, such as cuda:1")


def run(gpu: bool = False, device: str | None = None) -> int:
    """List features, or verify a device; return 1 if a check fails."""
    if not (gpu or device):
        for line in describe():
            print(line, flush=True)
        return 0
    all_ok = True
    for finding in examine(device or "cuda"):
        print(finding, flush=True)
        all_ok = all_ok and finding.ok
    print("all checks passed" if all_ok else "some checks failed: follow the advice above")
    return 0 if all_ok else 1
