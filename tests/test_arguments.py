"""Arguments: their names and defaults, and the errors of every package but `training`, which
show what was received.
"""

import inspect
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import examples
import numpy as np
import pytest
import torch
from convergence import random_nads, simulated
from examples import perceptron, same
from torch import nn

import nads_core as nc
from nads_core.directions import Uncertainty
from nads_core.networks.architectures import architecture_named

SIGNATURES = Path(__file__).with_name("signatures.txt")


def compute(num_networks=8, factory=nc.LOGREG, **options):
    return examples.compute(factory, num_networks, **options)


def test_signatures_and_defaults_are_those_on_record():
    """A changed name or default changes users' scripts: signatures.txt records all of them."""
    present = []
    values = {name: getattr(nc, name) for name in nc.__all__}
    for name, value in list(values.items()):
        for member, method in inspect.getmembers(value, inspect.isfunction):
            if inspect.isclass(value) and method.__module__.startswith("nads_core"):
                values |= {} if member.startswith("_") else {f"{name}.{member}": method}
    for name, value in values.items():
        if inspect.isfunction(value) or inspect.isclass(value):
            bare = [
                p.replace(annotation=p.empty) for p in inspect.signature(value).parameters.values()
            ]
            present.append(f"{name}{inspect.Signature(bare)}")
    assert sorted(present) == SIGNATURES.read_text("utf8").splitlines()


def test_integers_of_numpy_are_those_of_python(tmp_path):
    def run(integer, **others):
        options = {"seed": integer(3), "output": integer(0), "num_directions": integer(8)}
        estimator = nc.SmoothedGradient(integer(8), readouts=integer(1))
        shape = (integer(1), integer(8), integer(8))
        options |= {"image_shape": shape, "num_networks": integer(20), "estimator": estimator}
        return compute(**options, **others)

    first = run(np.int64, checkpoint=tmp_path / "numpy.npz")
    first.save(tmp_path / "x.npz")
    assert nc.load_nads(tmp_path / "x.npz").provenance == first.provenance
    for second in (run(int, checkpoint=tmp_path / "numpy.npz"), run(int)):
        assert same(second, first)


@pytest.mark.skipif(torch.cuda.is_available(), reason="tests the error on a machine without a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:3", "gpu", "xpu"])
def test_a_device_that_is_not_there_is_named(device):
    with pytest.raises(
        ValueError, match=f"device '{device}' cannot be used .*leave it out, or take 'cpu'"
    ):
        compute(device=device)


NADS = random_nads(2, 3, 4, count=12)
V = NADS.directions[:2]
GREY = random_nads(1, 4, 4)
WAVE = GREY[0]
PHOTOS, LABELS = torch.rand(30, 3, 4, 4), torch.arange(30) % 10
MOMENT = simulated(torch.ones(6), 8)
COUNTS = torch.zeros(3)
BARE = type("Bare", (nc.PointGradient,), {"__repr__": object.__repr__})


def mapped(*shape, by):
    compute(8, partial(perceptron, math.prod(shape)), image_shape=shape, symmetries=(by,))


def poisoned(images=PHOTOS, labels=LABELS, index=0, **options):
    nc.poison(images, labels, GREY, index, **options)


