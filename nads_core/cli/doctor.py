"""What works here, and what to trust on a GPU: ``nads doctor`` and ``nads doctor --gpu``.

What `networks`, `directions` and `training` compute by another path on a GPU is compared with the path of a CPU. It
asks many rooms, and stands above all of them, beside the command line.
"""

from __future__ import annotations

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
    """What one check found.

    Args:
        what: was compared.
        fine: whether it agrees.
        said: by how much it differs, or the error.
        otherwise: what not to trust where it does not agree.
        seconds: that the check took.
    """

    what: str
    fine: bool
    said: str
    otherwise: str
    seconds: float

    def __str__(self) -> str:
        verdict = "ok  " if self.fine else "FAIL"
        advice = "" if self.fine else f"\n       -> {self.otherwise}"
        return f"{verdict}  {self.what}: {self.said} ({self.seconds:.1f} s){advice}"


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
    worst = 0.0
    for architecture in ARCHITECTURES.values() if device.type == "cuda" else [LENET]:  # an interpreter takes minutes
        parameters = Initialisation.of(partial(architecture.build, 1, 32, 1), device).random_parameters()
        if parameters is None:  # not each by one operation: PyTorch's generators draw these
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
    """ResNet-18's input gradients of the same two networks, here and on a CPU."""
    found = []
    for place in ("cpu", device):
        ensemble = Ensemble(lambda: RESNET18.build(1, 32, 1), (1, 32, 32), device=place, dtype=torch.float64)
        images = torch.randn(2, 2, 1, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        found.append(ensemble.input_gradients(ensemble.stack(2), images.to(place)))
    return _largest(found[1], found[0])


def _readouts(device: torch.device) -> float:
    """Input gradients of the same eight networks with two readouts each: all at once, and one by one on a CPU."""
    here, there = (
        Ensemble(lambda: LENET.build(1, 16, 1), (1, 16, 16), device=place, dtype=torch.float64, evaluation=evaluation)
        for place, evaluation in (("cpu", "loop"), (device, "vmap"))
    )
    drawn = SmoothedGradient(4, readouts=2).draw(here, 0)[:8]
    assert drawn.readouts is not None, "two were asked for"
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
    """Ends a training early."""


class _Stopping(TrainingState):
    """Stops its training after the first epoch, once the state is written."""

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


# What is compared, the difference that is rounding, and what not to trust beyond it.
CHECKS: tuple[tuple[str, Callable[[torch.device], float], float, str], ...] = (
    ("input gradients of ResNet-18, against the CPU's", _deep_gradients, 1e-9, "anything computed on this device"),
    ("input gradients of two readouts, against the CPU's", _readouts, 1e-9, "readouts: leave them at 1"),
    ("first 10 NADs of LeNet, against the CPU's", _directions, 1e-4, "NADs computed on this device"),
    ("weights drawn by our kernel, against its twin", _weights, 1e-5, 'kernels="triton": leave kernels at "torch"'),
    ("second moments by our kernel, in tf32, against float64", _moments, 2e-3,
     'kernels="triton": leave kernels at "torch"'),
    # On a GPU the rate of a step is a float32 number, on a CPU a Python float.
    ("trainings one after another, against the CPU's", _loop, 1e-6, "trainings on this device"),
    ("trainings in one vectorised step, against the CPU's", _vectorised, 1e-6, 'method="vmap": take method="graph"'),
    ("trainings as CUDA graphs, against the loop", _graph, 1e-6, 'method="graph": take method="loop"'),
    ("first losses in bfloat16, against float32", _rounded, 0.05, "mixed_precision: leave it False"),
    ("NADs begun on this device and finished on the CPU", _checkpoint, 1e-4, "checkpoints that change devices"),
    ("trainings stopped after an epoch and gone on with", _state, 1e-8, "interrupted trainings on this device"),
    ("generators put back after seeding", _generators, 0.0, "seeds on this device"),
)  # fmt: skip


def examine(device: torch.device | str = "cuda") -> Iterator[Finding]:
    """Compare what this device computes with what the CPU computes, and yield each finding.

    On a CPU the kernels run in Triton's interpreter if TRITON_INTERPRET=1 is set, and CUDA graphs are left out.
    After an error of CUDA nothing more is checked.

    Raises:
        ValueError: for a device that is not there.
    """
    device = usable_device(device)
    for what, check, rounding, otherwise in CHECKS:
        if check is _graph and device.type != "cuda":
            continue
        start = time.perf_counter()
        try:
            difference = check(device)
            fine, said = difference <= rounding, f"differs by {difference:.1e}, rounding is up to {rounding:.0e}"
        except Exception as error:  # noqa: BLE001 whatever goes wrong is what the reader wants to know
            fine, said = False, f"{type(error).__name__}: {error}"
        yield Finding(what, fine, said, f"do not trust {otherwise}", time.perf_counter() - start)
        if "CUDA error" in said:  # of which this process does not recover: later checks would fail because of it
            return


def describe() -> Iterator[str]:
    """Say what this machine has of what the library and the book can use, a line each."""
    for name, value in environment(usable_device(None)).items():
        yield f"{name:<12} {value}"
    free = available_memory("cpu")
    yield f"{'cores':<12} {num_cores()}" + (f", {free / 2**30:.1f} GB of memory free" if free else "")
    yield f"{'bfloat16':<12} {_bfloat16()}"
    triton = _installed("triton")
    yield f"{'Triton':<12} {'here' if triton else 'none: kernels stay at torch'}"
    if torch.cuda.is_available():
        facts = torch.cuda.get_device_properties(0)
        size = f"{facts.total_memory / 2**30:.0f} GB"
        yield f"{'GPU':<12} {facts.name}, {size}: nads doctor --gpu compares it with the CPU"
    else:
        yield f"{'GPU':<12} none: chapters run at demo; preset paper is for one"
    try:
        photos = load_images("cifar10", train=False, num_images=10, progress=False, download=False)
        yield f"{'photos':<12} {photos.source}"
    except (DatasetNotFoundError, OSError) as error:
        yield f"{'photos':<12} none, so that chapters 7 and 8 show generated images: {error}"
    known = os.environ.get("NADS_REFERENCE")
    without = "none: chapters 5 and 6 leave out what they compare with the published directions (NADS_REFERENCE)"
    yield f"{'references':<12} {known or without}"
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = os.environ.get("NADS_CHROMIUM", next(filter(None, map(shutil.which, names)), ""))
    yield f"{'browser':<12} {browser or 'none: the tests of the pages are skipped'}"
    lacking = [name for name in ("matplotlib", "jupyter_book", "papermill", "torchvision") if not _installed(name)]
    said = f"without {', '.join(lacking)}: pip install nads-core[book]" if lacking else "what executes it is installed"
    yield f"{'book':<12} {said}"


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _bfloat16() -> str:
    """Say whether bfloat16 is faster than float32 here, by a product of matrices: processors without it emulate it."""
    device, seconds = usable_device(None), {}
    for dtype in (torch.float32, torch.bfloat16):
        matrix = torch.ones(1024, 1024, device=device, dtype=dtype)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            (matrix @ matrix)[0, 0].item()  # waits for a GPU
            times.append(time.perf_counter() - start)
        seconds[dtype] = min(times)
    return f"{seconds[torch.float32] / seconds[torch.bfloat16]:.1f} times as fast as float32 in products of matrices"
