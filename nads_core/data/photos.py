"""Photos on this machine: published data sets, in official files or copies, and folders with one folder per class."""

import gzip
import hashlib
import os
import tempfile
import tomllib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

PUBLISHED: dict[str, Any] = tomllib.loads((resources.files("nads_core") / "data" / "published.toml").read_text("utf8"))


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


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder to look in: ``root``, or that of ``NADS_DATA``, or the cache."""
    variable = os.environ.get("NADS_DATA")
    if variable and not root and not Path(variable).exists():
        raise DatasetNotFoundError(f"NADS_DATA is {variable}, which does not exist: create it, or name another folder")
    return Path(root or variable or Path.home() / ".cache" / "nads_core")


def find_published(name: str, root: Path) -> Path | None:
    """Return the first folder with files of a published data set, which may be incomplete or damaged."""
    known = PUBLISHED[name]
    files, classes = known.get("files", ()), known.get("classes")
    for folder in (base / place for place in known["places"] for base in (root, root / name)):
        official = any((folder / f"{file}{ending}").is_file() for file in files for ending in ("", ".gz"))
        if official or (classes and class_folders(folder) == classes.keys()):
            return folder
    return None


def open_published(name: str, folder: Path, train: bool) -> Photos:
    """Open the training or the test part of a published data set in the folder that `find_published` returned.

    Raises:
        DatasetNotFoundError: if there is no such part.
        ValueError: if files are missing, damaged or of another data set.
    """
    if class_folders(folder):
        photos = open_folder(part_of(folder, train), folder.name)
        if not photos.source.startswith(PUBLISHED[name]["title"]):
            raise ValueError(f"{folder} is not {PUBLISHED[name]['title']}: {len(photos.labels):,} {photos.source}")
        return photos
    return {"cifar10": _open_cifar10, "fashion-mnist": _open_fashion_mnist}[name](folder, train)


def _open_cifar10(folder: Path, train: bool) -> Photos:
    """Open the official files of CIFAR-10."""
    kind = type("CIFAR10", (_datasets().CIFAR10,), {"base_folder": folder.name})
    try:
        files = kind(str(folder.parent), train=train)
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{folder} is incomplete or damaged ({error}): restore it, or delete it") from error
    labels, classes = np.asarray(files.targets), tuple(files.classes)
    return Photos(lambda index, size: files[index][0].resize((size, size)), labels, classes, "CIFAR-10")


def _open_fashion_mnist(folder: Path, train: bool) -> Photos:
    """Open the files of Fashion-MNIST, compressed or not; MNIST has files of the same names."""
    classes, part = tuple(_datasets().FashionMNIST.classes), "train" if train else "t10k"
    from PIL.Image import fromarray  # of Pillow, which torchvision needs

    contents = []
    for path in (folder / f"{part}-images-idx3-ubyte", folder / f"{part}-labels-idx1-ubyte"):
        try:
            content = path.read_bytes() if path.is_file() else gzip.decompress(Path(f"{path}.gz").read_bytes())
            if (
                hashlib.md5(content, usedforsecurity=False).hexdigest()
                != PUBLISHED["fashion-mnist"]["files"][path.name]
            ):
                raise ValueError("its checksum is not that of Fashion-MNIST")
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise ValueError(f"{path} is missing, damaged or of another data set ({error}): restore it") from error
        contents.append(content)
    pixels = np.frombuffer(contents[0], np.uint8, offset=16).reshape(-1, 28, 28)
    labels = np.frombuffer(contents[1], np.uint8, offset=8).astype(np.int64)
    return Photos(lambda index, size: fromarray(pixels[index]).resize((size, size)), labels, classes, "Fashion-MNIST")


def download_published(name: str, root: Path) -> Path:
    """Download the official files; existing files are complete, even after concurrent or killed downloads."""
    from filelock import FileLock

    known = PUBLISHED[name]
    kind, official = getattr(_datasets(), known["torchvision"]), root / known["places"][0]
    try:
        official.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".download.lock"):
            if official.is_dir():
                return official  # another process was first
            with tempfile.TemporaryDirectory(dir=root, prefix=".download-") as part:
                kind(part, download=True, **known.get("options", {}))
                Path(part, known["places"][0]).replace(official)
    except (OSError, RuntimeError) as error:  # no network, mostly
        raise DatasetNotFoundError(f"{known['title']} is not in {root} and cannot be downloaded ({error})") from error
    return official


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

    source, classes, published = f"images in {name}", files.classes, False
    for known in PUBLISHED.values():
        if known.get("classes", {}).keys() == set(classes) and len(files) <= known["largest"]:
            lossy = any(path.lower().endswith((".jpg", ".jpeg")) for path, _ in files.samples)
            source, published = f"{known['title']} ({'JPEG' if lossy else 'lossless'} copy)", True
            classes = [known["classes"][each] for each in classes]

    def read(index: int, size: int) -> Any:
        try:
            photo, _ = files[index]
        except (OSError, SyntaxError, ValueError) as error:  # of Pillow
            raise ValueError(f"{files.samples[index][0]} cannot be read as an image ({error})") from error
        return ImageOps.fit(photo, (size, size)) if published else photo.resize((size, size))

    return Photos(read, np.asarray(files.targets), tuple(classes), source)


def photos_in(root: Path) -> str:
    """Name the photos in a folder, for messages."""
    places = {known["title"]: find_published(name, root) for name, known in PUBLISHED.items()}
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
