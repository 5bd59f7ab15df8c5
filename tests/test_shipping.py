"""Files of NADs that are compressed without a change to any number."""

import zipfile

import compress_nads
import numpy as np
import pytest
import torch

import nads_core as nc


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


def computed(size=8, symmetries=("flip_rows", "flip_columns"), channels=1) -> nc.NADs:
    options = {
        "image_shape": (channels, size, size),
        "device": "cpu",
        "progress": False,
        "symmetries": symmetries,
    }
    estimator = nc.SmoothedGradient(2)
    return nc.compute_nads(lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(channels * size**2, 1)), 80,
                           estimator=estimator, **options)  # fmt: skip


@pytest.mark.parametrize("quantized", [True, False])
@pytest.mark.parametrize("kind", ["symmetric", "colour", "not symmetric", "odd", "sequence"])
def test_a_compressed_file_holds_the_same(kind, quantized, tmp_path):
    nads = {
        "symmetric": lambda: computed(), "colour": lambda: computed(4, channels=3),
        "not symmetric": lambda: computed(symmetries=()), "odd": lambda: computed(7),
        "sequence": lambda: nc.NADs(torch.eye(12).view(12, 2, 6), torch.linspace(1, 0.1, 12), {"a": 1}),
    }[kind]()  # fmt: skip
    path = tmp_path / "x.npz"
    nads.save(path, quantized=quantized)
    before = nc.NADs.load(path)
    for _ in range(2):  # a second time, nothing changes
        compress_nads.compress(path)
        after = nc.NADs.load(path)
        require_equal(after, before)
        assert after.fingerprint == before.fingerprint
    with np.load(path) as file:
        folds = kind in ("symmetric", "colour") and quantized
        assert ("mirrored" in file.files) == folds
        if folds:
            assert file["directions"].shape[2:] == tuple(
                size // 2 for size in nads.directions.shape[2:]
            )
    assert all(info.compress_type == zipfile.ZIP_LZMA for info in zipfile.ZipFile(path).infolist())


def test_a_compressed_file_is_protected_against_damage(tmp_path):
    path = tmp_path / "x.npz"
    computed().save(path, quantized=True)
    compress_nads.compress(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="x.npz holds no NADs .*or is damaged"):
        nc.NADs.load(path)


def test_directions_of_both_signs_unfold():
    image = np.arange(1, 9, dtype=np.int16).reshape(2, 1, 2, 2)
    whole = np.concatenate([image, -image[..., ::-1]], -1)
    whole = np.concatenate([whole, whole[..., ::-1, :]], -2)  # even in rows, odd in columns
    parts = compress_nads.folded(whole)
    np.testing.assert_array_equal(parts["directions"], image)
    assert parts["mirrored"].tolist() == [[1, -1]] * 2
    whole[1, 0, 0, 0] += 1
    assert set(compress_nads.folded(whole)) == {"directions"}
