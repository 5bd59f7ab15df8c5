"""Sliders of a live notebook that call Python, which draws a picture on the kernel for each of
their values.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import torch

from nads_book.figures.publishing import publishing
from nads_core.data import poison
from nads_core.directions import NADs

_SCALE = 6  # screen pixels per pixel
_WITHOUT_KERNEL = (
    "In a live notebook, this cell shows three sliders: the index of the NAD, the number of NADs "
    "that a picture keeps, and the strength ε of a poison. Python computes each picture anew. Open "
    "this page in Colab or Binder with the rocket."
)


def draw_panels(nads: NADs, picture: torch.Tensor, index: int, kept: int, strength: float) -> bytes:
    """Return a PNG with a NAD, a picture rebuilt from its first NADs, and the picture with a
    poison, side by side.

    Args:
        nads: NADs of single-channel images (n, 1, H, W).
        picture: image (3, H, W) in [0, 1].
        index: index of the NAD, which is also the carrier of the poison.
        kept: number of NADs that rebuild the picture.
        strength: epsilon of the poison.
    """
    from PIL import Image

    signed = np.asarray(nads[index][0] / nads[index].abs().max())  # (H, W) in [-1, 1]
    direction = np.stack(
        [1 + signed.clip(-1, 0), 1 - abs(signed), 1 - signed.clip(0, 1)]
    )  # red +, blue -
    coordinates = nads.coordinates(picture[:, None])[:, :kept]  # (3, kept)
    rebuilt = torch.tensordot(coordinates, nads.directions[:kept, 0], dims=1)  # (3, H, W)
    poisoned = poison(picture[None], torch.tensor([0]), nads, index, strength)[0]
    row = np.concatenate(
        [direction, np.asarray(rebuilt), np.asarray(poisoned)], axis=2
    )  # (3, H, 3 W)
    pixels = (255 * row.clip(0, 1)).round().astype(np.uint8).transpose(1, 2, 0)
    png = io.BytesIO()
    Image.fromarray(pixels.repeat(_SCALE, 0).repeat(_SCALE, 1)).save(png, "PNG")
    return png.getvalue()


def live_sliders(nads: NADs, picture: torch.Tensor) -> Any:
    """Return three sliders and the picture that Python draws for them; in the pages of the book, a
    sentence.

    Args:
        nads: NADs of single-channel images.
        picture: image (3, H, W) in [0, 1] of the same size.

    Returns:
        A `nads_book.explorer.widget.Sliders` with the attributes ``index``, ``kept`` and
        ``strength``.

    Raises:
        ImportError: in a live notebook without anywidget.
    """
    if publishing():
        from IPython.display import Markdown

        return Markdown(_WITHOUT_KERNEL)
    from nads_book.explorer.widget import Sliders

    def draw(index: int, kept: int, strength: float) -> tuple[bytes, str]:
        alt = (
            f"NAD {index}, the picture from its first {kept} NADs, and with a poison of strength "
            f"{strength:g}"
        )
        return draw_panels(nads, picture, index, kept, strength), alt

    def row(label: str, low: float, high: float, step: float, first: float) -> dict[str, Any]:
        value = min(first, high)
        return {"label": label, "min": low, "max": high, "step": step, "value": value}

    return Sliders(
        draw,
        index=row("NAD", 0, len(nads) - 1, 1, 12),
        kept=row("NADs kept", 0, len(nads), 1, 100),
        strength=row("strength ε", 0.05, 2.0, 0.05, 0.5),
    )
