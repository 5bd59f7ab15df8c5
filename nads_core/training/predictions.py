"""What a network takes images for, and which of its answers hang on a NAD."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nads_core.data.poisoning import require_fitting
from nads_core.directions import NADs


def predicted_classes(network: nn.Module, images: Tensor, batch_size: int = 1_000) -> Tensor:
    """Return the class with the largest logit for each image, in eval mode and on the network's device.

    Args:
        network: maps (N, C, H, W) to logits (N, classes); afterwards it is in the mode in which it was.
        images: (N, C, H, W), as the network takes them (normalised), on any device.
        batch_size: images at a time.

    Returns:
        (N,) int64, on the CPU.
    """
    device = next(network.parameters()).device
    training = network.training
    network.eval()
    with torch.no_grad():
        classes = [network(part.to(device)).argmax(1).cpu() for part in images.split(batch_size)]
    network.train(training)
    return torch.cat(classes)


@torch.no_grad()
def changed_predictions(
    network: nn.Module, images: Tensor, nads: NADs, indices: Sequence[int], change: str = "remove"
) -> Tensor:
    """Return the share of images whose predicted class changes with one NAD component, for each of some NADs.

    Args:
        network: maps (N, C, H, W) to logits.
        images: (N, C, H, W), as the network takes them (normalised).
        nads: NADs of single-channel images of the same size.
        indices: indices of the NADs, which are processed separately.
        change: "remove" sets the component of every channel to 0, "flip" turns its sign.

    Returns:
        (len(indices),) float64 in [0, 1].

    Raises:
        ValueError: if shapes disagree, an index does not exist, or the change is unknown.
    """
    require_fitting(images, nads)
    if change not in ("remove", "flip"):
        raise ValueError(f"unknown change {change!r}: choose 'remove' or 'flip'")
    missing = [index for index in indices if not 0 <= index < len(nads)]
    if missing:
        raise ValueError(f"there are {len(nads)} NADs, got the indices {missing}")
    images = images.to(next(network.parameters()).device)
    before, shares = predicted_classes(network, images), []  # classes (N,)
    for index in indices:
        direction = nads.directions[index, 0].to(images)  # (H, W), for every channel
        component = (images * direction).sum((2, 3), keepdim=True) * direction  # (N, C, 1, 1) x (H, W)
        after = predicted_classes(network, images - (1 if change == "remove" else 2) * component)
        shares.append((after != before).double().mean())
    return torch.stack(shares)
