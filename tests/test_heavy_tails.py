"""Networks whose gradients have heavy-tailed norms, and gradients far from 1."""

import itertools
from functools import partial

import examples
import pytest
import torch
from examples import perceptron
from nads_book.analysis.forecasting import restored
from nads_core.directions.accumulation import read_checkpoint
from torch import nn
from torch.testing import assert_close

import nads_core as nc
from nads_core.directions.eigenpairs import HEAVY, EigenProblem
from nads_core.directions.moments import DenseMoments, GramMoments, HalfSamples, effective_share

SHAPE = (1, 8, 8)
compute = partial(examples.compute, device="cpu", estimator=nc.SmoothedGradient(4))
plain = partial(perceptron, 64, 16)


def spectral():
    layers = nn.Conv2d(1, 4, 3, padding=1), nn.Linear(64, 16), nn.Linear(16, 1)
    first, second, last = map(nn.utils.spectral_norm, layers)
    features = nn.Sequential(first, nn.ReLU(), nn.AvgPool2d(2), nn.Flatten())
    return nn.Sequential(features, second, nn.ReLU(), last)


def squared_norms(path):
    return restored(read_checkpoint(path))[1].halves().double().mean(2).square().sum(2).mean(1)


@pytest.mark.parametrize("readouts", [1, 3])
def test_the_effective_number_of_networks(tmp_path, readouts):
    estimator = nc.SmoothedGradient(4, readouts=readouts)
    path = tmp_path / "run.ckpt"
    _, nads, _ = (
        compute(plain, count, estimator=estimator, checkpoint=path) for count in (128, 300, 320)
    )
    powers = squared_norms(path)[:300]
    expected = float(powers.sum() ** 2 / powers.square().sum())
    assert nads.provenance["effective_networks"] == pytest.approx(expected, rel=1e-3)
    assert f"300 networks (effective: {round(expected)})" in repr(nads)


def test_certainties_under_heavy_tails_are_kept():
    runs = []
    for seed in range(4):
        with pytest.warns(UserWarning, match=r"a few networks hold .*spectral.*equal_weights=True"):
            runs.append(compute(spectral, 512, seed=seed))
    cosines = [(a.basis * b.basis).sum(0)[:3] for a, b in itertools.pairwise(runs)]
    held = torch.stack(cosines).square()
    promised = torch.stack([run.uncertainty.agreement[:3] for run in runs])
    assert promised.max() < 0.4 and abs(promised.mean() - held.mean()) < 0.15  # .3 and more before


def bottleneck():
    """A network of one feature, whose norm is as random as its direction."""
    return nn.Sequential(nn.Linear(512, 1), nn.Linear(1, 8), nn.Linear(8, 8))


@pytest.mark.parametrize("readouts", [1, 8])
def test_what_single_networks_hold_is_not_claimed(readouts):
    options = {"image_shape": (512,), "estimator": nc.SmoothedGradient(4, readouts=readouts)}
    with pytest.warns(UserWarning, match=r"of bottleneck: .* is [1-3]\S* of 16.* 8 are"):
        runs = [compute(bottleneck, 16, seed=seed, **options) for seed in range(2)]
    assert runs[0].overlap(runs[1], 4) < 0.05 and runs[0].provenance["effective_networks"] > 2.4
    for run in runs:  # of the first four .6 and more were claimed
        assert not run.certainty.any() and not run.uncertainty.leading_certainty.any()
        assert not any(band.certainty for band in run.bands)
        assert run.eigenvalue_std[0].isfinite() and "0 certain" in repr(run)


def test_few_networks_that_share_directions_are_claimed():
    class Shared(nn.Sequential):
        def forward(self, x):
            return super().forward(x[:, :4] * torch.tensor([8.0, 4.0, 2.0, 1.0]))

    estimator = nc.SmoothedGradient(4, readouts=4)
    nads = compute(lambda: Shared(nn.Linear(4, 8)), 24, image_shape=(64,), estimator=estimator)
    assert nads.certainty[0] > 0.9


