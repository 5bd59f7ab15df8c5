"""Which predictions change when a component of the images along one NAD is removed or flipped."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nads_core.data.poisoning import require_fitting
from nads_core.directions import NADs
from nads_core.training import predicted_classes

FACTORS = {"remove": 1, "flip": 2}  # multiples of a component that are subtracted


@torch.no_grad()
def changed_predictions(
    network: nn.Module, images: Tensor, nads: NADs, indices: Sequence[int], change: str = "remove"
) -> Tensor:
    """Return the fraction of images whose predicted class changes when one NAD component is
    changed, per NAD.

    Args:
        network: module from images (N, C, H, W) to logits.
        images: normalised images (N, C, H, W).
        nads: NADs of single-channel images of the same size.
        indices: indices of the NADs to change, one at a time.
        change: "remove" to set the component of every channel to 0, "flip" to change its sign.

    Returns:
        (len(indices),) float64 in [0, 1].

    Raises:
        ValueError: if shapes disagree, an index does not exist, or the change is unknown.
    """
    require_fitting(images, nads)
    if change not in FACTORS:
        raise ValueError(f"unknown change {change!r}: choose 'remove' or 'flip'")
    missing = [index for index in indices if not 0 <= index < len(nads)]
    if missing:
        raise ValueError(f"there are {len(nads)} NADs, got the indices {missing}")
    images = images.to(next(network.parameters()).device)
    before = predicted_classes(network, images)  # (N,)
    shares = []
    for v in nads.directions[list(indices), 0].to(images):  # (H, W), for every channel
        moved = FACTORS[change] * (images * v).sum((2, 3), keepdim=True) * v
        shares.append(float((predicted_classes(network, images - moved) != before).double().mean()))
    return torch.tensor(shares, dtype=torch.float64)
