from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import examples
import pytest
import torch
from convergence import assert_mean
from torch import nn

import nads_core as nc
from nads_core.directions import Estimator, Passes
from nads_core.directions.evaluation import fitting_batch
from nads_core.networks.ensembles import Ensemble

SHAPE = (1, 5, 4)
D = 20
compute = partial(examples.compute, image_shape=SHAPE)


def convnet():
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(18, 2))


def close(actual, expected, tolerance=1e-10):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


# --- closed form


def test_dipoles_of_more_pixels_than_one_chunk():
    estimator = nc.Dipole()
    shape = (2, 17, 20)
    ensemble = Ensemble(
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(680, 1)), shape, dtype=torch.float64
    )
    draw = estimator.draw(ensemble, 0)[:2]
    close(estimator.contributions(ensemble, draw), draw.state["1.weight"])


# --- properties


@dataclass(frozen=True)
class Scaled(Estimator):
    """The minimal estimator."""

    scale: float

    def draw(self, ensemble, block):
        return nc.PointGradient().draw(ensemble, block)

    def contributions(self, ensemble, draw):
        return self.scale * nc.PointGradient().contributions(ensemble, draw)


def test_an_estimator_of_ones_own_resumes_from_its_checkpoint(tmp_path):
    own = Scaled(2)
    assert (own.readouts, own.num_contributions) == (1, 1)
    assert own.passes(D) == Passes(forward=1, backward=1)
    path = tmp_path / "state.ckpt"
    compute(convnet, 64, estimator=own, checkpoint=path)
    resumed = compute(convnet, 128, estimator=Scaled(2), checkpoint=path)
    assert resumed.provenance["estimator"] == "Scaled(scale=2)"
    assert examples.same(resumed, compute(convnet, 128, estimator=own))


def test_an_estimator_without_a_description_is_rejected():
    """Two of them would be taken for one when a checkpoint is resumed."""
    bare = type("Bare", (Scaled,), {"__repr__": object.__repr__})(2.0)
    with pytest.raises(TypeError, match="Bare: make it a frozen dataclass"):
        compute(convnet, 64, estimator=bare)


def test_vectors_of_a_wrong_shape_are_rejected():
    class Flat(Scaled):
        def contributions(self, ensemble, draw):
            return super().contributions(ensemble, draw)[..., :-1]

    with pytest.raises(
        ValueError, match=rf"\(64, 1, {D - 1}\), expected \(64 \* readouts, J, {D}\)"
    ):
        compute(convnet, 64, estimator=Flat(1.0))


@pytest.mark.parametrize(
    ("estimator", "warns"),
    [
        (nc.SmoothedGradient(2), True),
        (nc.SmoothedGradient(1, antithetic=False), True),
        (nc.MixedDerivative(2), True),
        (nc.SmoothedGradient(4), False),
        (nc.SmoothedGradient(2, antithetic=False), False),
        (nc.MixedDerivative(1, antithetic=False), False),
        (nc.PointGradient(), False),
    ],
    ids=repr,
)
def test_noise_of_inputs_that_cannot_be_seen_is_warned_of(estimator, warns):
    expected = (
        pytest.warns(UserWarning, match="certainties are those of C") if warns else nullcontext()
    )
    with expected:
        nads = compute(convnet, 16, estimator=estimator)
    assert ("input_noise" in nads.provenance) == warns


def test_a_gpu_evaluates_as_many_networks_as_a_quarter_of_its_memory_holds(monkeypatch):
    """Two networks that take 3e6 bytes each, beside weights of 1e6 numbers, drawn and joined."""
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 10**6)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 7 * 10**6)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda _: None)
    monkeypatch.setattr("nads_core.directions.evaluation.available_memory", lambda _: free)
    on_a_gpu = SimpleNamespace(
        device=torch.device("cuda"), num_parameters=10**6, dtype=torch.float32, block_size=64
    )
    estimator = SimpleNamespace(
        draw=lambda *_: list(range(64)), contributions=lambda _, draw: len(draw) == 2 or 1 / 0
    )
    for memory, expected in ((6 * 10**8, 10), (10**6, 1), (10**12, 512)):
        free = memory
        assert fitting_batch(on_a_gpu, estimator) == expected

    def too_large(*_):
        raise torch.OutOfMemoryError

    estimator.contributions = too_large
    assert fitting_batch(on_a_gpu, estimator) == 1


@pytest.mark.parametrize(
    "estimator",
    [
        nc.SmoothedGradient(6, 2.5),
        nc.MixedDerivative(6, 2.5),
        nc.PointGradient(2.5),
        nc.Dipole(input_std=2.5),
    ],
    ids=repr,
)
def test_inputs_have_the_given_deviation_and_come_in_opposite_pairs(estimator):
    draw = estimator.draw(Ensemble(convnet, SHAPE), 0)
    inputs = draw.inputs
    assert_mean(inputs[:, ::2].flatten(), 0.0)
    assert_mean(inputs[:, ::2].flatten().square(), 2.5**2)
    if inputs.shape[1] > 1:
        assert torch.equal(inputs[:, ::2], -inputs[:, 1::2])
        assert_mean((inputs[:, 0] * inputs[:, 2]).flatten(), 0.0)  # pairs are independent
    for probe in (draw.probes or {}).values():
        count = min(probe.numel(), inputs.numel())
        assert_mean(probe.flatten()[:count] * inputs.flatten()[:count], 0.0)


def test_readouts_are_independent_of_inputs():
    """A network has equally many numbers of both, so that one stream would give the same ones."""
    draw = nc.SmoothedGradient(9, antithetic=False, readouts=10).draw(Ensemble(convnet, SHAPE), 0)
    cosines = torch.cosine_similarity(draw.readouts[:, 0], draw.inputs.flatten(1)[:, ::10])
    assert_mean(cosines.square(), 1 / 18)


# --- bad arguments


@pytest.mark.parametrize(
    ("estimator", "option", "value"),
    [
        (nc.PointGradient, "input_std", 0.0),
        (nc.PointGradient, "input_std", float("nan")),
        (nc.SmoothedGradient, "num_inputs", 3),
        (nc.SmoothedGradient, "input_std", -1.0),
        (nc.Dipole, "step", 0.0),
    ],
    ids=str,
)
def test_bad_arguments(estimator, option, value):
    with pytest.raises(ValueError, match=f"{option} must be .*{value}"):
        estimator(**{option: value})
