"""Published data sets: where they are found, and that none is ever taken for another."""

import gzip
import os
import shutil
from contextlib import nullcontext
from pathlib import Path

import nads_book as nb
import numpy as np
import pytest
from nads_book.photos import on_disk as photos
from nads_book.photos.loading import GENERATED
from PIL import Image

DEBIAN = Path("/usr/share/datasets/fashion-mnist")
CIFAR10, IMAGENETTE = (photos.PUBLISHED[name]["classes"] for name in ("cifar10", "imagenette"))


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path_factory):
    """Neither network nor photos of this machine; two images of a class are a complete copy."""
    monkeypatch.setenv("NADS_DATA", str(tmp_path_factory.mktemp("empty")))
    monkeypatch.setenv("NADS_DOWNLOAD", "0")
    for name in ("cifar10", "imagenette"):
        monkeypatch.setitem(photos.PUBLISHED[name], "counts", [10, 20])


@pytest.fixture
def without_debian(monkeypatch):
    """A machine without the Debian package."""
    monkeypatch.setitem(photos.PUBLISHED["fashion-mnist"], "places", ["FashionMNIST/raw", ""])


@pytest.fixture
def fashion(tmp_path, without_debian):
    """A folder with the real files as published."""
    if not DEBIAN.is_dir():
        pytest.skip("Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist")
    return shutil.copytree(DEBIAN, tmp_path / "published")


def write_copy(folder, classes, size=(32, 32), test="test"):
    rng = np.random.default_rng(0)
    for part in ("train", test):
        for name in classes:
            (folder / part / name).mkdir(parents=True)
            for number in range(2):
                pixels = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / part / name / f"{number}.jpg")


@pytest.mark.skipif(
    not DEBIAN.is_dir(),
    reason="Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist",
)
def test_fashion_mnist_is_found_where_debian_installs_it():
    data = nb.load_images("fashion-mnist", train=False, size=28, progress=False)
    assert data.images.shape == (10_000, 1, 28, 28)
    assert data.labels.bincount().tolist() == [1_000] * 10
    assert float(data.images.mean()) == pytest.approx(0.2868, abs=1e-4)
    assert (data.class_names[0], data.class_names[9]) == ("T-shirt/top", "Ankle boot")


@pytest.mark.parametrize("place", ["FashionMNIST/raw", "fashion-mnist/FashionMNIST/raw", "."])
def test_fashion_mnist_in_every_place(fashion, tmp_path, place):
    root = tmp_path / "root"
    shutil.copytree(fashion, root / place)
    data = nb.load_images("fashion-mnist", root=root, train=False, num_images=50, size=28)
    assert data.source == "Fashion-MNIST" and data.labels.bincount().tolist() == [5] * 10


DAMAGE = {  # what becomes of a file of images
    "truncated": lambda path: os.truncate(path, 2_000_000),
    "no archive": lambda path: path.write_bytes(gzip.decompress(path.read_bytes())),
    # MNIST's files have these names, and this length
    "mnist": lambda path: path.write_bytes(
        gzip.compress(gzip.decompress(path.read_bytes())[:16] + bytes(10_000 * 28**2))
    ),
    "missing": Path.unlink,
    "other part": lambda path: shutil.copy(path.with_name("train-images-idx3-ubyte.gz"), path),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_and_foreign_files_of_fashion_mnist_are_named(fashion, how):
    DAMAGE[how](fashion / "t10k-images-idx3-ubyte.gz")
    with pytest.raises(ValueError, match=f"{fashion} is incomplete, damaged or of another data"):
        nb.load_images("fashion-mnist", root=fashion, train=False, num_images=10)


@pytest.mark.parametrize("place", ["imagenette2-160", "imagenette", "."])
@pytest.mark.parametrize("test", ["test", "val"])
def test_imagenette_in_every_place(tmp_path, place, test):
    write_copy(tmp_path / place, IMAGENETTE, test=test)
    data = nb.load_images("imagenette", root=tmp_path, size=64)
    assert data.images.shape == (20, 3, 64, 64) and data.labels.bincount().tolist() == [2] * 10
    assert data.class_names[:2] == ("tench", "English springer")
    assert len(nb.load_images("imagenette", root=tmp_path, train=False, num_images=10)) == 10


@pytest.fixture
def everything(fashion, tmp_path):
    """A folder that holds all data sets, each in a sub-folder."""
    root = tmp_path / "all"
    write_copy(root / "cifar10", CIFAR10)
    write_copy(root / "imagenette64", IMAGENETTE, size=(64, 64))
    fashion.rename(root / "fashion-mnist")
    return root


SOURCES = {
    "cifar10": "CIFAR-10 (JPEG copy)",
    "fashion-mnist": "Fashion-MNIST",
    "imagenette": "Imagenette (JPEG copy)",
}


@pytest.mark.parametrize("held", ["cifar10", "imagenette64", "fashion-mnist"])
@pytest.mark.parametrize("wanted", ["cifar10", "imagenette", "fashion-mnist"])
def test_no_data_set_is_taken_for_another(everything, held, wanted):
    """The folder of one data set, alone."""
    missing = pytest.raises(nb.DatasetNotFoundError, match=f"found: .* in .*{held}.*: set NADS_")
    with nullcontext() if held.startswith(wanted) else missing:
        data = nb.load_images(wanted, root=everything / held, num_images=10)
        assert data.source == SOURCES[wanted]


def test_data_sets_that_are_not_there(without_debian, caplog):
    for name, known in photos.PUBLISHED.items():
        with pytest.raises(
            nb.DatasetNotFoundError, match=f"no complete {known['title']} in .*found: .*NADS_DATA"
        ):
            nb.load_images(name)
    assert not caplog.records
    for train in (True, False):
        assert nb.load_images(train=train, num_images=10).source == GENERATED
    assert len(caplog.records) == 1 and "CIFAR-10" in caplog.text and "NADS_DATA" in caplog.text


@pytest.mark.parametrize("name", photos.PUBLISHED)
def test_a_download_is_there_as_a_whole_or_not_at_all(tmp_path, monkeypatch, name, without_debian):
    official = photos.PUBLISHED[name]["places"][0]
    seen = []

    def fetch(root, download, **options):
        seen.append((tmp_path / official).exists())
        Path(root, official).mkdir(parents=True)
        if len(seen) == 1:
            raise (OSError if name == "cifar10" else RuntimeError)("killed half-way")
        Path(root, official, "file").write_text("complete")
        assert options == ({"size": "160px"} if name == "imagenette" else {})

    monkeypatch.setattr(f"torchvision.datasets.{photos.PUBLISHED[name]['torchvision']}", fetch)
    with pytest.raises(nb.DatasetNotFoundError, match="cannot be downloaded .*killed half-way"):
        photos.open_published(name, tmp_path, True, download=True)
    assert not (tmp_path / official).exists()
    for _ in range(2):  # the second time it is there already
        photos.download_published(photos.PUBLISHED[name], tmp_path)
    assert seen == [False, False] and (tmp_path / official / "file").read_text() == "complete"
