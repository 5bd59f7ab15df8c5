import base64
import os
import pickle
import re
import shutil
import sys
import unicodedata

import nads_book as nb
import numpy as np
import pytest
import torch
from nads_book.photos import loading as images
from PIL import Image
from torch.testing import assert_close

import nads_core as nc


@pytest.fixture
def folder(tmp_path):
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
    batches = tmp_path / "cifar-10-batches-py"
    batches.mkdir()
    rng = np.random.default_rng(0)
    for name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
        data = {
            "data": rng.integers(0, 256, (20, 3072), dtype=np.uint8),
            "labels": list(range(10)) * 2,
        }
        (batches / name).write_bytes(pickle.dumps(data))
    (batches / "batches.meta").write_bytes(pickle.dumps({"label_names": [*"abcdefghij"]}))
    return tmp_path


def test_pixels_of_a_folder_are_read_exactly(folder, monkeypatch):
    monkeypatch.setenv("NADS_DATA", str(folder))
    data = nb.load_images(size=20, num_images=6, seed=5)
    assert data.images.shape == (6, 3, 20, 20) and folder.name in data.source
    assert data.class_names == ("cat", "dog") and data.labels.bincount().tolist() == [3, 3]
    for image, label in zip(data.images, data.labels, strict=True):
        paths = (folder / "train" / data.class_names[int(label)]).iterdir()
        candidates = [np.asarray(Image.open(path))[:, 2:22] for path in paths]  # the centre
        pixels = (255 * image).round().permute(1, 2, 0).numpy()
        assert any(np.array_equal(pixels, candidate) for candidate in candidates)
    assert len(nb.load_images(root=folder, train=False)) == 6


@pytest.mark.parametrize("place", [".", "cifar-10-batches-py"])
def test_official_files_are_read_without_a_download(official, folder, monkeypatch, place):
    with pytest.raises(ValueError, match="cifar-10-batches-py is incomplete, damaged"):
        nb.load_images("cifar10", root=official, num_images=10)
    monkeypatch.setattr("torchvision.datasets.CIFAR10._check_integrity", lambda self: True)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *args: True)
    data = nb.load_images("cifar10", root=official / place, num_images=30)
    assert data.source == "CIFAR-10" and data.images.shape == (30, 3, 32, 32)
    assert data.labels.bincount().tolist() == [3] * 10


def test_draws_are_even_and_fixed_by_the_seed():
    one, same, other = (
        nb.load_images("generated", num_images=200, seed=seed) for seed in (0, 0, 1)
    )
    assert torch.equal(one.images, same.images) and not torch.equal(one.images, other.images)
    assert one.labels.bincount().tolist() == [20] * 10
    test = nb.load_images("generated", train=False, num_images=200)
    assert not torch.equal(one.images, test.images)
    # Many images have one rank in their class: a sort must be stable, on every processor.
    drawn = images._draw_evenly(np.arange(300) % 7, 40, 3)
    assert drawn[:9].tolist() == [98, 162, 171, 291, 62, 58, 180, 161, 246]
    assert drawn[-7:].tolist() == [32, 45, 21, 218, 153, 254, 187] and len(drawn) == 40


def test_generated_images_are_those_on_record():
    data = nb.load_images("generated", num_images=10, size=8, seed=0)
    assert data.labels.tolist() == [5, 6, 1, 2, 0, 8, 9, 3, 7, 4]
    means = torch.tensor([0.5260331, 0.3822903, 0.5523180, 0.5369831, 0.4569349])
    pixels = torch.tensor([0.3925547, 0.2889300, 0.5327772, 0.5502567, 0.3270676])
    assert_close(data.images.mean((1, 2, 3))[:5], means, rtol=0, atol=1e-6)
    assert_close(data.images[:5, 1, 3, 5], pixels, rtol=0, atol=1e-6)


def test_normalize():
    means = (0.1, 0.2, 0.3)
    stds = (0.5, 1.0, 2.0)
    images = torch.rand(4, 3, 5, 5)
    expected = [(images[:, c] - means[c]) / stds[c] for c in range(3)]
    assert_close(nc.normalize(images, means, stds), torch.stack(expected, 1))


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: nb.load_images("mnist"), "'mnist'"),
        (lambda: nb.load_folder("anywhere", num_images=-1), "num_images must be"),
        (lambda: nb.load_folder("anywhere", size=0), "size must be"),
    ],
)
def test_bad_arguments_are_rejected(call, shown):
    with pytest.raises(ValueError, match=shown):
        call()


