"""What the explorer draws, packed for a browser: a JSON header and one array of bytes for each
architecture.

Its pictures are eight drawings that ship with the package, and a photograph that ships with
matplotlib.
"""

from __future__ import annotations

import base64
import contextlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nads_book.experiments import formatting
from nads_book.published.waves import published_accuracies
from nads_book.statistics import accuracy_interval
from nads_book.studies import load_results
from nads_book.theory.first_step import accuracies_by
from nads_core.data.fourier import fourier_direction
from nads_core.data.images import ImageSet
from nads_core.directions import NADs, load_nads
from nads_core.directions.certainty import CERTAIN
from nads_core.networks.architectures import ARCHITECTURES

SHIPPED = ("lenet", "vgg11", "resnet18", "densenet121", "logreg")  # in this order
LABELS = {name: formatting.LABELS[name] for name in SHIPPED}
LEVELS = 127  # of int8, on either side of zero
_PUBLISHED_TEST = 10_000  # images that a published accuracy was measured on
DRAWINGS = Path(__file__).parent / "drawings"
NAMES = ("sunset", "house", "sailing boat", "tree", "cat", "balloon", "mountain", "fish")
FACE = (103, 10, 423, 330)  # left, top, right, bottom in the photograph
Packet = tuple[dict[str, Any], bytes]


def pack_nads(nads: NADs, label: str, name: str | None = None) -> Packet:
    """Pack NADs and their uncertainties.

    Every direction becomes int8 with a scale of its own, so that no pixel is off by more than 1/254
    of the largest.

    Args:
        nads: NADs of square single-channel images (n, 1, H, H).
        label: label that the reader sees.
        name: name of an architecture with results files; None for NADs of your own.

    Returns:
        A header for JSON, and bytes: float32 scales (n,), float32 eigenvalues (n,), int8 pixels (n,
        H, H).

    Raises:
        ValueError: for images of another kind.
    """
    count, height = len(nads), require_square(nads)
    directions = nads.directions.flatten(1).numpy()  # (n, H^2)
    scales = np.abs(directions).max(1, keepdims=True) / LEVELS  # (n, 1)
    arrays = (
        scales.astype("<f4"),
        nads.eigenvalues.numpy().astype("<f4"),
        np.rint(directions / scales).astype(np.int8),
    )
    header: dict[str, Any] = {
        "label": label,
        "name": name,
        "size": height,
        "count": count,
        "energies": _energies(nads, height),
        "certificates": _certificates(nads),
        "published": False,
    }
    if name in ARCHITECTURES:
        header["accuracies"] = _measured(name, "fig6", "index", nads)
        header["fourier"] = _measured(name, "fig1", "frequency", nads)
        if not header["fourier"]:
            header |= {"fourier": _published_rows(name), "published": True}
    return header, b"".join(array.tobytes() for array in arrays)


def _certificates(nads: NADs) -> dict[str, list[Any]] | None:
    """Return the name and certainty of each direction, the number of its band (-1 for none), and
    [size, certainty].
    """
    if nads.uncertainty is None:
        return None
    band = [-1] * len(nads)
    for number, measured in enumerate(nads.bands):
        for index in measured.indices:
            band[index] = number
    return {
        "names": list(nads.names),
        "certainty": [round(value, 2) for value in nads.certainty.tolist()],
        "band": band,
        "bands": [[len(measured.indices), round(measured.certainty, 2)] for measured in nads.bands],
    }


def require_square(nads: NADs) -> int:
    """Return the side of square single-channel images; the Fourier map and its frequencies ask for
    a multiple of 4.

    Raises:
        ValueError: for images of another kind.
    """
    channels, height, width = shape = tuple(nads.directions.shape[1:])
    if channels != 1 or height != width or height % 4:
        raise ValueError(
            "the explorer draws square single-channel images with a side of 4, 8, 12, ..., got "
            f"{shape}"
        )
    return height


def pack_photos(size: int = 32) -> Packet:
    """Pack the pictures of `load_pictures` as uint8 (N, 3, H, W)."""
    photos = load_pictures(size)
    header = {
        "size": size,
        "count": len(photos),
        "labels": photos.labels.tolist(),
        "names": list(photos.class_names),
    }
    return header, (photos.images * 255).round().byte().numpy().tobytes()


def pack_shipped(name: str) -> Packet:
    """Pack the NADs that ship under a name, or "photos"."""
    return pack_photos() if name == "photos" else pack_nads(load_nads(name), LABELS[name], name)


