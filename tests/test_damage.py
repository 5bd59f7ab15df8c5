"""Files that were damaged, cut off or not written in full: an error names the file, and the
previous one stays.
"""

import examples
import numpy as np
import pytest
import torch
from nads_core.directions.accumulation import read_checkpoint
from torch import nn

import nads_core as nc
from nads_core.directions.nads import NADs


def factory():
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 1))


def compute(path, num_networks=64):
    options = {"estimator": nc.PointGradient(), "image_shape": (1, 4, 4), "checkpoint": path}
    return examples.compute(factory, num_networks, **options)


@pytest.fixture(params=[("run.ckpt", read_checkpoint), ("nads.npz", NADs.load)], ids=lambda p: p[0])
def written(request, tmp_path):
    """Write a checkpoint and NADs; give the path of one of them, and its reader."""
    compute(tmp_path / "run.ckpt").save(tmp_path / "nads.npz")
    name, read = request.param
    return tmp_path / name, read


def test_any_flipped_bit_is_noticed(written):
    path, read = written
    content = path.read_bytes()
    assert read(path)
    places = np.random.default_rng(0).choice(8 * len(content), 60, replace=False)
    end = range(8 * (len(content) - 100), 8 * len(content), 29)  # where the checksum is
    for place in (*places, *end):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=path.name):
            read(path)


@pytest.mark.parametrize("kept", [0, 1, 21, 100, -1, -40, -72, -100])
def test_a_truncated_file_is_named(written, kept):
    path, read = written
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=path.name):
        read(path)


def test_a_file_of_another_kind_is_no_checkpoint(tmp_path):
    path = tmp_path / "run.ckpt"
    texts = [b"eine Zeile\n" * 100, b"e\n", b"(lp0\n.", b"PK\5\6" + bytes(18)]
    for content in texts:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"run\.ckpt is .*no checkpoint"):
            compute(path)
        assert path.read_bytes() == content
    compute(None).save(tmp_path / "nads.npz")
    (tmp_path / "nads.npz").rename(path)
    with pytest.raises(ValueError, match=r"run\.ckpt is .*no checkpoint"):
        compute(path)
    compute(tmp_path / "real.ckpt")
    with pytest.raises(ValueError, match=r"real\.ckpt holds no NADs"):
        NADs.load(tmp_path / "real.ckpt")


def test_files_without_a_checksum_are_read(tmp_path):
    path = tmp_path / "run.ckpt"
    compute(path)
    saved = read_checkpoint(path)
    torch.save(saved, path)
    assert read_checkpoint(path)["description"] == saved["description"]


@pytest.fixture
def full_disk():
    """Give a function after which files cannot grow beyond 1,000 bytes."""
    resource = pytest.importorskip("resource", reason="needs a limit on the size of files")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_previous_files(tmp_path, full_disk):
    path = tmp_path / "run.ckpt"
    nads = compute(path)
    nads.save(path.with_suffix(".npz"))
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    full_disk()
    with pytest.raises(OSError, match=r"run\.ckpt.*free space"):
        compute(path, 256)
    with pytest.raises(OSError, match=r"run\.npz.*free space"):
        nads.save(path.with_suffix(".npz"))
    assert before == {file: file.read_bytes() for file in tmp_path.iterdir()} and len(before) == 2