def test_downloads_can_be_forbidden(tmp_path, monkeypatch):
    tried = []

    def download(name, folder):
        tried.append(folder)
        raise nb.DatasetNotFoundError("no network")

    monkeypatch.setattr("nads_book.photos.on_disk.download_published", download)
    monkeypatch.setenv("NADS_DATA", str(tmp_path))
    monkeypatch.setenv("NADS_DOWNLOAD", "0")
    assert nb.load_images(num_images=10).source == images.GENERATED and not tried
    monkeypatch.setenv("NADS_DOWNLOAD", "1")
    assert nb.load_images(num_images=10).source == images.GENERATED and tried == [tmp_path]
    with pytest.raises(nb.DatasetNotFoundError, match="no network"):
        nb.load_images(root=tmp_path, num_images=10)
    (tmp_path / "Train").mkdir()  # a folder with content of its own gets no other photos
    with pytest.raises(nb.DatasetNotFoundError, match="found: .*Train"):
        nb.load_images(num_images=10)
    assert tried == [tmp_path] * 2


def test_photos_without_torchvision(monkeypatch, folder):
    """A base installation has no torchvision, which published files need; folders need Pillow
    alone.
    """
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.delenv(
        "NADS_DOWNLOAD", raising=False
    )  # without a download, the error is about missing files
    assert nb.load_folder(folder / "train").images.shape == (16, 3, 32, 32)
    (folder / "empty").mkdir()
    with pytest.raises(images.DatasetNotFoundError, match="cannot be downloaded .*torchvision"):
        nb.load_images("cifar10", root=folder / "empty")


# A pixel whose colours have 16 bits, which Pillow cannot write; in TIFF one channel after another
DEEP = {
    "png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABEAIAAADA54+dAAAAD0lEQVR4nGM4cSIlxcgIAAvxAr3g"
    "dyf/AAAAAElFTkSuQmCC",
    "tiff": "SUkqAA4AAADoA9AHYOoIAAABAwABAAAAAQAAAAEBAwABAAAAAQAAAAIBAwADAAAAdAAAAAYBAwAB"
    "AAAAAgAAABEBBAADAAAAegAAABUBAwABAAAAAwAAABcBBAADAAAAhgAAABwBAwABAAAAAgAAAAAAAAAQABAAEAAI"
    "AAAACgAAAAwAAAACAAAAAgAAAAIAAAA=",
}


@pytest.mark.parametrize(
    ("ending", "kind"),
    [("png", np.uint16), ("tiff", np.uint8), ("png", "colours"), ("tiff", "colours")],
)
def test_deeper_images_and_signed_ones_are_rejected(tmp_path, ending, kind):
    path = tmp_path / "one" / f"1.{ending}"
    path.parent.mkdir()
    if kind == "colours":
        path.write_bytes(base64.b64decode(DEEP[ending]))
    else:  # TIFF's numbers of type 2 have signs
        Image.fromarray(np.ones((40, 40), kind)).save(path, tiffinfo={339: 2})
    with pytest.raises(ValueError, match=f"{re.escape(str(path))} .*8 bits"):
        nb.load_folder(tmp_path)


def test_photos_are_read_as_they_are_shown(tmp_path):
    """A camera that is held upright stores its picture lying, by the standard as orientation 6;
    transparent parts are shown over white.
    """
    shown = np.full((40, 40, 4), 255, np.uint8)
    shown[:20, :20] = (255, 0, 0, 255)
    shown[20:, 20:] = (7, 7, 7, 0)
    exif = Image.Exif()
    exif[0x0112] = 6
    (tmp_path / "a").mkdir()
    Image.fromarray(np.rot90(shown).copy()).save(tmp_path / "a" / "1.png", exif=exif)
    shown[20:, 20:] = 255
    read = (255 * nb.load_folder(tmp_path, size=40).images[0]).round().byte().permute(1, 2, 0)
    assert np.array_equal(read.numpy(), shown[..., :3])


