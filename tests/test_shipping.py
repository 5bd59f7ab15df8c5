"""Files of NADs that are compressed without a change to any number."""

import zipfile

import compress_nads
import numpy as np
import pytest
import torch
from examples import compute

import nads_core as nc


def content(nads, folder):
    """Return all that a plain file of NADs holds."""
    nads.save(folder / "plain.npz")
    with np.load(folder / "plain.npz") as file:
        return dict(file)


def computed(size=8, symmetries=("flip_rows", "flip_columns"), channels=1):
    return compute(nc.LOGREG, 80, (channels, size, size), symmetries=symmetries, device="cpu")


SEQUENCES = torch.eye(12).view(12, 2, 6)
KINDS = {
    "symmetric": computed,
    "colour": lambda: computed(4, channels=3),
    "not symmetric": lambda: computed(symmetries=()),
    "odd": lambda: computed(7),
    "sequence": lambda: nc.NADs(SEQUENCES, torch.linspace(1, 0.1, 12), {"a": 1}),
}


@pytest.mark.parametrize("quantized", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_compressed_file_holds_the_same(kind, quantized, tmp_path):
    nads = KINDS[kind]()
    path = tmp_path / "x.npz"
    nads.save(path, quantized=quantized)
    before = nc.load_nads(path)
    for _ in range(2):  # a second time, nothing changes
        compress_nads.compress(path)
        after = nc.load_nads(path)
        np.testing.assert_equal(content(after, tmp_path), content(before, tmp_path))
    with np.load(path) as file:
        folds = kind in ("symmetric", "colour") and quantized
        assert ("mirrored" in file.files) == folds
        if folds:
            sides = tuple(size // 2 for size in nads.directions.shape[2:])
            assert file["directions"].shape[2:] == sides
    assert all(info.compress_type == zipfile.ZIP_LZMA for info in zipfile.ZipFile(path).infolist())
