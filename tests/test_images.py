import os
import pickle
import re
import sys

import numpy as np
import pytest
import torch

import nads_core as nc
from nads_core.data import images

PHOTOS = os.environ.get("NADS_DATA")


@pytest.fixture
def no_photos(monkeypatch, tmp_path):
    """A machine with neither files nor network."""
    monkeypatch.delenv("NADS_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    def unreachable(*args, **kwargs):
        raise OSError("network is unreachable")

    pytest.importorskip("torchvision")
    monkeypatch.setattr("torchvision.datasets.cifar.download_and_extract_archive", unreachable)
    return tmp_path


@pytest.fixture
def folder(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for part, count in (("train", 8), ("test", 3)):
        for name in ("cat", "dog"):
            (tmp_path / part / name).mkdir(parents=True)
            for number in range(count):
                pixels = rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(tmp_path / part / name / f"{number}.png")
    return tmp_path


@pytest.fixture
def official(tmp_path):
    """The official files' layout, with few images."""
    pytest.importorskip("torchvision")
    batches = tmp_path / "cifar-10-batches-py"
    batches.mkdir()
    rng = np.random.default_rng(0)
    names = "airplane automobile bird cat deer dog frog horse ship truck".split()
    for name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
        data = {"data": rng.integers(0, 256, (20, 3072), dtype=np.uint8), "labels": list(range(10)) * 2}
        (batches / name).write_bytes(pickle.dumps(data))
    (batches / "batches.meta").write_bytes(pickle.dumps({"label_names": names}))
    return tmp_path


def test_auto_falls_back_to_generated_images_and_says_so(no_photos):
    data = nc.load_images(num_images=50)
    assert "generated" in data.source and data.images.shape == (50, 3, 32, 32)


def test_cifar10_without_files_or_network_names_the_ways_out(no_photos):
    with pytest.raises(nc.DatasetNotFoundError, match="NADS_DATA.*generated"):
        nc.load_images("cifar10")
    with pytest.raises(nc.DatasetNotFoundError, match="no CIFAR-10 in"):
        nc.load_images("cifar10", download=False)


def test_any_folder_of_images_a_folder_a_class(folder):
    data = nc.load_images(root=folder, num_images=6)
    assert data.images.shape == (6, 3, 32, 32) and data.class_names == ("cat", "dog")
    assert data.labels.bincount().tolist() == [3, 3] and folder.name in data.source
    assert 0 <= float(data.images.min()) and float(data.images.max()) <= 1
    assert len(nc.load_images(root=folder, train=False)) == 6


def test_an_image_that_cannot_be_read_is_named(folder):
    broken = folder / "train" / "dog" / "3.png"
    broken.write_bytes(broken.read_bytes()[:300])
    with pytest.raises(ValueError, match=re.escape(f"{broken} cannot be read")):
        nc.load_images(root=folder)


def test_pixels_of_a_folder_are_read_exactly(folder):
    from PIL import Image

    data = nc.load_images(root=folder, size=20, num_images=1, seed=5)
    name = data.class_names[int(data.labels[0])]
    candidates = [np.asarray(Image.open(p).resize((20, 20))) for p in sorted((folder / "train" / name).iterdir())]
    pixels = (255 * data.images[0]).round().permute(1, 2, 0).numpy()
    assert any(np.array_equal(pixels, candidate) for candidate in candidates)


@pytest.mark.parametrize("place", [".", "cifar-10-batches-py"])
def test_official_files_are_read_without_a_download(official, monkeypatch, place):
    Image = pytest.importorskip("PIL.Image", reason="pip install pillow")
    monkeypatch.setattr("torchvision.datasets.CIFAR10._check_integrity", lambda self: True)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *args: True)
    data = nc.load_images("cifar10", root=official / place, num_images=30)
    assert data.source == "CIFAR-10" and data.images.shape == (30, 3, 32, 32)
    assert data.labels.bincount().tolist() == [3] * 10
    scaled = nc.load_images("cifar10", root=official, num_images=30, size=20)
    assert scaled.images.shape == (30, 3, 20, 20) and torch.equal(scaled.labels, data.labels)
    for exact, small in zip(data.images[:3], scaled.images[:3], strict=True):
        pixels = (255 * exact).round().byte().permute(1, 2, 0).numpy()
        expected = np.asarray(Image.fromarray(pixels).resize((20, 20)))
        assert np.array_equal((255 * small).round().byte().permute(1, 2, 0).numpy(), expected)


def test_official_files_come_before_other_photos(official, folder, monkeypatch):
    monkeypatch.setattr("torchvision.datasets.CIFAR10._check_integrity", lambda self: True)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *args: True)
    for dataset in ("auto", "cifar10"):
        assert nc.load_images(dataset, root=folder, num_images=10).source == "CIFAR-10"


