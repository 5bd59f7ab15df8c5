"""Arguments: their names and defaults, and the errors for counts that are no integers and for
missing devices.
"""

import inspect
import types
from pathlib import Path

import examples
import nads_book as nb
import numpy as np
import pytest
import torch
from examples import same

import nads_core as nc
from nads_core.runtime.arguments import usable_device

SIGNATURES = Path(__file__).with_name("signatures.txt")
WAVE = nc.fourier_direction((1, 0), 4)
DATA = torch.zeros(4, 1, 8, 8), torch.tensor([0, 1, 0, 1])


def compute(num_networks=8, **options):
    return examples.compute(nc.LOGREG, num_networks, **options)


def public_callables():
    """Yield the public functions, classes and methods by name."""
    for name in nc.__all__:
        value = getattr(nc, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            yield name, value
        if inspect.isclass(value) or isinstance(value, types.ModuleType):
            for member, function in inspect.getmembers(value, inspect.isroutine):
                if not member.startswith("_") and (
                    getattr(function, "__module__", None) or ""
                ).startswith("nads_core"):
                    yield f"{name}.{member}", function


def signature_without_annotations(function):
    parameters = [
        p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()
    ]
    return str(inspect.Signature(parameters))


def test_signatures_and_defaults_are_those_on_record():
    """A changed name or default changes users' scripts: signatures.txt records all of them."""
    present = [
        f"{name}{signature_without_annotations(function)}"
        for name, function in public_callables()
        if not (inspect.isclass(function) and issubclass(function, Exception))
    ]
    assert sorted(present) == SIGNATURES.read_text("utf8").splitlines()


@pytest.mark.parametrize("value", [True, 1.5, "2", 0, -1, np.float64(2), None], ids=repr)
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("readouts", lambda n: nc.SmoothedGradient(readouts=n)),
        ("num_inputs", lambda n: nc.SmoothedGradient(n, antithetic=False)),
        ("num_networks", lambda n: compute(num_networks=n)),
        ("num_samples", lambda n: nc.separable_dataset(WAVE, n)),
        ("size", lambda n: nb.load_images("generated", num_images=4, size=n)),
        ("epochs", lambda n: nc.Recipe(epochs=n)),
        ("batch_size", lambda n: nc.Recipe(batch_size=n)),
        ("k", lambda n: nc.load_nads("logreg").overlap(nc.load_nads("logreg"), n)),
        ("num_classes", lambda n: nc.LOGREG.build(1, 8, n)),
    ],
)
def test_counts_are_positive_integers(name, use, value):
    with pytest.raises(ValueError, match=f"{name} must be a positive integer"):
        use(value)


@pytest.mark.parametrize("value", [True, 1.5, -1], ids=repr)
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("seed", lambda n: compute(seed=n)),
        ("output", lambda n: compute(output=n)),
        ("seed", lambda n: nc.separable_dataset(WAVE, 5, seed=n)),
        ("seed", lambda n: nb.load_images("generated", num_images=5, seed=n)),
    ],
)
def test_seeds_and_outputs_are_integers_from_0_on(name, use, value):
    with pytest.raises(ValueError, match=f"{name} must be a non-negative integer, got "):
        use(value)


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


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float"])
def test_types_have_names(dtype):
    assert torch.equal(
        compute(dtype=dtype).directions, compute(dtype=getattr(torch, dtype)).directions
    )


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"dtype": "float31"}, "dtype .* got 'float31'"),
        ({"dtype": torch.int64}, "dtype .* got torch.int64"),
        ({"image_shape": 32}, r"image_shape must be .*\(C, H, W\).* got 32"),
        ({"image_shape": "32"}, "got '32'"),
        ({"image_shape": (True, 8, 8)}, "must be positive integers"),
        ({"image_shape": (1, 1, 8, 8)}, r"image_shape .*\(1, 1, 8, 8\)"),
        ({"image_shape": (1, 32, 28)}, r"square .*\(1, 32, 28\)"),
        ({"num_directions": True}, "num_directions .*1 to 64, got True"),
        ({"num_directions": 0}, "1 to 64, got 0"),
        ({"num_directions": 65}, "1 to 64, got 65"),
        ({"num_certain": -1}, "num_certain .*1 to 64, got -1"),
        ({"symmetries": ("transpose",), "image_shape": (2, 50, 50)}, "5,000 .*: leave them out"),
        ({"workers": 0}, "workers .*got 0"),
        ({"workers": "two"}, "workers .*'two'"),
        ({"num_inputs": 8}, "num_inputs"),
    ],
    ids=str,
)
def test_bad_options_are_rejected_before_any_network_counts(monkeypatch, options, shown):
    monkeypatch.setattr(nc.SecondMoment, "add", lambda *_: pytest.fail("begun"))
    with pytest.raises((TypeError, ValueError), match=shown):
        compute(**options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="tests the error on a machine without a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:3", "gpu", "xpu"])
@pytest.mark.parametrize(
    "use",
    [
        usable_device,
        lambda device: compute(device=device),
        lambda device: nc.train_network(
            torch.nn.Linear(1, 1), DATA, recipe=nc.Recipe(), device=device
        ),
        lambda device: nc.train_networks(nc.LOGREG, [DATA], recipe=nc.Recipe(), device=device),
    ],
)
def test_a_device_that_is_not_there_is_named(device, use):
    with pytest.raises(
        ValueError, match=f"device '{device}' cannot be used .*leave it out, or take 'cpu'"
    ):
        use(device)


def test_what_has_no_meaning_in_data_is_rejected():
    with pytest.raises(TypeError, match="slice"):
        nc.SeparableDatasets(WAVE[None], 4)[:2]
    with pytest.raises(ValueError, match="size .*3.5"):
        nc.fourier_direction((1, 0), 3.5)
