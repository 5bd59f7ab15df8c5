"""Single directions, coordinates, comparisons, tables, and files of other libraries."""

import importlib.util
import sys
import types

import numpy as np
import pytest
import torch

import nads_core as nc
from nads_core.directions.uncertainty import DegenerateCluster, DirectionUncertainty

SHAPES = [(1, 4, 4), (3, 2, 4), (2, 9), (20,)]


def some(shape=(1, 4, 4), count=12, seed=0, name="some", dtype=torch.float32) -> nc.NADs:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.linalg.qr(
        torch.randn(torch.Size(shape).numel(), count, generator=generator).double()
    ).Q.T
    values = torch.linspace(1, 0.1, count, dtype=dtype)
    certainty = torch.linspace(0.99, 0.2, count, dtype=torch.float64)
    bands = (DegenerateCluster((1, 2), 0.95), DegenerateCluster((9, 11), 0.5))
    known = DirectionUncertainty(
        ("++s", "--a") * (count // 2),
        certainty,
        certainty**2,
        0.1 * values,
        certainty.clone(),
        bands,
    )
    return nc.NADs(
        rows.float().view(count, *shape),
        values,
        {"architecture": name, "seed": seed, "π": [0.1]},
        known,
    )


def require_equal(one: nc.NADs, other: nc.NADs) -> None:
    """Raise unless all fields agree, bit by bit."""
    for name in ("directions", "eigenvalues"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype and torch.equal(a, b)
    assert one.provenance == other.provenance
    assert (one.uncertainty is None) == (other.uncertainty is None)
    if one.uncertainty is not None and other.uncertainty is not None:
        theirs = other.uncertainty.arrays()
        for name, values in one.uncertainty.arrays().items():
            assert values.dtype == theirs[name].dtype
            np.testing.assert_array_equal(values, theirs[name])


# --- single directions, and the first ones


def test_one_direction():
    nads = some()
    assert torch.equal(nads[0], nads.directions[0]) and torch.equal(nads[-1], nads.directions[11])
    assert torch.equal(nads[np.int64(3)], nads.directions[3])
    assert torch.equal(torch.stack(list(nads)), nads.directions)
    for index in (12, -13, "0"):
        with pytest.raises((IndexError, TypeError)):
            nads[index]


def test_the_first_directions():
    nads = some()
    first = nads[:10]
    assert isinstance(first, nc.NADs) and len(first) == 10
    assert torch.equal(first.directions, nads.directions[:10]) and torch.equal(
        first.eigenvalues, nads.eigenvalues[:10]
    )
    assert first.names == nads.names[:10] and torch.equal(first.certainty, nads.certainty[:10])
    assert first.bands == (DegenerateCluster((1, 2), 0.95),) and first.provenance == nads.provenance
    assert first.overlap_interval(nads, 5) == nads.overlap_interval(nads, 5)
    assert len(nads[:-2]) == 10 and len(nads[:]) == len(nads[:99]) == 12 and len(nads[0:4]) == 4
    assert first.fingerprint != nads.fingerprint == nads[:].fingerprint
    for wrong in (slice(2, 5), slice(None, None, 2), slice(None, None, -1)):
        with pytest.raises(ValueError, match=r"\[:k\].*nads.directions"):
            nads[wrong]
    bare = nc.NADs(nads.directions, nads.eigenvalues)
    assert bare[:3].uncertainty is None


# --- coordinates


@pytest.mark.parametrize("shape", SHAPES)
def test_coordinates_and_back(shape):
    nads = some(shape)
    images = torch.randn(5, *shape, generator=torch.Generator().manual_seed(1))
    coordinates = nads.coordinates(images)
    naive = torch.stack(
        [torch.stack([(image * direction).sum() for direction in nads]) for image in images]
    )
    torch.testing.assert_close(coordinates, naive)
    torch.testing.assert_close(nads.coordinates(images[0]), naive[0])
    reconstructed = nads.reconstruct(coordinates)
    assert reconstructed.shape == images.shape
    torch.testing.assert_close(nads.coordinates(reconstructed), coordinates)  # a projection
    torch.testing.assert_close(
        nads.reconstruct(coordinates[0, :3]), nads[:3].reconstruct(naive[0, :3])
    )
    full = nads.completed()
    torch.testing.assert_close(
        full.reconstruct(full.coordinates(images)), images, atol=1e-5, rtol=0
    )


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


def test_a_comparison_is_a_table():
    nads, others = some(), [some(seed=1, name="one"), some(seed=2, name="one")]
    table = nads.compare(others, k=5)
    assert [row.name for row in table] == ["one", "one"]  # equal names do not hide each other
    for row, other in zip(table, others, strict=True):
        assert (row.overlap, row.interval) == (
            nads.overlap(other, 5),
            nads.overlap_interval(other, 5),
        )
        assert row.num_directions == 5 and row.chance == 5 / 16
    assert repr(table).splitlines() == [str(row) for row in table] and "one " in repr(table)
    (same,) = nads.compare([nads], k=2)
    assert same.name == nads.name == "some" and same.overlap == pytest.approx(1)
    assert repr(nads.compare([])) == "[]"
    with pytest.raises(ValueError, match="k = 13"):
        nads.compare(others, k=13)
    with pytest.raises(ValueError, match="no NADs of alexnet ship"):
        nads.compare(["alexnet"])


def test_a_comparison_with_shipped_networks():
    lenet = nc.load_nads("lenet")
    (row,) = lenet.compare(["vgg11"])
    assert row.name == "vgg11" and row.overlap == lenet.overlap(nc.load_nads("vgg11"), 10)
    nearest = lenet.nearest(10)
    assert str(nearest[0]) in repr(nearest)


# --- tables


class Frame:
    """What `pandas.DataFrame` is called with."""

    def __init__(self, columns: dict):
        assert len({len(column) for column in columns.values()}) == 1
        self.columns = columns

    def rename_axis(self, name: str):
        assert name == "NAD"
        return self


@pytest.fixture(params=["stand-in", *(["installed"] if importlib.util.find_spec("pandas") else [])])
def pandas(request, monkeypatch):
    if request.param == "installed":
        return
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=Frame))


def test_a_data_frame(pandas):
    nads = some()
    frame = nads.to_pandas()
    assert list(frame.columns) == ["name", "type", "eigenvalue", "std", "certainty"]
    columns = frame.columns if isinstance(frame, Frame) else frame
    assert list(columns["name"]) == list(nads.names) and list(columns["type"]) == list(nads.types)
    np.testing.assert_array_equal(columns["eigenvalue"], nads.eigenvalues)
    np.testing.assert_array_equal(columns["std"], nads.eigenvalue_std)
    np.testing.assert_array_equal(columns["certainty"], nads.certainty)
    assert list(nc.NADs(nads.directions, nads.eigenvalues).to_pandas().columns) == ["eigenvalue"]


def test_pandas_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas"):
        some().to_pandas()


def test_a_file_of_another_format_is_rejected(tmp_path):
    with pytest.raises(ValueError, match=r"\.safetensors.*npz"):
        some().save(tmp_path / "x.safetensors")
    assert list(tmp_path.iterdir()) == []