def test_the_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("NADS_DATA", str(folder))
    assert nc.load_images().class_names == ("cat", "dog")


@pytest.mark.parametrize("dataset", ["auto", "cifar10"])
def test_a_folder_of_the_environment_that_does_not_exist_is_named(no_photos, monkeypatch, dataset):
    monkeypatch.setenv("NADS_DATA", str(no_photos / "mistyped"))
    with pytest.raises(nc.DatasetNotFoundError, match="NADS_DATA is .*mistyped, which does not exist"):
        nc.load_images(dataset, num_images=5)
    assert not (no_photos / "mistyped").exists() and nc.load_images("generated", num_images=5).generated


def test_a_folder_without_classes_is_refused(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "test").mkdir()
    with pytest.raises(nc.DatasetNotFoundError, match="folder of images for each class"):
        nc.load_images("cifar10", root=tmp_path)


def test_draws_are_even_and_fixed_by_the_seed():
    one, same, other = (nc.load_images("generated", num_images=200, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.images, same.images) and not torch.equal(one.images, other.images)
    assert one.labels.bincount().tolist() == [20] * 10
    test = nc.load_images("generated", train=False, num_images=200)
    assert not torch.equal(one.images, test.images)


def test_generated_images_are_those_on_record():
    data = nc.load_images("generated", num_images=10, size=8, seed=0)
    assert data.labels.tolist() == [5, 6, 1, 2, 0, 8, 9, 3, 7, 4]
    means = [
        0.5260331, 0.3822903, 0.5523180, 0.5369831, 0.4569349, 0.4359196, 0.4247493, 0.5295129,
        0.3434224, 0.4766465,
    ]  # fmt: skip
    pixels = [
        0.3925547, 0.2889300, 0.5327772, 0.5502567, 0.3270676, 0.5064907, 0.6437969, 0.6053934,
        0.5078048, 0.4821833,
    ]  # fmt: skip
    torch.testing.assert_close(data.images.mean((1, 2, 3)), torch.tensor(means), rtol=0, atol=1e-6)
    torch.testing.assert_close(data.images[:, 1, 3, 5], torch.tensor(pixels), rtol=0, atol=1e-6)


def test_even_draws_keep_the_shuffled_order_on_every_processor():
    """Many images have one rank in their class; a sort that is not stable would order them as the processor does."""
    assert images._draw_evenly(np.arange(300) % 7, 40, 3).tolist() == [
        98, 162, 171, 291, 62, 58, 180, 161, 246, 158, 170, 181, 145, 80, 238, 211, 240, 104, 194,
        39, 87, 133, 141, 23, 223, 243, 137, 290, 295, 63, 233, 117, 83, 32, 45, 21, 218, 153, 254,
        187,
    ]  # fmt: skip


def test_generated_classes_can_be_learned():
    train, test = (nc.load_images("generated", train=part, num_images=n) for part, n in ((True, 2_000), (False, 300)))
    torch.manual_seed(0)
    network = nc.LENET.build(3, 32, 10)
    recipe = nc.Recipe(epochs=4, learning_rate=0.1, momentum=0.9)
    data = [(nc.normalize(part.images), part.labels) for part in (train, test)]
    result = nc.train_network(network, *data, recipe=recipe, progress=False)
    low, _ = nc.accuracy_interval(float(result.test_accuracy), 300)
    assert low > 0.2  # twice chance


def test_normalize():
    images = torch.rand(4, 3, 5, 5)
    expected = torch.stack([(images[:, c] - m) / s for c, (m, s) in enumerate(((0.1, 0.5), (0.2, 1.0), (0.3, 2.0)))], 1)
    torch.testing.assert_close(nc.normalize(images, (0.1, 0.2, 0.3), (0.5, 1.0, 2.0)), expected)
    with pytest.raises(ValueError, match="1 channels, but there are 3"):
        nc.normalize(images[:, :1])


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="unknown dataset 'mnist'"):
        nc.load_images("mnist")
    with pytest.raises(ValueError, match="num_images"):
        nc.load_images("generated", num_images=0)


