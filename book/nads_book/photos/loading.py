"""Images to learn from: published photos, a folder of images, or a small generated set where there
are no photos.
"""

import logging
import os
import warnings
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from nads_book.photos import on_disk
from nads_book.photos.on_disk import DatasetNotFoundError
from nads_core.data.images import ImageSet
from nads_core.runtime.arguments import require_choice, require_integers

DATASETS = ("auto", *on_disk.PUBLISHED, "generated")
GENERATED = "generated images, not photos"  # `ImageSet.source`


def load_images(
    dataset: str = "auto",
    *,
    train: bool = True,
    num_images: int | None = None,
    root: str | os.PathLike[str] | None = None,
    download: bool | None = None,
    size: int = 32,
    seed: int = 0,
    progress: bool = True,
) -> ImageSet:
    """Load labelled photos, the same number of every class as far as possible.

    ``root`` (by default the folder named by the environment variable ``NADS_DATA``) may hold
    several data sets, each in the files that torchvision downloads, or as a complete copy with one
    folder per class: ``train/cat/1.png`` and ``test/cat/2.png``. A copy may also be in a sub-folder
    ``cifar10``, ``fashion-mnist`` or ``imagenette64``. Fashion-MNIST may be the four files as
    published, or the Debian package ``dataset-fashion-mnist``.

    Images of 8 bits may be in any usual format of photos that Pillow reads. They are turned as
    their EXIF data say. Transparent parts are shown over white. Of files with several frames the
    first is read; colour profiles are ignored. Files that are no photos, whatever their ending,
    images in no class, folders of systems and storage devices (their names begin with ``@``, ``#``,
    ``$``, ``~`` or ``_``), and sub-folders behind links are left out with a warning, hidden ones
    without. Two folders that share several sub-folders are parts of a data set, not classes.
    Classes are sorted as text, "10" before "2". The labels of ``test/``, or of ``val/`` where there
    is no ``test/``, are those of ``train/``.

    Photos are cropped to the square in their centre, and scaled by Pillow's bicubic filter.
    Fashion-MNIST has 28 x 28 pixels.

    Args:
        dataset: "cifar10", "fashion-mnist" (one channel) or "imagenette"; "generated" for a small
            synthetic set; "auto" for ``train`` and ``test`` in ``root``, whatever their classes, or
            CIFAR-10 if available. The generated set takes their place, which a warning in the log
            says, only if no ``root`` is given, and ``NADS_DATA`` names no folder that holds
            something. ``source`` of the result records which.
        train: whether to load the training part (else the test part).
        num_images: number of images, drawn evenly from the classes; all by default, or if there are
            fewer.
        root: folder to look in, and to download to (by default ``~/.cache/nads_core``).
        download: whether to download the data set with torchvision if there are no files
            (Imagenette in its 160-pixel version); by default yes, unless the environment variable
            ``NADS_DOWNLOAD`` is 0.
        size: height and width in pixels.
        seed: seed of the selection, and of generated images.
        progress: whether to show a progress bar while reading many files.

    Returns:
        The images, in an order shuffled by ``seed``.

    Raises:
        ValueError: for an unknown dataset, an invalid number of images, size or seed, damaged
            official files, an image that is damaged or too large, a folder that cannot be listed,
            or classes of ``test/`` that ``train/`` lacks.
        DatasetNotFoundError: if there are neither files of the data set nor a network connection;
            if ``root`` does not exist, holds other photos or an incomplete copy, or has a class
            without images. It names what is there, and what is expected.
    """
    require_choice("dataset", dataset, DATASETS)
    _require_integers(num_images, size, seed)
    if dataset == "generated":
        return _generated(train, num_images, size, seed)
    folder, auto = on_disk.data_root(root), dataset == "auto"
    own = (folder / "train").is_dir()
    if download is None:
        download = os.environ.get("NADS_DOWNLOAD", "1") != "0"
    if auto and own:
        photos = on_disk.open_part(folder, train)
    else:
        # What a named folder holds is meant to be used: nothing else takes its place.
        named = root or os.environ.get("NADS_DATA")
        occupied = own or (auto and named and any(on_disk.listing(folder)))
        try:
            photos = on_disk.open_published(
                "cifar10" if auto else dataset, folder, train, download and not occupied
            )
        except DatasetNotFoundError as error:
            if not auto or root or occupied:
                raise
            if train:  # once for both parts
                logging.getLogger(__name__).warning("Generated images replace photos: %s", error)
            return _generated(train, num_images, size, seed)
    return _selection(photos, num_images, size, seed, progress)


def _require_integers(num_images: int | None, size: int, seed: int) -> None:
    require_integers(size=size, num_images=1 if num_images is None else num_images)
    require_integers(least=0, seed=seed)


