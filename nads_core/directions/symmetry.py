"""Maps of the image that leave the distribution of networks unchanged, and averages over the group they generate."""

from __future__ import annotations

from torch import Tensor

from nads_core.networks.architectures import SYMMETRIES


def require_symmetries(image_shape: tuple[int, int, int], symmetries: tuple[str, ...]) -> None:
    """Raise a ValueError unless images of this shape have these symmetries."""
    unknown = set(symmetries) - set(SYMMETRIES)
    if unknown:
        raise ValueError(f"unknown symmetries {sorted(unknown)}: choose from {SYMMETRIES}")
    _, height, width = image_shape
    if "transpose" in symmetries and height != width:
        raise ValueError(f"a transposed image needs height = width, got {height} x {width}")


def symmetrize(matrix: Tensor, image_shape: tuple[int, int, int], symmetries: tuple[str, ...]) -> Tensor:
    """Average a (D, D) second moment over the group of image maps that ``symmetries`` generate.

    Networks that are equally likely before and after a map of the input have a second moment that commutes with it:
    the average has the same expectation and less noise.

    Args:
        matrix: (D, D), D = C * H * W.
        image_shape: (C, H, W).
        symmetries: of "flip_rows", "flip_columns", "transpose".
    """
    require_symmetries(image_shape, symmetries)
    maps = set(symmetries)
    if "transpose" in maps and len(maps) == 2:  # conjugating one flip by the transpose gives the other
        maps = set(SYMMETRIES)
    # Rows and columns of the matrix are pixels, (C, H, W) each: a map of the image acts on both alike. The average over
    # the group is that over {identity, map} for one map after another: each element is one product of them.
    tensor = matrix.reshape(*image_shape, *image_shape)  # (C, H, W, C, H, W)
    if "flip_rows" in maps:
        tensor = (tensor + tensor.flip(1, 4)) / 2
    if "flip_columns" in maps:
        tensor = (tensor + tensor.flip(2, 5)) / 2
    if "transpose" in maps:
        tensor = (tensor + tensor.permute(0, 2, 1, 3, 5, 4)) / 2
    return tensor.reshape(matrix.shape)
