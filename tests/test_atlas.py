"""The atlas: its architectures, how their second moments are measured, what ships, and the
neighbours of other NADs.
"""

import copy
import math
from functools import partial
from types import SimpleNamespace

import nads_book as nb
import numpy as np
import pytest
import torch
from convergence import MAPS, normal
from nads_book.atlas import measures, predictions, runs
from nads_book.atlas.assembly import alignment
from nads_book.atlas.entries import ATLAS
from nads_book.atlas.small_networks import Tokens
from nads_book.statistics import Measured, jackknife
from test_architectures import network
from torch import nn
from torch.testing import assert_close

import nads_core as nc

DECLARED = [
    (name, map) for name, entry in ATLAS.items() for map in entry.architecture.symmetries_at(32)
]


# The architectures


def test_every_entry_differs_from_its_base_in_one_thing():
    assert len(ATLAS) >= 32
    for name, entry in ATLAS.items():
        assert bool(entry.base) == bool(entry.factor) and name == entry.architecture.name
        if not entry.base:
            continue
        own = entry.architecture
        other = ATLAS[entry.base].architecture
        assert own.module is other.module
        changed = own.options.items() ^ other.options.items()
        assert len(dict(changed)) == 1, (name, changed)
    changes = [(entry.family, entry.factor, entry.change) for entry in ATLAS.values()]
    assert len(set(changes)) == len(changes)  # figures name them by these


def mapped(module, transform):
    """Apply a map of the image to every filter, and to all that has a place for each pixel or
    patch.
    """
    module, sides = copy.deepcopy(module), []

    def move(weights, side, axis=-1):
        places = weights.data.movedim(axis, -1).unflatten(-1, (-1, side, side))
        weights.data = transform(places).flatten(-3).movedim(-1, axis).contiguous()

    if isinstance(getattr(module, "head", None), nn.Flatten):
        shapes = module.head.register_forward_pre_hook(
            lambda layer, images: sides.append(images[0].shape[-1])
        )
        module(torch.zeros(1, 1, 32, 32).double())
        shapes.remove()
        move(module.linear.weight, *sides)
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            layer.weight.data = transform(layer.weight.data).contiguous()
        elif isinstance(layer, Tokens) and isinstance(layer.position, nn.Parameter):
            move(layer.position, math.isqrt(len(layer.position)), 0)
        elif type(layer).__name__ == "_OverTokens":
            first, _, last = layer.layers
            side = math.isqrt(first.in_features)
            for weights, axis in ((first.weight, 1), (last.weight, 0), (last.bias, 0)):
                move(weights, side, axis)
    return module


@pytest.mark.parametrize(("name", "symmetry"), DECLARED)
def test_declared_symmetries_hold_exactly(name, symmetry):
    module = network(ATLAS[name].architecture)
    transform = MAPS[symmetry]
    x = normal(2, 1, 32, 32, seed=1).double()
    value = module(x)
    there = mapped(module, transform)(transform(x))
    assert_close(there, value, rtol=1e-6, atol=1e-9)
    assert (module(transform(x)) - value).abs().max() > 1e-9  # the map moves this network itself


# How they are measured


def sampled_parts(covariance, noise=0.0, seed=0):
    """Return estimates of C, (8, D, D), each from 200 Gaussian vectors of its own."""
    generator = torch.Generator().manual_seed(seed)
    root = torch.linalg.cholesky(covariance + 1e-12 * torch.eye(len(covariance)).double())
    vectors, *noises = torch.randn(3, 8, 200, len(covariance), generator=generator).double()
    first, second = (vectors @ root.T + noise * each for each in noises)  # whose noise cancels
    product = first.mT @ second / 200
    return (product + product.mT) / 2


