"""The explorer's pictures: eight drawings that ship with the package, and a photograph that ships with matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from nads_core.data.images import ImageSet, load_images

if TYPE_CHECKING:
    from PIL.Image import Image

DRAWINGS = Path(__file__).parent / "drawings"
NAMES = ("sunset", "house", "sailing boat", "tree", "cat", "balloon", "mountain", "fish")
FACE = (103, 10, 423, 330)  # left, top, right, bottom in the photograph


def load_pictures(size: int = 32) -> ImageSet:
    """Load small pictures that people recognise, each a class of its own; generated images where Pillow is missing.

    The last one is a photograph of Grace Hopper (US Navy, public domain), where matplotlib has it.

    Args:
        size: height and width of the images, which are (N, 3, size, size).
    """
    try:
        from PIL import Image
    except ImportError:
        return load_images("generated", train=False, num_images=10, size=size)
    pictures = {name: Image.open(DRAWINGS / f"{name.replace(' ', '_')}.png") for name in NAMES} | _photograph()
    small = [np.asarray(image.resize((size, size), Image.Resampling.LANCZOS)) for image in pictures.values()]
    images = torch.from_numpy(np.stack(small)).permute(0, 3, 1, 2).float() / 255  # (N, 3, H, W)
    return ImageSet(images.contiguous(), torch.arange(len(images)), tuple(pictures), "drawings and a photograph")


def _photograph() -> dict[str, Image]:
    try:
        from matplotlib.cbook import get_sample_data
        from PIL import Image

        with Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False)) as photo:
            return {"Grace Hopper": photo.convert("RGB").crop(FACE)}
    except (ImportError, OSError):  # matplotlib is missing, or packaged without its samples
        return {}