def _draw_evenly(labels: np.ndarray, num_images: int | None, seed: int) -> np.ndarray:
    """Return shuffled indices of ``num_images`` images, (num_images,), classes as equally frequent
    as possible.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    if num_images is None or num_images >= len(labels):
        return order
    # Of an image in its class: the first of every class come first
    rank = np.empty_like(order)
    rank[np.argsort(labels[order], kind="stable")] = np.concatenate(
        [*map(np.arange, np.bincount(labels))]
    )
    return order[np.argsort(rank, kind="stable")[:num_images]]


def _selection(
    photos: on_disk.Photos, num_images: int | None, size: int, seed: int, progress: bool
) -> ImageSet:
    """Read a selection of photos, scaled to (C, size, size) in [0, 1]."""
    try:
        from PIL import ImageOps, UnidentifiedImageError
    except ImportError as error:
        raise DatasetNotFoundError("reading photos needs Pillow: pip install pillow") from error
    drawn = _draw_evenly(photos.labels, num_images, seed)
    pixels = {}
    for index in tqdm(drawn, desc="reading images", disable=not progress or len(drawn) < 20_000):
        try:
            pixels[index] = np.atleast_3d(np.array(ImageOps.fit(photos.read(index), (size, size))))
        except UnidentifiedImageError as error:
            warnings.warn(f"left out, since it is no photo: {error}", stacklevel=3)
    # (N, H, W, C) -> (N, C, H, W)
    images = torch.from_numpy(np.stack([*pixels.values()])).permute(0, 3, 1, 2).contiguous() / 255
    return ImageSet(
        images, torch.from_numpy(photos.labels[[*pixels]]), photos.class_names, photos.source
    )


def load_folder(
    folder: str | os.PathLike[str],
    num_images: int | None = None,
    *,
    size: int = 32,
    name: str | None = None,
) -> ImageSet:
    """Load images with one folder per class, ``folder/cat/1.png``.

    Args:
        folder: folder with one folder per class.
        num_images: number of images, drawn evenly from the classes; all by default.
        size: height and width in pixels, to which images of another size are scaled.
        name: name of the images, for captions; the folder's by default.

    Raises:
        DatasetNotFoundError: if there is no such folder, or no images in it or in a class, or if it
            holds parts instead of classes.
        ValueError: for an invalid number of images or size, if an image is damaged or too large,
            or if a folder cannot be listed.
    """
    _require_integers(num_images, size, 0)
    photos = on_disk.open_folder(Path(folder), name)
    return _selection(photos, num_images, size, 0, True)


def _generated(train: bool, num_images: int | None, size: int, seed: int) -> ImageSet:
    """Ten classes: five gratings and five blobs of different shape and tint, at random places, in
    coloured noise.
    """
    count = num_images or (10_000 if train else 2_000)
    generator = torch.Generator().manual_seed(2 * int(seed) + train)
    labels = torch.randperm(count, generator=generator) % 10  # (N,)

    def uniform() -> torch.Tensor:
        return torch.rand(count, 1, 1, generator=generator)

    x = torch.linspace(-1, 1, size)
    y = x[:, None]
    form = (labels % 5)[:, None, None]  # (N, 1, 1)
    angle = torch.pi * (form + 0.3 * (uniform() - 0.5)) / 5  # (N, 1, 1)
    # (N, H, W)
    waves = torch.sin(
        (3 + form) * 2 * (x * angle.cos() + y * angle.sin()) + 2 * torch.pi * uniform()
    )
    dy, dx = y - 0.6 * (2 * uniform() - 1), x - 0.6 * (2 * uniform() - 1)
    radius = 0.2 + 0.08 * form  # (N, 1, 1)
    blobs = 2 * torch.exp(-((dy**2 + dx**2 * (1 + form / 2)) ** 2) / radius**2) - 1  # (N, H, W)
    pattern = torch.where(labels[:, None, None] < 5, waves, blobs)[:, None]  # (N, 1, H, W)
    tint = 0.5 + 0.5 * torch.rand(count, 3, 1, 1, generator=generator)
    # White noise (N, 3, H, W), divided by its frequency: as in photos, low frequencies are the
    # strongest.
    noise = torch.fft.fft2(torch.randn(count, 3, size, size, generator=generator))
    frequency = torch.fft.fftfreq(size)
    noise = torch.fft.ifft2(noise / (0.05 + torch.hypot(frequency[:, None], frequency))).real
    images = 0.5 + 0.16 * tint * pattern + 0.12 * noise / noise.std()  # (N, 3, H, W)
    names = tuple(f"{shape} {number}" for shape in ("grating", "blob") for number in range(1, 6))
    return ImageSet(images.clamp(0, 1), labels, names, GENERATED)
