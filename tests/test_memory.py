import pytest
import torch
from nads_book.benchmarks.measuring import peak_memory
from torch import nn

import nads_core as nc
from nads_core.cli import main
from nads_core.directions import ComputeOptions, compute
from nads_core.directions.covariance import gram_eigenpairs
from nads_core.directions.moments import GramMoments
from nads_core.runtime import memory
from nads_core.runtime.memory import available_memory, require_memory

NEEDS_PROC = pytest.mark.skipif(available_memory("cpu") is None, reason="this system doesn't say what is free")


def wide() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 2), nn.ReLU(), nn.Linear(2, 1))


def test_more_than_there_is_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda device: 2_000_000_000)
    require_memory(1.9e9, "cpu", "it takes", "ask for less")
    with pytest.raises(MemoryError, match=r"it takes 3\.0 GB.* 2\.0 GB.*ask for less"):
        require_memory(3e9, "cpu", "it takes", "ask for less")
    monkeypatch.setattr(memory, "available_memory", lambda device: None)
    require_memory(1e18, "cpu", "it takes", "ask for less")  # where nobody knows, nobody is held up


def test_compute_nads_refuses_at_once_what_it_could_not_keep(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(memory, "available_memory", lambda device: 10_000_000_000)
    options = {"estimator": nc.SmoothedGradient(4, readouts=2), "image_shape": (3, 64, 64), "progress": False}
    with pytest.raises(MemoryError, match=r"100,000 networks .*2 readouts .* 12,288 pixels.*10\.0 GB"):
        nc.compute_nads(wide, 100_000, num_directions=100, device="cpu", **options)
    assert len(nc.compute_nads(wide, 8, num_directions=3, device="cpu", **options)) == 3
    arguments = ["compute", "lenet", "--image-shape", "3", "64", "64", "--num-networks", "100000", "--device", "cpu"]
    assert main([*arguments, "--out", str(tmp_path / "x.npz")]) == 2
    assert "GB are free on the cpu" in capsys.readouterr().err


def test_fewer_directions_need_less_memory(monkeypatch):
    needed, dimension = {}, 3 * 64 * 64
    for count in (10, None):
        monkeypatch.setattr(compute, "require_memory", lambda size, *_, count=count: needed.update({count: size}))
        compute._require_memory(GramMoments(dimension), 100, nc.SmoothedGradient(4), ComputeOptions(count))
    assert needed[None] - needed[10] == 90 * 4 * dimension  # float32; 100 networks have 100 directions at most


GIB = 2**30
VERSION_1 = {"memory.limit_in_bytes": 4 * GIB, "memory.usage_in_bytes": 3 * GIB}


@pytest.mark.parametrize(
    ("folder", "files", "cached", "free"),
    [
        ("", {"memory.max": 4 * GIB, "memory.current": 3 * GIB}, "", 1),
        ("", {"memory.max": 4 * GIB, "memory.current": 3 * GIB}, "inactive_file {0}\nactive_file {0}\nshmem {0}", 3),
        ("", {"memory.max": "max", "memory.current": 3 * GIB}, "inactive_file {0}", None),
        ("memory", VERSION_1, "inactive_file 5\ntotal_inactive_file {0}\ntotal_active_file 0", 2),
        ("memory", VERSION_1 | {"memory.limit_in_bytes": 2**63 - 4096}, "total_inactive_file {0}", None),
    ],
)
def test_what_a_container_keeps_of_files_is_free(monkeypatch, tmp_path, folder, files, cached, free):
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {1000 * 2**20} kB\nHugePages_Total: 0\n")
    monkeypatch.setattr(memory, "_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    assert available_memory("cpu") == 1000 * GIB
    (tmp_path / folder).mkdir(exist_ok=True)
    for name, content in (files | ({"memory.stat": cached.format(GIB)} if cached else {})).items():
        (tmp_path / folder / name).write_text(f"{content}\n")
    assert available_memory("cpu") == (1000 if free is None else free) * GIB


def test_what_torch_keeps_of_a_gpu_is_free(monkeypatch):
    numbers = {"mem_get_info": (1_000, 9_000), "memory_reserved": 5_000, "memory_allocated": 2_000}
    for name, number in numbers.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, number=number: number)
    assert available_memory("cuda") == 4_000


@NEEDS_PROC
def test_peak_memory_sees_what_was_freed_again():
    size = 200_000_000
    before = peak_memory(lambda: None, "cpu")
    peak = peak_memory(lambda: torch.ones(size // 4).sum(), "cpu")
    after = peak_memory(lambda: None, "cpu")
    assert 0.9 * size < peak - before < 1.5 * size
    assert after - before < 0.2 * size


@NEEDS_PROC
def test_eigenvectors_take_what_is_stated_and_no_copy_of_the_vectors():
    networks, dimension, count = 200, 150_000, 10
    moments = GramMoments(dimension)

    def fill():
        for _ in range(networks // 50):
            moments.update(torch.randn(50, 2, dimension))

    before = peak_memory(lambda: None, "cpu")
    fill()
    stored = peak_memory(lambda: None, "cpu") - before
    peak = peak_memory(lambda: gram_eigenpairs(*moments.vectors(), count), "cpu") - before
    vectors = 2 * networks * dimension * 4
    stated = GramMoments.needed_bytes(dimension, networks, count)
    assert vectors <= stated <= 1.1 * vectors
    assert stored < 1.1 * vectors and peak < stated + 40e6


def test_eigenpairs_by_columns_equal_those_of_all_rows_at_once(monkeypatch):
    from nads_core.directions import covariance

    means, spreads = torch.randn(2, 7, 50, dtype=torch.float64)
    values, rows = gram_eigenpairs(means, spreads, 4)
    monkeypatch.setattr(covariance, "_GRAM_COLUMNS", 8)
    parts = gram_eigenpairs([means[:3], means[3:]], [spreads[:6], spreads[6:]], 4)
    torch.testing.assert_close(parts[0], values)
    torch.testing.assert_close(rows * (rows * parts[1]).sum(1, keepdim=True).sign(), parts[1])