ERRORS = [  # call, and what the error shows
    # directions: what is asked of NADs and second moments
    (lambda: NADS[:2].overlap(V, k=3), "k = 3 .*2 and 2"),
    (lambda: NADS.overlap(V, k=0), "k must be a positive integer, got 0"),
    (lambda: NADS.overlap(torch.ones(24)), r"\(24,\)"),
    (lambda: NADS.overlap(torch.eye(9)[:2], k=2), r"24 pixels, got shape \(2, 9\)"),
    (lambda: NADS.overlap(3 * V, k=2), "wrong by 8"),
    (lambda: NADS.energy(torch.zeros(2, 4, 3)), r"\(2, 3, 4\), .*got \(2, 4, 3\)"),
    (lambda: NADS.energy(3 * V[0]), "norm 3, expected 1"),
    (lambda: NADS.coordinates(V[None]), r"got \(1, 2, 2, 3, 4\)"),
    (lambda: nc.NADs(torch.zeros(3, 1, 2, 2), torch.zeros(2)), r"\(3, 1, 2, 2\) and \(2,\)"),
    (lambda: replace(NADS, uncertainty=Uncertainty((), *[COUNTS] * 3)), "12 directions, got 0"),
    (lambda: nc.load_nads("alexnet"), "alexnet.*densenet121, lenet"),
    (lambda: MOMENT.energy(torch.ones(2, 6)), r"\(6,\), got \(2, 6\)"),
    (lambda: MOMENT.energy(torch.ones(6)), "norm 2.449, expected 1"),
    # directions: estimators
    (lambda: nc.PointGradient(0.0), "input_std must be .*0.0"),
    (lambda: nc.SmoothedGradient(3), "num_inputs must be .*even.*3"),
    (lambda: nc.SmoothedGradient(0), "num_inputs must be a positive integer"),
    (lambda: nc.SmoothedGradient(readouts=0), "readouts must be a positive integer"),
    (lambda: nc.Dipole(step=math.nan), "step must be .*nan"),
    (lambda: compute(estimator=BARE()), "Bare: make it a frozen"),
    (lambda: compute(estimator=nc.Dipole), r"Dipole.*add \(\)"),
    (lambda: compute(estimator="smoothed"), "got 'smoothed'"),
    # directions: the arguments of a run
    (lambda: compute(0), "num_networks must be a positive integer"),
    (lambda: compute(seed=1.5), "seed must be a non-negative integer, got 1.5"),
    (lambda: compute(output=-1), "output must be a non-negative integer, got -1"),
    (lambda: compute(dtype="float31"), "dtype .* got 'float31'"),
    (lambda: compute(dtype=torch.int64), "dtype .* got torch.int64"),
    (lambda: compute(image_shape=32), r"image_shape must be .*\(C, H, W\).* got 32"),
    (lambda: compute(image_shape=(True, 8, 8)), "must be positive integers"),
    (lambda: compute(image_shape=(1, 1, 8, 8)), r"image_shape .*\(1, 1, 8, 8\)"),
    (lambda: compute(image_shape=(1, 32, 28)), r"square .*\(1, 32, 28\)"),
    (lambda: compute(num_directions=True), "num_directions .*1 to 64, got True"),
    (lambda: compute(num_directions=65), "1 to 64, got 65"),
    (lambda: compute(num_certain=0), "num_certain .*1 to 64, got 0"),
    (lambda: compute(workers="two"), "workers .*'two'"),
    (lambda: compute(kernels="cuda"), "'cuda': choose from .*'torch', 'triton'"),
    (lambda: mapped(2, 50, 50, by="transpose"), "5,000 .*: leave them out"),
    (lambda: mapped(1, 4, 6, by="transpose"), "4 x 6"),
    (lambda: mapped(7, by="flip_rows"), r"\(7,\)"),
    (lambda: mapped(1, 4, 4, by="rotate"), "'rotate'.*flip_rows"),
    (lambda: compute(symmetries="transpose"), r"\(\) for none, got 'transpose'"),
    # networks
    (lambda: nc.LOGREG.build(0, 32, 1), "in_channels .*got 0"),
    (lambda: nc.LOGREG.build(1, 8, 1.5), "num_classes must be a positive integer"),
    (lambda: nc.RESNET18.variant(pooling="median").build(), "'median': choose from .*'max'"),
    (lambda: nc.Architecture("mine", nn.Flatten, symmetries=("rotate",)), "'rotate'"),
    (lambda: architecture_named("torchvision:vit_b_16", (3, 48, 32)), r"square .*\(3, 48, 32\)"),
    # data
    (lambda: nc.separable_dataset(2 * WAVE, 5), "norm 2, expected 1"),
    (lambda: nc.separable_dataset(WAVE, 0), "num_samples must be a positive integer"),
    (lambda: nc.separable_dataset(WAVE, 5, seed=-1), "seed must be a non-negative integer"),
    (lambda: nc.separable_dataset(WAVE, 5, 0.0), "margin .*0.0"),
    (lambda: nc.separable_dataset(WAVE, 5, noise_std=math.inf), "noise_std .*inf"),
    (lambda: nc.SeparableDatasets(WAVE, 5), r"\(B, C, H, W\), got \(1, 4, 4\)"),
    (lambda: nc.SeparableDatasets(WAVE[None], 41, paired=True), "num_samples, got 41"),
    (lambda: nc.SeparableDatasets(WAVE[None], 5)[1], "there are 1 datasets"),
    (lambda: nc.SeparableDatasets(WAVE[None], 4)[:2], "slice"),
    (lambda: nc.fourier_direction((1, 0), 3.5), "size .*3.5"),
    (lambda: nc.fourier_direction((1, 2, 3)), "two integers"),
    (lambda: nc.fourier_direction((math.nan, 1)), "two integers"),
    (lambda: nc.spectrum(torch.zeros(4, 4)), "no spectrum"),
    (lambda: nc.normalize(PHOTOS[:, :1]), "1 channels, but there are 3"),
    (lambda: poisoned(PHOTOS[:, :2]), "1 or 3 channels, got 2"),
    (lambda: poisoned(PHOTOS[..., :3]), "images of shape"),
    (lambda: poisoned(labels=LABELS[1:]), "integer labels"),
    (lambda: poisoned(index=15), "more than the 16 given"),
    (lambda: poisoned(index=-1), "index .* -1"),
    (lambda: poisoned(strength=-0.1), "strength .*-0.1"),
    (lambda: poisoned(strength=math.inf), "strength .*inf"),
    (lambda: poisoned(PHOTOS.to(torch.uint8)), "uint8"),
    (lambda: nc.flip(PHOTOS, GREY[:10]), "got 10: compute all"),
    (lambda: nc.flip(PHOTOS[..., :3, :4], NADS), "single-channel"),
]


@pytest.mark.parametrize(("call", "shown"), ERRORS)
def test_errors_show_what_was_received(monkeypatch, call, shown):
    monkeypatch.setattr(nc.SecondMoment, "add", lambda *_: pytest.fail("begun"))
    with pytest.raises((IndexError, TypeError, ValueError), match=shown):
        call()
