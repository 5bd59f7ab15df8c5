"""Photos on this machine: published data sets, in official files or copies, and folders with one folder per class."""

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_COPY = "train/ and test/ with one folder of images for each class"
_CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_IMAGENETTE_CLASSES = dict(
    n01440764="tench", n02102040="English springer", n02979186="cassette player", n03000684="chain saw",
    n03028079="church", n03394916="French horn", n03417042="garbage truck", n03425413="gas pump",
    n03445777="golf ball", n03888257="parachute",
)  # fmt: skip
_FASHION_MD5 = {  # of the four files, not compressed
    "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
    "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
    "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
}


class DatasetNotFoundError(FileNotFoundError):
    """Raised where there are no photos."""


@dataclass(frozen=True)
class Photos:
    """Labelled photos, to be read one by one.

    Args:
        read: function from an index to an image of Pillow.
        labels: (N,) int64.
        class_names: name of each label.
        source: origin of the photos, see `images.ImageSet`.
        channels: number of channels, C.
        crop: whether photos are cropped to the square in their centre before they are scaled.
    """

    read: Callable[[int], Any]
    labels: np.ndarray
    class_names: tuple[str, ...]
    source: str
    channels: int = 3
    crop: bool = False


@dataclass(frozen=True)
class Published:
    """A data set that torchvision downloads, or a copy with one folder of images per class.

    Args:
        name: name for `load_images`.
        title: name for messages and captions.
        kind: name of its class in torchvision.
        places: folders to look in, below the root or its sub-folder ``name``; torchvision makes the first.
        files: content of these folders, for messages.
        classes: name of each class, by the name of its folder in a copy.
        largest: number of training images, which copies do not exceed; other data sets have the same classes.
        options: arguments of the class in torchvision.
    """

    name: str
    title: str
    kind: str
    places: tuple[str, ...]
    files: str
    classes: dict[str, str] = field(default_factory=dict)
    largest: int = 0
    options: dict[str, str] = field(default_factory=dict)

    def find(self, root: Path) -> Path | None:
        """Return the first place that holds these photos."""
        candidates = (base / place for place in self.places for base in (root, root / self.name))
        return next(filter(self.is_in, candidates), None)

    def is_in(self, folder: Path) -> bool:
        """Whether a folder holds files of this data set, which may be incomplete or damaged."""
        return class_folders(folder) == self.classes.keys()

    def open(self, folder: Path, train: bool) -> Photos:
        """Open the training or the test part of the files in a folder.

        Raises:
            DatasetNotFoundError: if there is no such part.
            ValueError: if files are missing, damaged or of another data set.
        """
        photos = open_folder(part_of(folder, train), folder.name)
        if not photos.source.startswith(self.title):
            raise ValueError(f"{folder} is not {self.title}: it has {len(photos.labels):,} {photos.source}")
        return photos

    def source(self, paths: list[str], name: str) -> str:
        """Return how results name a copy in a folder of this name."""
        return f"{self.title} ({name})"

    def download(self, root: Path) -> Path:
        """Download the official files; existing files are complete, even after concurrent or killed downloads."""
        from filelock import FileLock

        kind, official = getattr(_datasets(), self.kind), root / self.places[0]
        try:
            official.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(root / ".download.lock"):
                if official.is_dir():
                    return official  # another process was first
                with tempfile.TemporaryDirectory(dir=root, prefix=".download-") as part:
                    kind(part, download=True, **self.options)
                    Path(part, self.places[0]).replace(official)
        except (OSError, RuntimeError) as error:  # no network, mostly
            raise DatasetNotFoundError(f"{self.title} is not in {root} and cannot be downloaded ({error})") from error
        return official


class _Cifar10(Published):
    """CIFAR-10, in the official files or as a copy."""

    def is_in(self, folder: Path) -> bool:
        return (folder.name == self.places[0] and folder.is_dir()) or super().is_in(folder)

    def open(self, folder: Path, train: bool) -> Photos:
        if folder.name != self.places[0]:
            return super().open(folder, train)
        try:
            files = _datasets().CIFAR10(str(folder.parent), train=train)
        except (OSError, RuntimeError) as error:
            raise ValueError(f"{folder} is incomplete or damaged ({error}): restore it, or delete it") from error
        return Photos(lambda index: files[index][0], np.asarray(files.targets), tuple(files.classes), self.title)

    def source(self, paths: list[str], name: str) -> str:
        lossy = any(path.lower().endswith((".jpg", ".jpeg")) for path in paths)
        return f"{self.title} ({'JPEG' if lossy else 'lossless'} copy)"


class _FashionMnist(Published):
    """Fashion-MNIST, in four files, compressed or not; MNIST has files of the same names, but other checksums."""

    def is_in(self, folder: Path) -> bool:
        return any((folder / f"{name}{ending}").is_file() for name in _FASHION_MD5 for ending in ("", ".gz"))

    def open(self, folder: Path, train: bool) -> Photos:
        names = tuple(_datasets().FashionMNIST.classes)
        from PIL import Image  # which torchvision needs

        part = "train" if train else "t10k"
        images = np.frombuffer(_content(folder / f"{part}-images-idx3-ubyte"), np.uint8, offset=16).reshape(-1, 28, 28)
        labels = np.frombuffer(_content(folder / f"{part}-labels-idx1-ubyte"), np.uint8, offset=8).astype(np.int64)
        return Photos(lambda index: Image.fromarray(images[index]), labels, names, self.title, channels=1)