def test_what_normalising_divides_by(tmp_path):
    path = tmp_path / "run.ckpt"
    options = {"dtype": torch.float64, "debiasing": "none", "equal_weights": True}
    nads = compute(plain, 256, checkpoint=path, **options)
    assert nads.provenance["effective_networks"] == pytest.approx(256)
    assert float(nads.eigenvalues.sum()) == pytest.approx(1, rel=1e-6)
    assert torch.allclose(squared_norms(path), torch.ones(256).double(), atol=1e-5)


@pytest.mark.parametrize(("kind", "num_contributions"), [(DenseMoments, 1), (GramMoments, 4)])
def test_only_heavy_tails_change_a_certificate(kind, num_contributions):
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(400, 1, 64, generator=generator) / torch.arange(1, 65)
    vectors = vectors + 0.1 * torch.randn(400, num_contributions, 64, generator=generator)

    def solved(vectors, share):
        moments = kind(64)
        first = HalfSamples()
        moments.update(vectors)
        first.update(0, 400, vectors, 1)
        return EigenProblem(moments, first, 8, SHAPE, effective_share=share).eigenpairs()

    def share_of(vectors):
        squares = vectors.mean(1).double().square().sum(1)
        sums = squares.sum(), squares.square().sum()
        return effective_share(400, *map(float, sums))

    usual, same = (solved(vectors, s) for s in (1, share_of(vectors)))
    assert torch.equal(usual.uncertainty.certainty, same.uncertainty.certainty)
    vectors[:20] *= 10
    share = share_of(vectors)
    false, true = (solved(vectors, s) for s in (1, share))
    assert 0.05 < share < HEAVY and torch.equal(false.directions, true.directions)
    assert false.uncertainty.certainty[0] > 0.94 > true.uncertainty.certainty[0] + 0.03


@pytest.mark.parametrize("factor", [1e-22, 1e20])
@pytest.mark.parametrize("image_shape", [SHAPE, (3, 64, 64)])
def test_gradients_far_from_one_neither_underflow_nor_overflow(tmp_path, factor, image_shape):
    size = 3 * 64 * 64 if image_shape != SHAPE else 64

    def factory(scale):
        network = perceptron(size, 16)
        network[3].weight.data.mul_(scale)
        return network

    options = {"image_shape": image_shape, "num_directions": 6}
    usual = compute(lambda: factory(1.0), 64, **options)
    path = tmp_path / "run.ckpt"
    compute(lambda: factory(factor), 32, checkpoint=path, **options)
    far = compute(lambda: factory(factor), 64, checkpoint=path, **options)
    scale = torch.tensor(read_checkpoint(path)["scale"])
    assert float(scale) * factor == pytest.approx(1, rel=500) and scale.log2() % 1 == 0
    values = far.eigenvalues / factor**2
    errors = far.eigenvalue_std / factor**2
    assert_close(values, usual.eigenvalues.double(), rtol=1e-4, atol=0)
    assert_close(errors, usual.eigenvalue_std.double(), rtol=1e-2, atol=0)
    assert_close(far.certainty, usual.certainty, rtol=0, atol=1e-3)
    far.save(tmp_path / "far.npz")
    assert torch.equal(nc.NADs.load(tmp_path / "far.npz").eigenvalues, far.eigenvalues)


class Tiny(nn.Module):
    """A network whose output is multiplied by a number that float32 has, twice."""

    def __init__(self, factor):
        super().__init__()
        self.network = plain()
        self.factor = factor

    def forward(self, x):
        return self.network(x) * self.factor * self.factor


@pytest.mark.parametrize(
    "factor", [1e-20, 1e-25]
)  # gradients of 1e-40, which has few digits, and of 1e-50, which is 0
def test_gradients_below_the_numbers_of_float32_are_rejected(factor):
    with pytest.raises(ValueError, match="float32"):
        compute(lambda: Tiny(factor), 16)
    usual, tiny = (
        compute(lambda size=size: Tiny(size), 16, dtype="float64") for size in (1.0, factor)
    )
    assert torch.allclose(
        tiny.eigenvalues[:3] / factor**4, usual.eigenvalues[:3].double(), rtol=1e-5
    )
