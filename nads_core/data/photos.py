"""Photos on this machine: published data sets, in official files or copies, and folders with one folder per class."""

import gzip
import hashlib
import os
import tempfile
import tomllib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np


class DatasetNotFoundError(FileNotFoundError):
    """Raised where there are no photos."""


@dataclass(frozen=True)
class Photos:
    """Labelled photos, to be read one by one.

    Args:
        read: function from an index and a size to a square image of Pillow.
        labels: (N,) int64.
        class_names: name of each label.
        source: origin of the photos, see `images.ImageSet`.
    """

    read: Callable[[int, int], Any]
    labels: np.ndarray
    class_names: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Published:
    """A data set that torchvision downloads, or a copy with one folder of images per class.

    Args:
        name: name for `load_images`.
        title: name for messages and captions.
        kind: name of its class in torchvision.
        places: folders to look in, below the root or its sub-folder ``name``; torchvision makes the first.
        content: what these folders hold, for messages.
        classes: name of each class, by the name of its folder in a copy.
        largest: number of training images, which copies do not exceed; other data sets have the same classes.
        options: arguments of the class in torchvision.
        checksums: MD5 of each file.
    """

    name: str
    title: str
    kind: str
    places: list[str]
    content: str
    classes: dict[str, str] = field(default_factory=dict)
    largest: int = 0
    options: dict[str, str] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)

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
        labels, classes = np.asarray(files.targets), tuple(files.classes)
        return Photos(lambda index, size: files[index][0].resize((size, size)), labels, classes, self.title)

    def source(self, paths: list[str], name: str) -> str:
        lossy = any(path.lower().endswith((".jpg", ".jpeg")) for path in paths)
        return f"{self.title} ({'JPEG' if lossy else 'lossless'} copy)"


class _FashionMnist(Published):
    """Fashion-MNIST, in four files, compressed or not; MNIST has files of the same names, but other checksums."""

    def is_in(self, folder: Path) -> bool:
        return any((folder / f"{name}{ending}").is_file() for name in self.checksums for ending in ("", ".gz"))

    def open(self, folder: Path, train: bool) -> Photos:
        classes, part = tuple(_datasets().FashionMNIST.classes), "train" if train else "t10k"
        from PIL.Image import fromarray  # of Pillow, which torchvision needs

        content = [self._content(folder / f"{part}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1")]
        pixels = np.frombuffer(content[0], np.uint8, offset=16).reshape(-1, 28, 28)
        labels = np.frombuffer(content[1], np.uint8, offset=8).astype(np.int64)
        return Photos(lambda index, size: fromarray(pixels[index]).resize((size, size)), labels, classes, self.title)

    def _content(self, path: Path) -> bytes:
        """Return the content of a file, which may be compressed, if it has the right checksum."""
        try:
            content = path.read_bytes() if path.is_file() else gzip.decompress(Path(f"{path}.gz").read_bytes())
            if hashlib.md5(content, usedforsecurity=False).hexdigest() != self.checksums[path.name]:
                raise ValueError("its checksum is not that of Fashion-MNIST")
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise ValueError(f"{path} is missing, damaged or of another data set ({error}): restore it") from error
        return content


_KINDS = {"CIFAR10": _Cifar10, "FashionMNIST": _FashionMnist, "Imagenette": Published}
_TABLE = tomllib.loads((resources.files("nads_core") / "data" / "published.toml").read_text("utf8"))
PUBLISHED = {name: _KINDS[entry["kind"]](name, **entry) for name, entry in _TABLE.items()}


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
    """Open images with one folder per class; class names and number show whether they are a published data set.

    Photos of a published data set are cropped to the square in their centre before they are scaled.

    Raises:
        DatasetNotFoundError: if there is no such folder, or no images in it.
    """
    try:
        files = _datasets().ImageFolder(str(folder))
    except FileNotFoundError as error:
        raise DatasetNotFoundError(f"{folder} holds no folder of images for each class ({error})") from error
    from PIL import ImageOps

    kinds = (each for each in PUBLISHED.values() if each.classes.keys() == set(files.classes))
    kind = next((each for each in kinds if len(files) <= each.largest), None)

    def read(index: int, size: int) -> Any:
        path, _ = files.samples[index]
        try:
            photo, _ = files[index]
        except (OSError, SyntaxError, ValueError) as error:  # of Pillow
            raise ValueError(f"{path} cannot be read as an image ({error})") from error
        return ImageOps.fit(photo, (size, size)) if kind else photo.resize((size, size))

    source = kind.source([path for path, _ in files.samples], name) if kind else f"images in {name}"
    classes = [kind.classes[each] for each in files.classes] if kind else files.classes
    return Photos(read, np.asarray(files.targets), tuple(classes), source)


def photos_in(root: Path) -> str:
    """Name the photos in a folder, for messages."""
    places = {published.title: published.find(root) for published in PUBLISHED.values()}
    names = [f"{title} in {place}" for title, place in places.items() if place]
    if (classes := sorted(class_folders(root))) and root not in places.values():
        names.append(f"images of {len(classes)} classes such as {classes[0]}")
    return ", ".join(names) or "none"


def _datasets() -> Any:
    """Return torchvision's module of data sets."""
    try:
        from torchvision import datasets
    except ImportError as error:
        raise DatasetNotFoundError("reading photos needs torchvision: pip install torchvision") from error
    return datasets