def _content(path: Path) -> bytes:
    """Return the content of a file of Fashion-MNIST, which may be compressed; raise a ValueError if it is another."""
    try:
        content = path.read_bytes() if path.is_file() else gzip.decompress(Path(f"{path}.gz").read_bytes())
        if hashlib.md5(content, usedforsecurity=False).hexdigest() != _FASHION_MD5[path.name]:
            raise ValueError("its checksum is not that of Fashion-MNIST")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ValueError(f"{path} is missing, damaged or of another data set ({error}): restore it") from error
    return content


PUBLISHED: tuple[Published, ...] = (
    _Cifar10(
        "cifar10", "CIFAR-10", "CIFAR10", ("cifar-10-batches-py", ""), f"cifar-10-batches-py, or {_COPY}",
        {name: name for name in _CIFAR10_CLASSES}, 50_000,
    ),
    _FashionMnist(
        "fashion-mnist", "Fashion-MNIST", "FashionMNIST",
        ("FashionMNIST/raw", "", "/usr/share/datasets/fashion-mnist"),  # the last is the Debian package's
        "the four files train-images-idx3-ubyte.gz and so on, or apt-get install dataset-fashion-mnist",
    ),
    Published(
        "imagenette", "Imagenette", "Imagenette",
        ("imagenette2-160", "imagenette2-320", "imagenette2", "imagenette64", ""),
        f"imagenette2-160, or {_COPY} (n01440764 and so on)", _IMAGENETTE_CLASSES, 9_469, {"size": "160px"},
    ),
)  # fmt: skip


def data_root(root: str | os.PathLike[str] | None) -> Path:
    """Return the folder to look in: ``root``, or that of ``NADS_DATA``, or the cache."""
    variable = os.environ.get("NADS_DATA")
    if variable and not root and not Path(variable).exists():
        raise DatasetNotFoundError(f"NADS_DATA is {variable}, which does not exist: create it, or name another folder")
    return Path(root or variable or Path.home() / ".cache" / "nads_core")


def part_of(folder: Path, train: bool) -> Path:
    """Return the folder of the training or the test images."""
    return folder / ("train" if train else "test" if (folder / "test").is_dir() else "val")


def class_folders(folder: Path) -> set[str]:
    """Return the names of the folders of training images, one per class."""
    part = part_of(folder, train=True)
    return {path.name for path in part.iterdir() if path.is_dir()} if part.is_dir() else set()


def open_folder(folder: Path, name: str) -> Photos:
    """Open images with one folder per class; their class names show whether they are those of a published data set.

    Raises:
        DatasetNotFoundError: if there is no such folder, or no images in it.
    """
    try:
        files = _datasets().ImageFolder(str(folder))
    except FileNotFoundError as error:
        raise DatasetNotFoundError(f"{folder} holds no folder of images for each class ({error})") from error

    def read(index: int) -> Any:
        try:
            return files[index][0]
        except (OSError, SyntaxError, ValueError) as error:  # of Pillow
            raise ValueError(f"{files.samples[index][0]} cannot be read as an image ({error})") from error

    labels, classes = np.asarray(files.targets), files.classes
    for published in PUBLISHED:
        if published.classes.keys() == set(classes) and len(files) <= published.largest:
            source = published.source([path for path, _ in files.samples], name)
            return Photos(read, labels, tuple(published.classes[each] for each in classes), source, crop=True)
    return Photos(read, labels, tuple(classes), f"images in {name}")


def photos_in(root: Path) -> str:
    """Name the photos in a folder, for messages."""
    places = {published.title: published.find(root) for published in PUBLISHED}
    names = [f"{title} in {place}" for title, place in places.items() if place]
    if (classes := sorted(class_folders(root))) and root not in places.values():
        names.append(f"images of {len(classes)} classes such as {classes[0]}")
    return ", ".join(names) or "none"


def describe_datasets() -> dict[str, str]:
    """Describe the published data sets on this machine, by name: number of images and folder, or what is wrong."""
    root, described = data_root(None), {}
    for published in PUBLISHED:
        try:
            if place := published.find(root):
                train, test = (published.open(place, part) for part in (True, False))
                numbers = f"{len(train.labels):,} training and {len(test.labels):,} test images in {place}"
                described[published.name] = f"{train.source}, {numbers}"
            else:
                described[published.name] = f"not in {root}: needs {published.files}"
        except (DatasetNotFoundError, ValueError) as error:
            described[published.name] = f"cannot be read: {error}"
    return described


def _datasets() -> Any:
    """Return torchvision's module of data sets."""
    try:
        from torchvision import datasets
    except ImportError as error:
        raise DatasetNotFoundError("reading photos needs torchvision: pip install torchvision") from error
    return datasets