@pytest.mark.skipif(not PHOTOS, reason="NADS_DATA names no folder of photos")
def test_real_photos():
    data = nc.load_images("cifar10", num_images=200, download=False)
    assert "CIFAR-10" in data.source and data.labels.bincount().tolist() == [20] * 10
    assert 0.3 < float(data.images.mean()) < 0.6


@pytest.mark.skipif(not PHOTOS, reason="NADS_DATA names no folder of photos")
def test_normalised_photos_have_mean_0_and_deviation_1():
    photos = images.normalize(nc.load_images("cifar10", num_images=2_000, download=False).images)
    assert photos.mean((0, 2, 3)).abs().max() < 0.1 and (photos.std((0, 2, 3)) - 1).abs().max() < 0.05


@pytest.mark.parametrize(("ending", "source"), [("jpg", "CIFAR-10 (JPEG copy)"), ("png", "CIFAR-10 (lossless copy)")])
def test_a_copy_of_cifar10_says_in_which_encoding(tmp_path, ending, source):
    Image = pytest.importorskip("PIL.Image", reason="pip install pillow")
    for name in "airplane automobile bird cat deer dog frog horse ship truck".split():
        for part in ("train", "test"):
            (tmp_path / part / name).mkdir(parents=True)
            Image.new("RGB", (32, 32)).save(tmp_path / part / name / f"1.{ending}")
    data = nc.load_images(root=tmp_path)
    assert data.source == source and not data.generated


def test_downloads_can_be_forbidden(tmp_path, monkeypatch):
    tried = []

    def download(name, folder):
        tried.append(folder)
        raise nc.DatasetNotFoundError("no network")

    monkeypatch.setattr("nads_core.data.photos.download_published", download)
    monkeypatch.setenv("NADS_DOWNLOAD", "0")
    assert nc.load_images(root=tmp_path, num_images=10).generated and not tried
    monkeypatch.setenv("NADS_DOWNLOAD", "1")
    assert nc.load_images(root=tmp_path, num_images=10).generated and tried == [tmp_path]


def test_damaged_official_files_are_named_and_nothing_stands_in_for_them(official):
    (official / "cifar-10-batches-py" / "data_batch_1").unlink()
    with pytest.raises(ValueError, match="cifar-10-batches-py is incomplete or damaged"):
        nc.load_images(root=official, num_images=10)


def test_photos_without_torchvision(monkeypatch, tmp_path):
    """A base installation has no torchvision: the error names it."""
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.delenv("NADS_DOWNLOAD", raising=False)  # without a download, the error is about missing files
    (tmp_path / "train").mkdir()
    with pytest.raises(images.DatasetNotFoundError, match="pip install torchvision"):
        nc.load_folder(tmp_path / "train")
    with pytest.raises(images.DatasetNotFoundError, match="pip install torchvision"):
        nc.load_images("cifar10", root=tmp_path)
    assert "generated" in nc.load_images("auto", num_images=10, root=tmp_path).source
