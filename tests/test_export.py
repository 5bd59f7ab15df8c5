"""Single directions, coordinates, comparisons, tables, and files of other libraries."""

import importlib.util
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

import nads_core as nc
from nads_core.cli import main
from nads_core.directions.uncertainty import DegenerateCluster, DirectionUncertainty

SHAPES = [(1, 4, 4), (3, 2, 4), (2, 9), (20,)]


def some(shape=(1, 4, 4), count=12, seed=0, name="some", dtype=torch.float32) -> nc.NADs:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.linalg.qr(torch.randn(torch.Size(shape).numel(), count, generator=generator).double()).Q.T
    values = torch.linspace(1, 0.1, count, dtype=dtype)
    certainty = torch.linspace(0.99, 0.2, count, dtype=torch.float64)
    bands = (DegenerateCluster((1, 2), 0.95), DegenerateCluster((9, 11), 0.5))
    known = DirectionUncertainty(
        ("++s", "--a") * (count // 2), certainty, certainty**2, 0.1 * values, certainty.clone(), bands
    )
    return nc.NADs(rows.float().view(count, *shape), values, {"architecture": name, "seed": seed, "π": [0.1]}, known)


def require_equal(one: nc.NADs, other: nc.NADs) -> None:
    """Raise unless all fields agree, bit by bit."""
    for name in ("directions", "eigenvalues"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype and torch.equal(a, b)
    assert one.provenance == other.provenance
    assert (one.certificates is None) == (other.certificates is None)
    if one.certificates is not None and other.certificates is not None:
        theirs = other.certificates.arrays()
        for name, values in one.certificates.arrays().items():
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
    assert torch.equal(first.directions, nads.directions[:10]) and torch.equal(first.eigenvalues, nads.eigenvalues[:10])
    assert first.names == nads.names[:10] and torch.equal(first.certainty, nads.certainty[:10])
    assert first.bands == (DegenerateCluster((1, 2), 0.95),) and first.provenance == nads.provenance
    assert first.overlap_interval(nads, 5) == nads.overlap_interval(nads, 5)
    assert len(nads[:-2]) == 10 and len(nads[:]) == len(nads[:99]) == 12 and len(nads[0:4]) == 4
    assert first.fingerprint != nads.fingerprint == nads[:].fingerprint
    for wrong in (slice(2, 5), slice(None, None, 2), slice(None, None, -1)):
        with pytest.raises(ValueError, match=r"\[:k\].*nads.directions"):
            nads[wrong]
    bare = nc.NADs(nads.directions, nads.eigenvalues)
    assert bare[:3].certificates is None


# --- coordinates


@pytest.mark.parametrize("shape", SHAPES)
def test_coordinates_and_back(shape):
    nads = some(shape)
    images = torch.randn(5, *shape, generator=torch.Generator().manual_seed(1))
    coordinates = nads.coordinates(images)
    naive = torch.stack([torch.stack([(image * direction).sum() for direction in nads]) for image in images])
    torch.testing.assert_close(coordinates, naive)
    torch.testing.assert_close(nads.coordinates(images[0]), naive[0])
    reconstructed = nads.reconstruct(coordinates)
    assert reconstructed.shape == images.shape
    torch.testing.assert_close(nads.coordinates(reconstructed), coordinates)  # a projection
    torch.testing.assert_close(nads.reconstruct(coordinates[0, :3]), nads[:3].reconstruct(naive[0, :3]))
    full = nads.completed()
    torch.testing.assert_close(full.reconstruct(full.coordinates(images)), images, atol=1e-5, rtol=0)


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
        assert (row.overlap, row.interval) == (nads.overlap(other, 5), nads.overlap_interval(other, 5))
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


class DataArray:
    """What `xarray.DataArray` is called with, whose dimensions have to agree."""

    def __init__(self, values: np.ndarray, coords: dict, dims: tuple, name: str, attrs: dict):
        self.sizes = dict(zip(dims, values.shape, strict=True))
        assert all(len(column) == self.sizes[dim] for dim, column in coords.values()) and name == "directions"
        self.values, self.coords, self.attrs = values, coords, attrs


@pytest.fixture(params=["stand-in", *(["installed"] if importlib.util.find_spec("pandas") else [])])
def pandas(request, monkeypatch):
    if request.param == "installed":
        return
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=Frame))


@pytest.fixture(params=["stand-in", *(["installed"] if importlib.util.find_spec("xarray") else [])])
def xarray(request, monkeypatch):
    if request.param == "stand-in":
        monkeypatch.setitem(sys.modules, "xarray", types.SimpleNamespace(DataArray=DataArray))


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


@pytest.mark.parametrize("shape", SHAPES)
def test_a_labelled_array(xarray, shape):
    nads = some(shape)
    array = nads.to_xarray()
    dims = {3: ["channel", "row", "column"], 2: ["channel", "position"], 1: ["feature"]}[len(shape)]
    assert dict(array.sizes) == {"NAD": 12, **dict(zip(dims, shape, strict=True))}
    assert json.loads(array.attrs["provenance"]) == nads.provenance
    np.testing.assert_array_equal(array.values, nads.directions)
    assert set(array.coords) == {"name", "type", "eigenvalue", "std", "certainty"}