def load_pictures(size: int = 32) -> ImageSet:
    """Load small pictures that people recognise, each a class of its own.

    The last one is a photograph of Grace Hopper (US Navy, public domain), where matplotlib has it.

    Args:
        size: height and width of the images, which are (N, 3, size, size).
    """
    from matplotlib.cbook import get_sample_data
    from PIL import Image

    pictures: dict[str, Image.Image] = {
        name: Image.open(DRAWINGS / f"{name.replace(' ', '_')}.png") for name in NAMES
    }
    with contextlib.suppress(OSError):  # matplotlib is packaged without its samples
        photo = Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False))
        pictures["Grace Hopper"] = photo.convert("RGB").crop(FACE)
    filter = Image.Resampling.LANCZOS
    small = [np.asarray(image.resize((size, size), filter)) for image in pictures.values()]
    images = torch.from_numpy(np.stack(small)).permute(0, 3, 1, 2).float() / 255  # (N, 3, H, W)
    labels = torch.arange(len(images))
    return ImageSet(images.contiguous(), labels, tuple(pictures), "drawings and a photograph")


def compressed(packet: Packet) -> dict[str, Any]:
    """Return a packet as JSON: the header with the compressed bytes as text."""
    header, content = packet
    return header | {"bytes": base64.b64encode(zlib.compress(content, 9)).decode()}


def as_script(name: str, packet: Packet) -> str:
    """Return a classic script, which loads from a server and from a file, that hands a packet to
    the explorer.
    """
    return (
        f"(globalThis.nadExplorerData ??= {{}})[{_literal(name)}] = "
        f"{_literal(compressed(packet))};\n"
    )


def _literal(value: object) -> str:
    """Return JSON that may stand inside <script>: no string in it, such as a file's label, can end
    the element.
    """
    return json.dumps(value).translate(
        {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}
    )


def _measured(name: str, figure: str, field: str, nads: NADs) -> list[list[Any]] | None:
    """Return [key, accuracy, low, high] for each frequency, or NAD index (None for training on
    clean photos), of a figure's results; None where there are none.
    """
    results = load_results(f"{figure}-{name}")
    if not results or not results.rows:
        return None
    num_test, found = results.settings["num_test"], accuracies_by(field, results)
    rows = [
        _row(key, float(np.mean(values)), num_test * len(values)) for key, values in found.items()
    ]
    job = results.experiment()
    if job.about_nads and job.nads.fingerprint != nads.fingerprint:
        rows = _placed(rows, job.nads, nads)
    return sorted(rows, key=lambda row: -1 if row[0] is None else row[0])


def _published_rows(name: str) -> list[list[Any]]:
    """Return the same rows of the authors' published values: means of both cells of a wave."""
    accuracies = published_accuracies(name).items()
    return [_row(list(k), accuracy, _PUBLISHED_TEST) for k, accuracy in accuracies]


def _placed(rows: list[list[Any]], measured: NADs, nads: NADs) -> list[list[Any]]:
    """Assign results for NADs of another version to the closest of these, and append the squared
    cosine to each row.

    Without a close one, a result stands at the rank of its direction's energy.
    """
    directions = measured.directions[[row[0] for row in rows if row[0] is not None]]
    closeness, places = nads.coordinates(directions.double()).square().max(1)
    ranks = (nads.eigenvalues > nads.energy(directions)[:, None]).sum(1).clamp(max=len(nads) - 1)
    found = iter(zip(torch.where(closeness < CERTAIN, ranks, places), closeness, strict=True))

    def placed(index: int | None, *values: float) -> list[Any]:
        if index is None:
            return [index, *values]
        place, cosine = next(found)
        return [int(place), *values, round(float(cosine), 2)]

    return [placed(*row) for row in rows]


def _row(key: object, accuracy: float, num_test: int) -> list[Any]:
    values = (float(accuracy), *accuracy_interval(float(accuracy), num_test))
    return [key, *(round(value, 5) for value in values)]


def _energies(nads: NADs, size: int) -> list[list[float]]:
    """Return v^T C v for the DFT directions of every frequency, rows from -H/2 up, relative to the
    map's largest.

    The map shows every second frequency: the others may have more than its largest.
    """
    axis = range(-size // 2, size // 2)
    waves = torch.stack(
        [fourier_direction((ky, kx), size) for ky in axis for kx in axis]
    )  # (H^2, 1, H, H)
    energies = nads.energy(waves).double().clamp(min=0).view(size, size)
    largest = energies[::2, ::2].max().clamp(min=torch.finfo(torch.float32).tiny)
    return [[float(f"{e:.3g}") for e in row] for row in (energies / largest).tolist()]