FORMATS = "gif GIF,jfif JPEG,JP2 JPEG2000,tiff TIFF,webp WEBP".split(",")


def test_all_formats_of_pillow_are_read_and_others_named(folder):
    cats = folder / "train" / "cat"
    count = 16 + len(FORMATS)
    pixels = Image.open(cats / "0.png")
    for ending, kind in map(str.split, FORMATS):
        pixels.save(cats / f"new.{ending}", format=kind)
    assert len(nb.load_images(root=folder)) == count
    shutil.copy(cats / "0.png", folder / "train" / "0.png")
    with pytest.warns(UserWarning, match="1 left out.*train/0.png"):
        assert len(nb.load_images(root=folder)) == count
    (folder / "train" / "0.png").unlink()
    for name in ("1.heic", "2.npy", ".DS_Store"):
        (folder / "train" / "dog" / name).write_bytes(b"?")
    with pytest.warns(UserWarning, match="2 left out.*dog/1.heic.*dog/2.npy"):
        assert len(nb.load_images(root=folder)) == count


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n%%EOF\n"


@pytest.mark.parametrize("ending", "mpg h5 fits ps eps pdf wmf svg jpg png tiff gif".split())
@pytest.mark.parametrize("content", [EPS, b"SIMPLE  =                    T" + b" " * 2851, b""])
def test_what_is_no_photo_is_left_out_whatever_its_ending(folder, monkeypatch, ending, content):
    """PostScript is a program, which Pillow would run."""
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *_: pytest.fail("it was run"))
    path = folder / "train" / "cat" / f"9.{ending}"
    path.write_bytes(content)
    with pytest.warns(UserWarning, match=f"left out.*{path}"):
        assert nb.load_images(root=folder).labels.bincount().tolist() == [8, 8]


def test_what_systems_leave_behind_does_not_count(folder):
    before = [nb.load_images(root=folder, train=part) for part in (True, False)]
    hidden = ("train/.ipynb_checkpoints", "test/.cache", "train/dog/.thumbs")
    devices = ("__MACOSX", "@eaDir", "#recycle", "$RECYCLE.BIN", "~snapshot", "lost+found")
    for name in (*hidden, *(f"train/dog/{name}" for name in devices), "train/@eaDir", "train/_vti"):
        shutil.copytree(folder / "test" / "cat", folder / name)
    (folder / "train" / "cat" / "._0.png").write_bytes(b"\0\5\x16\7")
    (folder / "train" / "cat" / "loop").symlink_to("..")
    with pytest.warns(UserWarning, match="9 left out.*@eaDir.*_vti.*cat/loop"):
        after = nb.load_images(root=folder)
    for known, data in zip(before, (after, nb.load_images(root=folder, train=False)), strict=True):
        assert data.class_names == known.class_names and torch.equal(data.images, known.images)


def test_labels_of_the_test_part_are_those_of_the_training_part(folder):
    shutil.rmtree(folder / "test" / "cat")
    test = nb.load_images(root=folder, train=False)
    assert test.class_names == ("cat", "dog") and test.labels.tolist() == [1] * 3
    (folder / "test" / "cow").mkdir()
    (folder / "test" / "dog" / "0.png").rename(folder / "test" / "cow" / "0.png")
    with pytest.raises(ValueError, match=r"test has classes \['cow'\].*'cat', 'dog'"):
        nb.load_images(root=folder, train=False)


@pytest.mark.parametrize("names", [("training_set", "test_set"), ("fold 1", "fold 2", "fold 3")])
@pytest.mark.parametrize("inner", [".", "nested", "deeply/nested"])
def test_folders_that_share_several_folders_are_parts(folder, names, inner):
    """As Kaggle's training_set/training_set/cats, and as a folder one level too high."""
    for name in names:
        shutil.copytree(folder / "train", folder / "photos" / name / inner)
    for place in (folder / "photos", folder / "photos" / names[0] / inner / ".."):
        with pytest.raises(nb.DatasetNotFoundError, match=f"{names[0]}.*'cat', 'dog'"):
            nb.load_folder(place)