@pytest.mark.parametrize(
    ("library", "use"),
    [
        ("pandas", lambda path: some().to_pandas()),
        ("xarray", lambda path: some().to_xarray()),
        ("safetensors", lambda path: some().save(path / "x.safetensors")),
        ("safetensors", lambda path: nc.NADs.load(path / "empty.safetensors")),
    ],
)
def test_a_library_that_is_not_installed_is_named(library, use, monkeypatch, tmp_path):
    (tmp_path / "empty.safetensors").write_bytes(b"")
    for name in (library, f"{library}.numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises((ImportError, ValueError), match=library):
        use(tmp_path)
    assert not (tmp_path / "x.safetensors").exists()


# --- safetensors

_DTYPES = {"F32": "<f4", "F64": "<f8", "I16": "<i2"}


def _save(tensors: dict, metadata: dict) -> bytes:
    """Write the format by hand: length of a JSON header, header, data."""
    codes, data, header = {code: name for name, code in _DTYPES.items()}, b"", {"__metadata__": metadata}
    for name, array in tensors.items():
        span = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": codes[array.dtype.str], "shape": array.shape, "data_offsets": span}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


class _Open:
    def __init__(self, path, framework):
        content = Path(path).read_bytes()
        end = 8 + int.from_bytes(content[:8], "little")
        self.header, self.data = json.loads(content[8:end]), content[end:]
        self.text = self.header.pop("__metadata__")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def metadata(self):
        return self.text

    def keys(self):
        return self.header.keys()

    def get_tensor(self, name):
        entry = self.header[name]
        content = self.data[slice(*entry["data_offsets"])]
        return np.frombuffer(content, _DTYPES[entry["dtype"]]).reshape(entry["shape"]).copy()


INSTALLED = importlib.util.find_spec("safetensors") is not None
HAND, LIBRARY = "by hand", "installed"


def use_safetensors(kind, monkeypatch):
    if kind == HAND:
        monkeypatch.setitem(sys.modules, "safetensors", types.SimpleNamespace(safe_open=_Open))
        monkeypatch.setitem(sys.modules, "safetensors.numpy", types.SimpleNamespace(save=_save))


PAIRS = [(HAND, HAND), *([(LIBRARY, LIBRARY), (LIBRARY, HAND), (HAND, LIBRARY)] if INSTALLED else [])]


@pytest.mark.parametrize(("writer", "reader"), PAIRS)
@pytest.mark.parametrize("shape", SHAPES)
def test_safetensors_hold_everything_exactly(writer, reader, shape, tmp_path):
    nads = some(shape, dtype=torch.float64 if shape == (20,) else torch.float32)
    path = tmp_path / "x.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        use_safetensors(writer, patch)
        nads.save(path)
    with pytest.MonkeyPatch.context() as patch:
        use_safetensors(reader, patch)
        loaded = nc.NADs.load(path)
        require_equal(loaded, nads)
        require_equal(nc.NADs.load(path, more=1), nc.NADs(nads.directions, nads.eigenvalues,
                      nads.provenance | {"more": 1}, nads.certificates))  # fmt: skip
    assert loaded.fingerprint == nads.fingerprint


@pytest.mark.parametrize("kind", [HAND, *([LIBRARY] if INSTALLED else [])])
def test_safetensors_of_integers_and_without_certificates(kind, tmp_path, monkeypatch):
    use_safetensors(kind, monkeypatch)
    nads = some()
    for path in (tmp_path / "x.safetensors", tmp_path / "x.npz"):
        nads.save(path, quantized=True)
    one, other = (nc.NADs.load(tmp_path / name) for name in ("x.safetensors", "x.npz"))
    require_equal(one, other)
    assert one.fingerprint == other.fingerprint
    bare = nc.NADs(nads.directions, nads.eigenvalues, {"a": None})
    bare.save(tmp_path / "bare.safetensors")
    require_equal(nc.NADs.load(tmp_path / "bare.safetensors"), bare)


@pytest.mark.parametrize("kind", [HAND, *([LIBRARY] if INSTALLED else [])])
def test_damaged_safetensors_are_rejected(kind, tmp_path, monkeypatch):
    use_safetensors(kind, monkeypatch)
    path = tmp_path / "x.safetensors"
    some(count=4).save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in [*rng.integers(8, len(content), 40), len(content) - 1]:
        damaged = bytearray(content)
        damaged[position] ^= 4
        path.write_bytes(damaged)
        try:
            loaded = nc.NADs.load(path)
        except ValueError as error:
            assert "x.safetensors holds no NADs" in str(error)
        else:  # the bit has no meaning, such as one of white space
            require_equal(loaded, some(count=4))
    for other in (content[:-1], b"", b"text"):
        path.write_bytes(other)
        with pytest.raises(ValueError, match="x.safetensors holds no NADs"):
            nc.NADs.load(path)


def test_safetensors_on_the_command_line(tmp_path, monkeypatch, capsys):
    use_safetensors(HAND, monkeypatch)
    monkeypatch.chdir(tmp_path)
    arguments = ["compute", "logreg", "--num-networks", "8", "--image-shape", "1", "4", "4", "--device", "cpu"]
    assert main([*arguments, "--out", "x.safetensors"]) == main([*arguments, "--out", "x.npz"]) == 0
    assert nc.NADs.load("x.safetensors").fingerprint == nc.NADs.load("x.npz").fingerprint
    for name in ("safetensors", "safetensors.numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main([*arguments, "--out", "y.safetensors"]) == 2
    assert "safetensors" in capsys.readouterr().err and not list(tmp_path.glob("*y.safetensors*"))
