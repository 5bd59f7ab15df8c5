"""Photos on this machine: published data sets, in official files or copies, and folders with one
folder per class.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import tomllib
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from nads_core.runtime.arguments import Facts

if TYPE_CHECKING:
    from PIL.Image import Image

PUBLISHED: dict[str, Facts] = tomllib.loads(
    Path(__file__).with_name("datasets.toml").read_text("utf8")
)

_DEPTH, _SAMPLE_FORMAT = 258, 339  # TIFF's tags of the bits and the type of its numbers
_PARTS = {"train", "training", "test", "testing", "val", "valid", "validation"}
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".7z", ".rar")


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

    read: Callable[[int, int], Image]
    labels: np.ndarray
    class_names: tuple[str, ...]
    source: str


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder to look in: ``root``, or that of ``NADS_DATA``, or the cache.

    Raises:
        DatasetNotFoundError: if a folder is named that does not exist.
    """
    named = root or os.environ.get("NADS_DATA")
    if not named:
        return Path.home() / ".cache" / "nads_core"
    folder = Path(named).expanduser()
    if not folder.exists():
        origin = "root" if root else "NADS_DATA"
        problem = f"{origin} is {str(folder)!r}, which does not exist"
        raise DatasetNotFoundError(f"{problem}: create it, or name another folder")
    return folder


def find_published(name: str, root: Path) -> Path | None:
    """Return the first folder with files of a published data set, which may be incomplete or
    damaged.
    """
    known = PUBLISHED[name]
    files, classes = known.get("files", ()), known.get("classes")
    for folder in (base / place for place in known["places"] for base in (root, root / name)):
        official = any(
            (folder / f"{file}{ending}").is_file() for file in files for ending in ("", ".gz")
        )
        if official or (classes and class_folders(folder / "train") == classes.keys()):
            return folder
    return None


def open_published(name: str, folder: Path, train: bool) -> Photos:
    """Open the training or the test part of a published data set in the folder that
    `find_published` returned.

    Raises:
        DatasetNotFoundError: if there is no such part.
        ValueError: if files are missing, damaged or of another data set.
    """
    if class_folders(folder / "train"):
        photos = open_part(folder, train)
        if not photos.source.startswith(PUBLISHED[name]["title"]):
            raise ValueError(
                f"{folder} is not {PUBLISHED[name]['title']}: "
                f"{len(photos.labels):,} {photos.source}"
            )
        return photos
    return {"cifar10": _open_cifar10, "fashion-mnist": _open_fashion_mnist}[name](folder, train)


def _open_cifar10(folder: Path, train: bool) -> Photos:
    """Open the official files of CIFAR-10."""
    kind = type("CIFAR10", (_datasets().CIFAR10,), {"base_folder": folder.name})
    try:
        files = kind(str(folder.parent), train=train)
    except (OSError, RuntimeError) as error:
        raise ValueError(
            f"{folder} is incomplete or damaged ({error}): restore it, or delete it"
        ) from error
    labels, classes = np.asarray(files.targets), tuple(files.classes)
    return Photos(
        lambda index, size: files[index][0].resize((size, size)), labels, classes, "CIFAR-10"
    )


def _open_fashion_mnist(folder: Path, train: bool) -> Photos:
    """Open the files of Fashion-MNIST, compressed or not; MNIST has files of the same names."""
    classes, part = tuple(_datasets().FashionMNIST.classes), "train" if train else "t10k"
    from PIL.Image import fromarray  # of Pillow, which torchvision needs

    contents = []
    for path in (folder / f"{part}-images-idx3-ubyte", folder / f"{part}-labels-idx1-ubyte"):
        try:
            content = (
                path.read_bytes()
                if path.is_file()
                else gzip.decompress(Path(f"{path}.gz").read_bytes())
            )
            if (
                hashlib.md5(content, usedforsecurity=False).hexdigest()
                != PUBLISHED["fashion-mnist"]["files"][path.name]
            ):
                raise ValueError("its checksum is not that of Fashion-MNIST")
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise ValueError(
                f"{path} is missing, damaged or of another data set ({error}): restore it"
            ) from error
        contents.append(content)
    pixels = np.frombuffer(contents[0], np.uint8, offset=16).reshape(-1, 28, 28)
    labels = np.frombuffer(contents[1], np.uint8, offset=8).astype(np.int64)
    return Photos(
        lambda index, size: fromarray(pixels[index]).resize((size, size)),
        labels,
        classes,
        "Fashion-MNIST",
    )