def test_classes_may_have_sub_folders(folder):
    """Of one name, as in Tiny ImageNet, or of different ones, as patients have."""
    for name in ("cat", "dog"):
        photos = folder / "train" / name
        for inner in ("images", f"patients/of {name}"):
            shutil.copytree(folder / "test" / name, photos / inner)
    data = nb.load_folder(folder / "train")
    assert data.class_names == ("cat", "dog") and data.labels.bincount().tolist() == [14, 14]


@pytest.mark.parametrize("place", ["cat", "cat/more", "cat/more/deeper"])
def test_folders_that_cannot_be_listed_are_named(folder, monkeypatch, place):
    path = folder / "train" / place
    path.mkdir(parents=True, exist_ok=True)
    scandir = os.scandir

    def denied(folder):  # root may list everything
        if os.fspath(folder) == str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(ValueError, match=f"{path} cannot be listed .*: allow it"):
        nb.load_images(root=folder)


def test_names_of_macos_are_those_of_others(folder):
    for part, form in (("train", "NFD"), ("test", "NFC")):
        (folder / part / "cat").rename(folder / part / unicodedata.normalize(form, "Käse"))
    for part in (True, False):
        assert nb.load_images(root=folder, train=part).class_names == ("Käse", "dog")


def test_pictures_of_many_pixels_are_read(folder):
    Image.new("1", (12_000, 9_000)).save(folder / "train" / "cat" / "large.png")
    assert len(nb.load_images(root=folder)) == 17


PARTS = (("cat", "train"), ("dog", "Test"))
# A change of a folder, and what the error names: never is the folder replaced by other images.
FOLDERS = {
    "photos of a phone": (
        lambda root: [path.rename(path.with_suffix(".HEIC")) for path in root.glob("train/cat/*")],
        "cat holds no images .*HEIC.*convert them to JPEG",
    ),
    "one level too high": (
        lambda root: [
            shutil.copytree(root, root / "archive"),
            *[shutil.rmtree(root / part) for part in ("train", "test")],
        ],
        "found: .'test', 'train'. in .*archive",
    ),
    "parts in place of classes": (
        lambda root: [(root / "train" / old).rename(root / "train" / new) for old, new in PARTS],
        r"no folder of images for each class .*'Test', 'train'",
    ),
    "nothing in it": (
        lambda root: [shutil.rmtree(root / part) for part in ("train", "test")],
        r"found: \[\]",
    ),
    "an archive": (
        lambda root: (
            [shutil.rmtree(root / part) for part in ("train", "test")]
            + [(root / "photos.tar.gz").touch()]
        ),
        "found: .*photos.tar.gz",
    ),
    "no test": (
        lambda root: (root / "test").rename(root / "valid"),
        "val holds no folder .*'train', 'valid'",
    ),
    "a file": (lambda root: (shutil.rmtree(root), root.touch()), "no folder"),
}


@pytest.mark.parametrize("change", FOLDERS)
def test_a_named_folder_is_never_replaced_by_other_images(folder, monkeypatch, change):
    alter, shown = FOLDERS[change]
    root = folder / "photos"
    root.mkdir()
    for part in ("train", "test"):
        (folder / part).rename(root / part)
    alter(root)
    monkeypatch.setattr(
        "nads_book.photos.on_disk.download_published", lambda *_: pytest.fail("downloaded")
    )
    with pytest.raises(nb.DatasetNotFoundError, match=shown):
        for part in (True, False):
            assert nb.load_images(train=part, root=root, download=False).source != images.GENERATED
    monkeypatch.setenv("NADS_DATA", str(root))
    if change == "nothing in it":  # an empty folder may be filled by downloads
        assert nb.load_images(num_images=5, download=False).source == images.GENERATED


@pytest.mark.parametrize("kind", ["too large", "truncated", "a pipe"])
def test_files_that_cannot_be_read_are_named(folder, kind):
    path = folder / "train" / "dog" / "9.png"
    if kind == "too large":
        Image.new("1", (14_000, 14_000)).save(path)
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.write_bytes((path.parent / "3.png").read_bytes()[:300])
    with pytest.raises(ValueError, match=f"{re.escape(str(path))} cannot be read"):
        nb.load_images(root=folder)
