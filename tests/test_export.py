"""Single directions, coordinates, comparisons, tables, and files of other libraries."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from convergence import normal, random_nads
from nads_core.directions.uncertainty import DegenerateCluster, DirectionUncertainty
from torch.testing import assert_close

import nads_core as nc

SHAPES = [(1, 4, 4), (3, 2, 4), (2, 9), (20,)]


def some(shape=(1, 4, 4), seed=0, name="some"):
    nads = random_nads(*shape, count=12, seed=seed)
    certainty = torch.linspace(0.99, 0.2, 12)
    bands = (DegenerateCluster((1, 2), 0.95), DegenerateCluster((3, 4, 11), 0.97))
    known = DirectionUncertainty(
        ("++s", "--a") * 6,
        certainty,
        certainty**2,
        0.1 * nads.eigenvalues,
        certainty.clone(),
        bands,
    )
    return replace(nads, provenance={"architecture": name, "seed": seed}, uncertainty=known)


# --- single directions, and the first ones


def test_one_direction():
    nads = some()
    assert torch.equal(nads[-1], nads.directions[11])
    assert torch.equal(nads[np.int64(3)], nads.directions[3])
    assert torch.equal(torch.stack(list(nads)), nads.directions)


def test_the_first_directions():
    nads = some()
    first = nads[:10]
    assert torch.equal(first.directions, nads.directions[:10])
    assert torch.equal(first.eigenvalues, nads.eigenvalues[:10])
    assert first.names == nads.names[:10] and torch.equal(first.certainty, nads.certainty[:10])
    assert first.bands == (DegenerateCluster((1, 2), 0.95),) and first.provenance == nads.provenance
    assert [len(nads[:stop].bands) for stop in (2, 3, 11, 12)] == [0, 1, 1, 2]
    assert first.overlap_interval(nads, 5) == nads.overlap_interval(nads, 5)
    assert [len(nads[:stop]) for stop in (-2, None, 99)] == [10, 12, 12]
    assert first.fingerprint != nads.fingerprint == nads[:].fingerprint
    for wrong in (slice(2, 5), slice(None, None, 2)):
        with pytest.raises(ValueError, match=r"\[:k\].*nads.directions"):
            nads[wrong]
    assert nc.NADs(nads.directions, nads.eigenvalues)[:3].uncertainty is None


# --- coordinates


@pytest.mark.parametrize("shape", SHAPES)
def test_coordinates_and_back(shape):
    nads = some(shape)
    images = normal(5, *shape, seed=1)
    naive = torch.stack([(images * v).flatten(1).sum(1) for v in nads], 1)
    coordinates = nads.coordinates(images)
    assert_close(coordinates, naive)
    assert_close(nads.coordinates(images[0]), naive[0])
    reconstructed = nads.reconstruct(coordinates)
    assert reconstructed.shape == images.shape
    assert_close(nads.coordinates(reconstructed), coordinates)  # a projection
    first = nads[:3].reconstruct(naive[0, :3])
    assert_close(nads.reconstruct(coordinates[0, :3]), first)


def test_coordinates_of_other_types():
    nads = some()
    assert nads.coordinates(np.zeros((2, 1, 4, 4), np.uint8)).dtype == torch.float32
    assert nads.coordinates(torch.zeros(1, 4, 4).double()).dtype == torch.float64
    assert nads.reconstruct(np.ones(2)).dtype == torch.float64
    with pytest.raises(ValueError, match=r"\(1, 4, 4\), or many, got \(2, 4, 4\)"):
        nads.coordinates(torch.zeros(2, 4, 4))
    with pytest.raises(ValueError, match=r"m <= 12, got \(2, 13\)"):
        nads.reconstruct(torch.zeros(2, 13))


# --- comparisons


def test_an_interval_follows_from_the_triangle_inequality():
    one = some()
    other = replace(one, directions=one.directions.roll(1, 0))  # one of two is shared
    apart = 0.5**0.5
    own = (1 - float(one.uncertainty.leading_certainty[1])) ** 0.5
    interval = one.overlap_interval(other, 2)
    assert interval == pytest.approx((0, 1 - (apart - 2 * own) ** 2), rel=1e-4)
    interval = one.overlap_interval(other.directions, 2)  # which are exact
    assert interval == pytest.approx((1 - (apart + own) ** 2, 1 - (apart - own) ** 2), rel=1e-4)


def test_a_comparison_is_a_table():
    nads = some()
    others = [some(seed=1, name="one"), some(seed=2, name="one")]
    table = nads.compare(others, k=5)
    assert [row.name for row in table] == ["one", "one"]  # equal names do not hide each other
    for row, other in zip(table, others, strict=True):
        expected = (nads.overlap(other, 5), nads.overlap_interval(other, 5), 5, 5 / 16)
        assert (row.overlap, row.interval, row.num_directions, row.chance) == expected
    assert nads.compare(others[0], k=5) == table[:1]
    lenet = nc.load_nads("lenet")
    (row,) = lenet.compare(["vgg11"])
    assert row.name == "vgg11" and row.overlap == lenet.overlap(nc.load_nads("vgg11"), 10)
    assert lenet.compare("vgg11") == [row]