def download_published(name: str, root: Path) -> Path:
    """Download the official files; existing files are complete, even after concurrent or killed
    downloads.
    """
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
        raise DatasetNotFoundError(
            f"{known['title']} is not in {root} and cannot be downloaded ({error})"
        ) from error
    return official


def class_folders(part: Path) -> set[str]:
    """Return the names of the folders in a folder, one per class; hidden ones and those of
    archivers are none.
    """
    return (
        {path.name for path in part.iterdir() if path.is_dir() and _visible(path)}
        if part.is_dir()
        else set()
    )


def open_part(folder: Path, train: bool) -> Photos:
    """Open ``train/``; or ``test/`` or ``val/`` with the labels of ``train/``."""
    if train:
        return open_folder(folder / "train", folder.name)
    part = folder / ("test" if (folder / "test").is_dir() else "val")
    return open_folder(part, folder.name, sorted(class_folders(folder / "train")))


def open_folder(folder: Path, name: str, classes: Sequence[str] = ()) -> Photos:
    """Open images with one folder per class; their classes, number and size show whether they are a
    published data set.

    Photos of a published data set are cropped to the square in their centre before they are scaled.

    Args:
        folder: folder with one folder per class, whose sub-folders count too.
        name: name of the images, for captions.
        classes: names of the folders in the order of the labels, of which some may lack images; by
            default those in ``folder``, sorted, each with images.

    Raises:
        DatasetNotFoundError: if there is no such folder, or no images in it or in a class.
        ValueError: if there are other classes than ``classes``.
    """
    if not folder.is_dir():
        raise DatasetNotFoundError(f"there is no folder {folder} (found: {entries(folder)})")
    own = class_folders(folder)
    if not own:
        raise DatasetNotFoundError(
            f"{folder} holds no folder of images for each class (found: {entries(folder)})"
        )
    if {name.lower() for name in own} <= _PARTS:
        raise DatasetNotFoundError(
            f"{folder} holds parts, {sorted(own)}, and no classes: name one of these folders"
        )
    if unknown := sorted(own - {*(classes or own)}):
        raise ValueError(
            f"{folder} has classes {unknown}, but the training images are of {[*classes]}: "
            "rename them"
        )
    files, labels = list[str](), list[int]()
    for label, each in enumerate(classes or sorted(own)):
        images = _images_in(folder / each) if each in own else []
        if not images and not classes:
            raise DatasetNotFoundError(
                f"{folder / each} holds no images (found: {entries(folder / each)})"
            )
        files += images
        labels += [label] * len(images)
    if not files:
        raise DatasetNotFoundError(f"{folder} holds no images in its classes {sorted(own)}")
    if stray := [path.name for path in folder.iterdir() if path.is_file() and _is_image(path)]:
        some = ", ".join(sorted(stray)[:3])
        warnings.warn(
            f"{folder}: {_are_left_out(len(stray), 'image')}, in no class: {some}", stacklevel=2
        )
    source, names, published = f"images in {name}", tuple(classes or sorted(own)), False
    for known in PUBLISHED.values():
        alike = known.get("classes", {}).keys() == own and len(files) <= known["largest"]
        if alike and known.get("size") in (None, [*_read(files[0]).size]):
            lossy = any(file.lower().endswith((".jpg", ".jpeg")) for file in files)
            source, published = f"{known['title']} ({'JPEG' if lossy else 'lossless'} copy)", True
            names = tuple(known["classes"][each] for each in names)

    def read(index: int, size: int) -> Image:
        from PIL import ImageOps

        photo = _read(files[index])
        return ImageOps.fit(photo, (size, size)) if published else photo.resize((size, size))

    return Photos(read, np.asarray(labels), names, source)


def _visible(path: Path) -> bool:
    """Whether a file or folder is neither hidden, as ``._1.png`` of macOS, nor made by an archiver
    or a system.
    """
    return not path.name.startswith(".") and path.name.lower() not in (
        "__macosx",
        "thumbs.db",
        "desktop.ini",
    )


def _is_image(path: Path) -> bool:
    """Whether a visible file has the ending of a format that Pillow reads."""
    try:
        from PIL import Image
    except ImportError as error:
        raise DatasetNotFoundError("reading photos needs Pillow: pip install pillow") from error
    kind = Image.registered_extensions().get(path.suffix.lower())
    return _visible(path) and (kind in Image.OPEN or kind == "MPO")  # which is opened as JPEG