def test_measures_of_what_is_known():
    size = 8
    stride = 2
    patterns = measures.repeated_patterns(stride, size).flatten(1)
    assert_close(patterns @ patterns.T, torch.eye(stride**2).double())
    two_levels = 0.2 * torch.eye(size**2).double() + 3 * patterns.T @ patterns
    result = measures.describe(two_levels.expand(3, -1, -1), stride)
    trace = float(two_levels.trace())
    squares = float(two_levels.square().sum())
    expected = {"effective": trace**2 / squares, "unlike levels": 0, "border": 1, "nyquist": 1}
    expected["comb"] = 3.2 / ((3 * 3.2 + 60 * 0.2) / 63)
    for name, value in expected.items():
        assert result[name].value == pytest.approx(value, abs=1e-9), name
    flat = measures.describe(torch.eye(size**2).double().expand(3, -1, -1), 1)
    assert flat["effective"].value == pytest.approx(size**2)
    assert not {"comb", "unlike levels"} & flat.keys()


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_measures_are_unbiased_and_their_intervals_hold(noise):
    steep = torch.diag(torch.logspace(0, -2, 16).double())
    truth = float(steep.trace() ** 2 / steep.square().sum())
    held = 0
    values = []
    for seed in range(60):
        result = measures.describe(sampled_parts(steep, noise=noise, seed=seed), 1)["effective"]
        held += result.interval[0] < truth < result.interval[1]
        values.append(result.value)
    error = np.std(values) / 60**0.5
    assert abs(np.mean(values) - truth) < 4 * error + 0.01 * truth
    assert 48 <= held <= 60  # 95 % of 60 is 57, and a jackknife of eight parts is no more exact


def test_alignment():
    levels = torch.linspace(1, 0, 12).double()
    first, second = torch.diag(levels), torch.diag(levels.flip(0))
    one, again, other = (sampled_parts(c, seed=i) for i, c in enumerate((first, first, second)))
    low, high = alignment(one, again).interval
    assert low < 1 < high < 1.05
    found = alignment(one, other)
    exact = float((first * second).sum() / (first.norm() * second.norm()))
    assert abs(found.value - exact) < 4 * found.error + 1e-3 and found.interval[1] < 0.9


def test_a_jackknife_of_a_mean_is_its_standard_error():
    numbers = np.random.default_rng(0).normal(size=9)
    value, error = jackknife(lambda chosen: numbers[chosen].mean(), 9)
    assert (value, error) == pytest.approx((numbers.mean(), numbers.std(ddof=1) / 3))
    assert str(Measured(8.5, 0.025, 10_000)) == "8.50 (8.45 to 8.55)"
    assert str(Measured(8.5e-9, 4.5e-10, 10_000)) == "8.5 · 10⁻⁹ (7.6 · 10⁻⁹ to 9.4 · 10⁻⁹)"


# How they are computed


SMALL = ATLAS["cnn-width4"]


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """Give a folder and what `compute_entry` found there for `SMALL`."""
    folder = tmp_path_factory.mktemp("atlas")
    return folder, nb.atlas.compute_entry(SMALL, folder, 64, progress=False)


def test_an_entry_is_computed_once_and_read_again(computed):
    folder, first = computed
    assert first.nads.directions.shape == (64, 1, 32, 32) and first.parts.shape == (8, 1024, 1024)
    assert first.nads.provenance["num_networks"] == 64 and first.nads.name == SMALL.name
    again = nb.atlas.compute_entry(SMALL, folder, 64, progress=False)
    assert torch.equal(first.parts, again.parts) and first.measures == again.measures
    stored = nc.load_nads(folder / "cnn-width4.npz")
    assert stored.overlap(first.nads, 64) == pytest.approx(1, abs=1e-3)
    with pytest.raises(ValueError, match="seed"):
        nb.atlas.compute_entry(SMALL, folder, 64, seed=1, progress=False)


