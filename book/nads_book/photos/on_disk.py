"""Photos on this machine: published data sets, in official files or copies, and folders with one
folder per class.
"""

import gzip
import os
import reprlib
import tempfile
import tomllib
import unicodedata
import warnings
import zlib
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PUBLISHED = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text("utf8"))

# Of Pillow's formats those of photos. Others hold videos or tables, and EPS holds programs, which
# Ghostscript would run.
_FORMATS = "AVIF BMP DIB GIF ICO JPEG JPEG2000 PNG PPM TGA TIFF WEBP".split()
_ENDINGS = tuple(
    ".avif .bmp .dib .gif .ico .jpg .jpeg .jpe .jfif .mpo .jp2 .j2k .jpx .png .apng .pbm .pgm .ppm "
    ".pnm .tga .tif .tiff .webp".split()
)
# How systems and storage devices begin the names of their folders: .git, @eaDir, #recycle,
# $RECYCLE.BIN, ~snapshot, __MACOSX
_SYSTEM = (*".@#$~_", "lost+found", "System Volume Information")
_Entries = list[os.DirEntry[str]]
_PARTS = {*"train training test testing val valid validation".split()}


class DatasetNotFoundError(FileNotFoundError):
    """Raised where there are no photos."""


class Photos(NamedTuple):
    """Labelled photos, to be read one by one.

    Args:
        read: function from an index to an image of Pillow, which raises an UnidentifiedImageError
            for a file that is no photo.
        labels: (N,) int64.
        class_names: name of each label.
        source: origin of the photos, see `images.ImageSet`.
    """

    read: Callable[[int], Any]
    labels: np.ndarray
    class_names: tuple[str, ...]
    source: str


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder to look in: ``root``, or that of ``NADS_DATA``, or the cache.

    Raises:
        DatasetNotFoundError: if a folder is named that does not exist.
    """
    named = root or os.environ.get("NADS_DATA")
    folder = Path(named or "~/.cache/nads_core").expanduser()
    if named and not folder.is_dir():
        raise DatasetNotFoundError(f"root or NADS_DATA is {named!r}, but no folder: name another")
    return folder


def open_published(name: str, root: Path, train: bool, download: bool = False) -> Photos:
    """Open the training or the test part of a published data set in a folder, where it may be
    downloaded to.

    Raises:
        DatasetNotFoundError: if there is no such data set, or no such part.
        ValueError: if files are missing, damaged or of another data set.
    """
    known = PUBLISHED[name]
    for folder in (base / place for place in known["places"] for base in (root, root / name)):
        if any((folder / file).is_file() for file in known.get("files", ())):
            from torchvision import datasets

            try:
                return _open_files(getattr(datasets, known["torchvision"]), folder, train)
            except Exception as error:  # of files, of torchvision, or of gzip
                raise ValueError(
                    f"{folder} is incomplete, damaged or of another data set ({error}): restore "
                    "it, or delete it"
                ) from error
        if class_names(folder / "train") == [*known.get("classes", [None])]:
            photos = open_part(folder, train)
            if photos.source.startswith(known["title"]):
                return photos
    problem = f"no complete {known['title']} in {root} (found: {entries(root)})"
    if download:
        try:
            download_published(known, root)
            return open_published(name, root, train)
        except (OSError, RuntimeError, ImportError) as error:  # no network, mostly
            problem += f", which cannot be downloaded ({error})"
    raise DatasetNotFoundError(
        f"{problem}: set NADS_DATA (or root) to a folder with {known['content']}; or use "
        "dataset='generated'"
    )


def _open_files(kind: Any, folder: Path, train: bool) -> Photos:
    """Open the official files of CIFAR-10 or Fashion-MNIST, and check that they are these: MNIST
    has files of the same names.
    """
    from PIL.Image import fromarray

    if kind.__name__ == "CIFAR10":
        files = type("CIFAR10", (kind,), {"base_folder": folder.name})(folder.parent, train=train)
        return Photos(
            lambda index: files[index][0], np.array(files.targets), tuple(files.classes), "CIFAR-10"
        )
    part = folder / ("train" if train else "t10k")
    images, labels = (
        gzip.decompress(Path(f"{part}-{file}-ubyte.gz").read_bytes())
        for file in ("images-idx3", "labels-idx1")
    )
    if zlib.crc32(images + labels) not in PUBLISHED["fashion-mnist"]["checksums"]:
        raise ValueError(f"{part}-* have another checksum")
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28)
    numbers = np.frombuffer(labels, np.uint8, offset=8).astype(np.int64)
    return Photos(
        lambda index: fromarray(pixels[index]), numbers, tuple(kind.classes), "Fashion-MNIST"
    )


def download_published(known: Any, root: Path) -> None:
    """Download the official files; existing files are complete, even after concurrent or killed
    downloads.
    """
    from filelock import FileLock
    from torchvision import datasets

    kind = getattr(datasets, known["torchvision"])
    official = root / known["places"][0]
    official.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(root / ".download.lock"):
        if official.is_dir():
            return  # another process was first
        with tempfile.TemporaryDirectory(dir=root, prefix=".download-") as part:
            kind(part, download=True, **known.get("options", {}))
            Path(part, known["places"][0]).replace(official)


def listing(folder: str | Path) -> tuple[_Entries, _Entries]:
    """Return the folders in a folder, without those of systems, and everything else that is not
    hidden, both sorted; nothing if there is no such folder.

    Raises:
        ValueError: if it cannot be listed.
    """
    folders, others = _Entries(), _Entries()
    try:
        found = sorted(os.scandir(folder), key=attrgetter("name")) if os.path.isdir(folder) else []
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be listed ({error.strerror}): allow it, or move it elsewhere"
        ) from error
    for entry in found:
        if entry.is_dir() and not entry.name.startswith(_SYSTEM):
            folders.append(entry)
        elif not entry.name.startswith("."):
            others.append(entry)
    return folders, others


def _below(folder: str) -> _Entries:
    """Return the files in a folder and its sub-folders, and the sub-folders that do not count."""
    folders, found = listing(folder)
    for each in folders:
        # Links may lead back to the folder, or to another class
        found += [each] if each.is_symlink() else _below(each.path)
    return found


def _composed(entry: Any) -> str:
    """Return a name in the form in which letters have their accents, which macOS stores apart."""
    return unicodedata.normalize("NFC", entry.name)


def class_names(part: Path) -> list[str]:
    """Return the names of the folders in a folder, one per class, sorted; those of systems are
    none.
    """
    return sorted({*map(_composed, listing(part)[0])})


def open_part(folder: Path, train: bool) -> Photos:
    """Open ``train/``; or ``test/`` or ``val/`` with the labels of ``train/``."""
    if train:
        return open_folder(folder / "train", folder.name)
    part = folder / ("test" if (folder / "test").is_dir() else "val")
    return open_folder(part, folder.name, class_names(folder / "train"))


def open_folder(folder: Path, name: str | None, classes: Sequence[str] = ()) -> Photos:
    """Open images with one folder per class; their classes and number show whether they are a
    published data set.

    Args:
        folder: folder with one folder per class, whose sub-folders count too.
        name: name of the images, for captions; the folder's by default.
        classes: names of the folders in the order of the labels, of which some may be missing; by
            default those in ``folder``, sorted.

    Raises:
        DatasetNotFoundError: if there is no such folder, or no images in one of its folders, or if
            these are not classes.
        ValueError: if there are other classes than ``classes``, or a folder cannot be listed.
    """
    own = class_names(folder)
    names = [*classes] or own
    if unknown := sorted({*own} - {*names}):
        raise ValueError(
            f"{folder} has classes {unknown}, but the training images are of {names}: rename them"
        )
    folders, left_out = listing(folder)
    files, labels, inner = list[str](), list[int](), list[str]()
    for each in folders:
        below = _below(each.path)
        images = [entry.path for entry in below if entry.name.lower().endswith(_ENDINGS)]
        if not images:
            raise DatasetNotFoundError(
                f"{each.path} holds no images (found: {entries(Path(each))}): convert them to JPEG "
                "or PNG, or delete the folder"
            )
        files += images
        labels += [names.index(_composed(each))] * len(images)
        left_out += [entry for entry in below if not entry.name.lower().endswith(_ENDINGS)]
        inner += {Path(path).parent.name for path in images} - {each.name}
    # Classes may have sub-folders, but two classes do not share several of them, as parts do
    shared = sorted(each for each in {*inner} if inner.count(each) >= min(2, len(names)))
    if shared[1:] or {*map(str.lower, own)} <= _PARTS:
        raise DatasetNotFoundError(
            f"{folder} holds no folder of images for each class (found: {entries(folder)}, with "
            f"{shared}): name one of its folders, or move the images of each class out of its "
            "sub-folders"
        )
    if left_out:
        some = ", ".join(entry.path for entry in left_out[:3])
        warnings.warn(
            f"{len(left_out)} left out, as no photo, in no class, behind a link or of a system: "
            f"{some}",
            stacklevel=2,
        )
    source = f"images in {name or folder.name}"
    for known in PUBLISHED.values():
        if names == [*known.get("classes", ())] and len(files) in known["counts"]:
            kind = "JPEG" if files[0].lower().endswith((".jpg", ".jpeg")) else "lossless"
            source = f"{known['title']} ({kind} copy)"
            names = [*known["classes"].values()]
    return Photos(lambda index: _read(files[index]), np.array(labels), tuple(names), source)


def _read(path: str) -> Any:
    """Read an image of 8 bits as it is shown: turned as its EXIF data say, over white where it is
    transparent, in RGB.

    Raises:
        UnidentifiedImageError: if it is no photo, whatever its ending.
        ValueError: if it is damaged or too large, or has more than 8 bits, whose brightest possible
            value is not known.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        if not os.path.isfile(path):
            raise ValueError("it is no file")
        # Pillow warns of many pixels without naming the file, and rejects twice as many
        with (
            warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning),
            Image.open(path, formats=_FORMATS) as file,
        ):
            # TIFF's tags 258 and 339 are the bits and the type of its numbers
            tags = getattr(file, "tag_v2", {})
            # Pillow clips grey values at 255, reduces colours to 8 bits, and ignores signs
            if (
                file.mode.startswith(("I", "F"))
                or ";16" in str(file.tile)
                or max(tags.get(258, (8,))) > 8
                or 2 in tags.get(339, ())
            ):
                raise ValueError(f"its mode {file.mode} has more than 8 bits, or signs")
            photo = ImageOps.exif_transpose(file)
            if photo.has_transparency_data:
                white = Image.new("RGBA", photo.size, "white")
                photo = Image.alpha_composite(white, photo.convert("RGBA"))
            return photo.convert("RGB")
    except UnidentifiedImageError:
        raise
    except Exception as error:  # a reader of a damaged file can raise anything
        raise ValueError(
            f"{path} cannot be read as an image ({error}): store it with 8 bits, or delete it"
        ) from error


def entries(folder: Path) -> str:
    """List what a folder holds, for messages, or the folder around it if it does not exist, or the
    only one in it.
    """
    while not folder.is_dir():
        folder = folder.parent
    names = [entry.name for kind in listing(folder) for entry in kind]
    if len(names) == 1 and (folder / names[0]).is_dir():
        return entries(folder / names[0])
    return f"{reprlib.repr(names)} in {folder}"