def _images_in(folder: Path) -> list[str]:
    """Return the paths of the images in a folder and its sub-folders; warn of files that Pillow
    does not read.
    """
    images, others, linked = list[tuple[str, str]](), list[str](), list[str]()
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if _visible(Path(name))]
        linked += [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in filter(lambda name: _visible(Path(name)), names):
            if _is_image(Path(name)):
                images.append((parent, name))
            else:
                others.append(name)
    if linked:  # which may lead back to the folder, or to another class
        some = ", ".join(sorted(linked)[:3])
        warnings.warn(
            f"{folder}: {_are_left_out(len(linked), 'linked folder')}: {some}", stacklevel=2
        )
    if others and images:  # otherwise an error names them
        some = ", ".join(sorted(others)[:3])
        warnings.warn(
            f"{folder}: {_are_left_out(len(others), 'file')}, of no format of Pillow: {some}",
            stacklevel=2,
        )
    return [os.path.join(*place) for place in sorted(images)]


def _are_left_out(count: int, noun: str) -> str:
    return f"{count} {noun} is left out" if count == 1 else f"{count} {noun}s are left out"


def _read(path: str) -> Image:
    """Read an image of 8 bits as it is shown: turned as its EXIF data say, over white where it is
    transparent, in RGB.

    Raises:
        ValueError: if it is damaged or too large, or has more than 8 bits, whose brightest possible
            value is not known.
    """
    from PIL import Image, ImageOps

    try:
        if not Path(path).is_file():
            raise ValueError("it is no file")
        with Image.open(path) as file:
            # Pillow clips grey values at 255, and reduces colours to 8 bits
            if file.mode.startswith(("I", "F")) or ";16" in str(file.tile):
                raise ValueError(f"its mode {file.mode} has more than 8 bits")
            tags = getattr(file, "tag_v2", {})
            if max(tags.get(_DEPTH, (8,))) > 8:  # of channels one after another, as of 8 bits
                raise ValueError("its numbers have more than 8 bits")
            if 2 in tags.get(_SAMPLE_FORMAT, ()):
                raise ValueError("its values are signed, which Pillow ignores")
            photo = ImageOps.exif_transpose(file)
            if photo.has_transparency_data:
                white = Image.new("RGBA", photo.size, "white")
                photo = Image.alpha_composite(white, photo.convert("RGBA"))
            return photo.convert("RGB")
    except Exception as error:  # a reader of a damaged file can raise anything
        raise ValueError(
            f"{path} cannot be read as an image ({error}): store it with 8 bits, or delete it"
        ) from error


def photos_in(root: Path) -> str:
    """Name the photos in a folder, or else what it holds, for messages."""
    places = {known["title"]: find_published(name, root) for name, known in PUBLISHED.items()}
    names = [
        f"{title} in {place}"
        for title, place in places.items()
        if place and place.is_relative_to(root)
    ]
    if (classes := sorted(class_folders(root / "train"))) and root not in places.values():
        names.append(f"images of {len(classes)} classes such as {classes[0]}")
    return ", ".join(names) or entries(root)


def entries(folder: Path) -> str:
    """List the first entries of a folder, or of the one around it if it does not exist, for
    messages.
    """
    if not folder.exists():
        return f"no {folder.name}, but {entries(folder.parent)}"
    names = visible_in(folder)
    packed = [name for name in names if name.lower().endswith(_ARCHIVES)]
    listed = ", ".join(map(repr, names[:8])) + " ..." * (len(names) > 8)
    return (listed or "none") + (f"; unpack {packed[0]!r}" if packed else "")


def visible_in(folder: Path) -> list[str]:
    """Return the names of a folder's entries that are not hidden, sorted, or that of a file; empty
    for others.
    """
    if folder.is_file():
        return [folder.name]
    return (
        sorted(path.name for path in folder.iterdir() if _visible(path)) if folder.is_dir() else []
    )


def _datasets() -> ModuleType:
    """Return torchvision's module of data sets."""
    try:
        from torchvision import datasets
    except ImportError as error:
        raise DatasetNotFoundError(
            "published files need torchvision: pip install torchvision"
        ) from error
    return datasets