def test_parts_are_means_over_every_eighth_network_and_the_symmetries(computed):
    _, found = computed
    options = {"estimator": nc.SmoothedGradient(16), "seed": runs.entry_seed(SMALL)}
    networks = nc.networks.Networks(
        partial(SMALL.architecture.build, 1, 32, 1), (1, 32, 32), options["seed"]
    )
    drawn = [nc.networks.Network(networks, index) for index in range(3, 64, 8)]
    x, y = torch.stack([options["estimator"].vectors(one)[:, 0] for one in drawn], 1).double()
    naive = (x.T @ y + y.T @ x).view(1, 32, 32, 1, 32, 32) / 16
    # A class function of the symmetries: the energy of the constant image, which all leave as it is
    constant = torch.full((1024,), 1 / 32, dtype=torch.float64)
    energy = constant @ naive.view(1024, 1024) @ constant
    assert float(constant @ found.parts[3].double() @ constant) == pytest.approx(
        float(energy), rel=1e-3
    )


# Predictions


@pytest.mark.parametrize(
    ("relation", "than", "error", "held", "open", "failed"),
    [
        ("less", "cnn", 0.01, 0.2, 0.49, 0.8),
        ("greater", 0.5, 0.01, 0.8, 0.51, 0.2),
        ("about", 0, 0.001, 0.01, 0.05, 0.1),
    ],
)
def test_a_prediction_is_scored_by_its_interval(relation, than, error, held, open, failed):
    for verdict, value in {"held": held, "open": open, "failed": failed}.items():
        numbers = {"cnn-average": Measured(value, error, 8), "cnn": Measured(0.5, 0.01, 8)}
        atlas = SimpleNamespace(measures={name: {"high": one} for name, one in numbers.items()})
        assert predictions.verdict(atlas, "cnn-average", "high", relation, than) == verdict


# What ships


@pytest.mark.stored
def test_the_atlas_that_ships():
    atlas = nb.atlas.load_atlas()
    names = list(atlas.entries)
    assert names == list(ATLAS) and atlas.waves.shape == (len(names), 32, 32)
    assert np.array_equal(atlas.alignments, atlas.alignments.T)
    for name, entry in atlas.entries.items():
        assert atlas.facts[name]["num_networks"] == entry.num_networks
        assert ("alignment" in atlas.measures[name]) == bool(entry.base)
        if entry.base:
            alignment = atlas.alignments[names.index(name), names.index(entry.base)]
            assert atlas.effect(name).value == pytest.approx(1 - alignment, abs=1e-4)


@pytest.mark.stored
@pytest.mark.parametrize("name", ATLAS)
def test_nads_of_an_entry_ship(name):
    nads = nb.atlas.load_entry_nads(name)
    assert nads.directions.shape == (64, 1, 32, 32) and nads.provenance["architecture"] == name
    assert_close(nads.basis.T @ nads.basis, torch.eye(64), atol=1e-3, rtol=0)
    atlas = nb.atlas.load_atlas()
    stored = atlas.eigenvalues[list(atlas.entries).index(name)]
    np.testing.assert_allclose(nads.eigenvalues, stored[:64], rtol=1e-5)
    assert len(nads.uncertainty) == 64 and all(max(band.indices) < 64 for band in nads.bands)


# Neighbours


def test_nads_are_their_own_nearest():
    result = nb.atlas.most_similar(nb.atlas.load_entry_nads("cnn-average"), k=5)
    assert result[0].name == "atlas/cnn-average" and result[0].overlap == pytest.approx(1, abs=1e-3)
    assert [one.overlap for one in result] == sorted((one.overlap for one in result), reverse=True)
    for one in result:
        assert one.interval[0] <= one.overlap + 1e-6 and one.overlap - 1e-6 <= one.interval[1]


def test_what_has_no_neighbours_is_refused():
    nads = nc.load_nads("lenet")
    with pytest.raises(ValueError, match="uncertaint"):
        nb.atlas.most_similar(nc.NADs(nads.directions, nads.eigenvalues))
    small = nc.NADs(torch.eye(16).view(16, 1, 4, 4), torch.ones(16))
    with pytest.raises(ValueError, match=r"\(1, 32, 32\), these of \(1, 4, 4\)"):
        nb.atlas.most_similar(small)
