"""The explorer's pictures: eight scenes drawn here, and a photograph that ships with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from nads_core.data.images import ImageSet, load_images

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 256  # pixels of a canvas; scaled down, its edges become smooth
FACE = (103, 10, 423, 330)  # left, top, right, bottom in the photograph


def load_pictures(size: int = 32) -> ImageSet:
    """Draw small pictures that people recognise, each a class of its own; generated images where Pillow is missing.

    The last one is a photograph of Grace Hopper (US Navy, public domain), where matplotlib has it.

    Args:
        size: of the images, which are (N, 3, size, size).
    """
    try:
        from PIL import Image
    except ImportError:
        return load_images("generated", train=False, num_images=10, size=size)
    found = {name: draw() for name, draw in SCENES.items()} | _photograph()
    small = [np.asarray(image.resize((size, size), Image.Resampling.LANCZOS)) for image in found.values()]
    images = torch.from_numpy(np.stack(small)).permute(0, 3, 1, 2).float() / 255  # (N, 3, H, W)
    return ImageSet(images.contiguous(), torch.arange(len(images)), tuple(found), "drawings and a photograph")


def _photograph() -> dict[str, Image]:
    try:
        from matplotlib.cbook import get_sample_data
        from PIL import Image

        with Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False)) as photo:
            return {"Grace Hopper": photo.convert("RGB").crop(FACE)}
    except (ImportError, OSError):  # no matplotlib, or one packaged without its samples
        return {}


def _blend(colours: tuple[str, ...], width: int, height: int) -> Image:
    """Return colours that follow one another from top to bottom."""
    from PIL import Image, ImageColor

    stops = np.array([ImageColor.getrgb(colour) for colour in colours], float)
    place = np.linspace(0, len(stops) - 1, height)
    column = np.stack([np.interp(place, range(len(stops)), channel) for channel in stops.T], 1)
    return Image.fromarray(np.repeat(column[:, None].round().astype(np.uint8), width, 1))


class Canvas:
    """A square to draw on; every shape is filled with one colour, or with several from its top to its bottom."""

    def __init__(self, *colours: str):
        self.image = _blend(colours, SIDE, SIDE)

    def fill(self, colours: tuple[str, ...], kind: str, *arguments: object, **options: object) -> None:
        """Fill a shape, which `PIL.ImageDraw` draws as a mask."""
        from PIL import Image, ImageDraw

        mask = Image.new("L", (SIDE, SIDE))
        getattr(ImageDraw.Draw(mask), kind)(*arguments, fill=255, **options)
        left, top, right, bottom = mask.getbbox() or (0, 0, SIDE, SIDE)  # an empty shape has none
        blend = _blend(colours, right - left, bottom - top)
        self.image.paste(blend, (left, top), mask.crop((left, top, right, bottom)))

    def disc(self, x: float, y: float, rx: float, ry: float, *colours: str) -> None:
        """Fill an ellipse around (x, y)."""
        self.fill(colours, "ellipse", (x - rx, y - ry, x + rx, y + ry))

    def polygon(self, points: list[tuple[float, float]], *colours: str) -> None:
        """Fill a polygon."""
        self.fill(colours, "polygon", points)

    def box(self, left: float, top: float, right: float, bottom: float, *colours: str) -> None:
        """Fill a rectangle."""
        self.fill(colours, "rectangle", (left, top, right, bottom))

    def line(self, points: list[tuple[float, float]], width: int, *colours: str) -> None:
        """Draw a line."""
        self.fill(colours, "line", points, width=width)

    def cloud(self, x: float, y: float, scale: float = 1) -> None:
        """Draw three puffs around (x, y)."""
        for dx, dy, radius in ((-24, 4, 14), (0, -4, 22), (24, 4, 15)):
            self.disc(x + scale * dx, y + scale * dy, scale * 1.2 * radius, scale * radius, "#ffffff", "#e6eef8")


def _sunset() -> Image:
    canvas = Canvas("#2b1b5e", "#7a2a7d", "#e0567a", "#ff9a4d", "#ffd56b", "#ffd56b", "#ffd56b", "#ffd56b")
    canvas.disc(128, 138, 50, 50, "#fffbd0", "#ffe34d")
    canvas.box(0, 152, 256, 256, "#d4617a", "#5b2f80", "#1c1748")
    for row, width in enumerate((52, 40, 46, 28, 34, 16)):
        y, shift = 160 + 16 * row, 8 * math.sin(2.3 * row)
        canvas.box(128 + shift - width, y, 128 + shift + width, y + 8, "#ffdf70", "#ffb057")
    return canvas.image


def _house() -> Image:
    canvas = Canvas("#3f9be8", "#8fcbf5", "#e3f4ff")
    canvas.disc(40, 40, 24, 24, "#fff3a0", "#ffd83b")
    canvas.cloud(212, 44, 0.8)
    canvas.disc(128, 330, 240, 150, "#8bd14f", "#2f7d2c")
    canvas.box(160, 70, 180, 110, "#8c4a3a")
    canvas.box(72, 122, 192, 202, "#fff4d6", "#ecd5a4")
    canvas.polygon([(54, 126), (132, 52), (210, 126)], "#e8503a", "#b3261f")
    canvas.box(118, 152, 146, 202, "#7a4320", "#5b2f14")
    for left in (82, 158):
        canvas.box(left, 142, left + 24, 168, "#3c6ea8", "#9ad0f0")
    return canvas.image


def _boat() -> Image:
    canvas = Canvas("#4aa8ee", "#a7dcfa", "#eefaff", "#eefaff")
    canvas.cloud(54, 52)
    canvas.box(0, 176, 256, 256, "#2f8fc4", "#0c3f7d")
    canvas.box(124, 22, 132, 184, "#6b4423")
    canvas.polygon([(136, 26), (136, 164), (222, 164)], "#ff6b52", "#d8262c")
    canvas.polygon([(120, 44), (120, 164), (52, 164)], "#ffffff", "#dfe6ee")
    canvas.polygon([(36, 174), (228, 174), (196, 214), (70, 214)], "#a8642c", "#5c2f12")
    for x, y in ((18, 226), (110, 232), (206, 228), (60, 246), (160, 248)):
        canvas.box(x, y, x + 40, y + 6, "#8fd0ee")
    return canvas.image


def _tree() -> Image:
    canvas = Canvas("#6fc0f5", "#c5e9fb", "#f6fcff")
    canvas.disc(128, 300, 260, 96, "#a5dc62", "#4b9a36")
    canvas.polygon([(112, 130), (144, 130), (150, 224), (164, 236), (92, 236), (106, 224)], "#6b3f1f", "#8a5a30")
    for x, y, radius in ((80, 118, 48), (176, 118, 48), (128, 126, 50), (100, 76, 48), (156, 76, 48), (128, 56, 42)):
        canvas.disc(x, y, radius, radius, "#4fb043", "#1d6b2b")
    for x, y, radius in ((70, 104, 26), (104, 62, 30), (152, 52, 24), (160, 106, 28)):
        canvas.disc(x, y, radius, 0.8 * radius, "#7fd052", "#3a9a3b")
    for x, y in ((76, 126), (122, 112), (176, 132), (170, 78), (98, 92), (142, 148)):
        canvas.disc(x, y, 10, 10, "#ff5a4a", "#c81e1e")
    return canvas.image


def _cat() -> Image:
    canvas = Canvas("#3c7f93", "#1f4a63")
    for side in (-1, 1):
        canvas.polygon([(128 + side * x, y) for x, y in ((98, 18), (22, 84), (94, 138))], "#e8882e")
        canvas.polygon([(128 + side * x, y) for x, y in ((84, 46), (44, 84), (84, 112))], "#f7b8a6")
    canvas.disc(128, 148, 104, 88, "#f7a343", "#e07a22")
    for x in (100, 128, 156):
        canvas.polygon([(x - 9, 64), (x + 9, 64), (x, 108)], "#a8511a")
    canvas.disc(128, 196, 54, 38, "#fff3e0")
    for x in (82, 174):
        canvas.disc(x, 140, 27, 25, "#e9ff9a", "#7fc23c")
        canvas.disc(x, 140, 10, 23, "#10140c")
        canvas.disc(x + 8, 130, 7, 7, "#ffffff")
    canvas.polygon([(110, 172), (146, 172), (128, 192)], "#d8485f")
    canvas.line([(128, 190), (128, 206)], 7, "#5a2a1c")
    canvas.line([(100, 208), (114, 214), (128, 206), (142, 214), (156, 208)], 7, "#5a2a1c")
    return canvas.image


def _balloon() -> Image:
    canvas = Canvas("#2f86e0", "#7fc1f5", "#d9f0ff")
    canvas.cloud(48, 196, 0.9)
    canvas.cloud(216, 150, 0.8)
    canvas.polygon([(62, 132), (194, 132), (150, 198), (106, 198)], "#d92b35", "#a3171f")
    canvas.polygon([(90, 132), (166, 132), (140, 198), (116, 198)], "#ffcf33", "#e09a12")
    canvas.polygon([(114, 132), (142, 132), (133, 198), (123, 198)], "#d92b35", "#a3171f")
    canvas.disc(128, 98, 82, 80, "#ff5b52", "#d92b35")
    canvas.disc(128, 98, 50, 80, "#ffe566", "#ffcf33")
    canvas.disc(128, 98, 18, 80, "#ff5b52", "#d92b35")
    for x in (108, 148):
        canvas.line([(x, 196), (128 + 0.8 * (x - 128), 218)], 4, "#5b3a1e")
    canvas.box(108, 214, 148, 244, "#a8692f", "#6b3d16")
    return canvas.image


def _mountain() -> Image:
    canvas = Canvas("#2c6fc9", "#8cc3f2", "#fbe6d0", "#fbe6d0")
    canvas.polygon([(110, 200), (206, 74), (300, 200)], "#7186ad", "#54698f")
    canvas.polygon([(206, 74), (176, 112), (196, 106), (208, 118), (222, 106), (232, 108)], "#ffffff", "#dbe6f5")
    canvas.polygon([(-30, 210), (98, 28), (220, 210)], "#5c6c8c", "#3a4a68")
    canvas.polygon([(98, 28), (48, 98), (72, 92), (86, 112), (104, 92), (122, 108), (146, 100)], "#ffffff", "#dfe9f7")
    canvas.box(0, 196, 256, 256, "#3f8f4a", "#1f5a30")
    for x, top, width in ((24, 150, 22), (66, 168, 18), (188, 164, 20), (230, 144, 24)):
        canvas.polygon([(x, top), (x - width, 230), (x + width, 230)], "#1f6b3a", "#0e3d22")
    return canvas.image


def _fish() -> Image:
    canvas = Canvas("#5fd3ea", "#1f8fc8", "#0b3f86")
    canvas.polygon([(170, 128), (240, 72), (226, 128), (240, 184)], "#ffb340", "#e8671a")
    canvas.polygon([(84, 80), (128, 36), (172, 86)], "#ffb340", "#f0801f")
    canvas.polygon([(104, 172), (128, 214), (160, 168)], "#f0801f", "#d85a14")
    canvas.disc(108, 128, 88, 58, "#ffb03a", "#f0641a")
    for x, reach in ((92, 56), (148, 50)):
        canvas.polygon([(x - 10, 128 - reach), (x + 10, 128 - reach), (x + 16, 128), (x + 10, 128 + reach),
                        (x - 10, 128 + reach), (x - 4, 128)], "#ffffff", "#dfe8f2")  # fmt: skip
    canvas.disc(58, 114, 16, 16, "#ffffff")
    canvas.disc(54, 115, 9, 9, "#0d1626")
    canvas.line([(26, 146), (44, 150), (58, 144)], 7, "#8a2c0c")
    for x, y, radius in ((26, 68, 9), (40, 36, 12), (18, 16, 7)):
        canvas.disc(x, y, radius, radius, "#e8fbff", "#a9e6f5")
    return canvas.image


SCENES: dict[str, Callable[[], Image]] = {
    "sunset": _sunset,
    "house": _house,
    "sailing boat": _boat,
    "tree": _tree,
    "cat": _cat,
    "balloon": _balloon,
    "mountain": _mountain,
    "fish": _fish,
}
