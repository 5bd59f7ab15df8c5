"""Training at a GPU's speed: whether it computes what a CPU computes, and its steps per second."""

import torch

from nads_core.networks.architectures import Architecture
from nads_core.training import Recipe, train_networks


def _data(count: int, image_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return noise images (N, 1, H, W) and labels (N,), the same at every call."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(count, 1, image_size, image_size, generator=generator)
    return images, torch.arange(count) % 2


def loss_difference(
    architecture: Architecture,
    device: torch.device | str,
    *,
    steps: int = 50,
    batch_size: int = 32,
    image_size: int = 32,
    learning_rate: float = 0.005,
) -> float:
    """Return the largest relative difference of a training's losses from those of a CPU, in
    float32.

    Both start from the same weights and see the same data; convolutions do not round to TF32.

    Args:
        architecture: architecture of the network.
        device: device that is compared with the CPU.
        steps: number of steps.
        batch_size: number of images of a step.
        image_size: height and width of the images.
        learning_rate: rate of the first step. Training amplifies rounding: in 50 steps of a narrow
            ResNet-18 on a CPU the losses in float32 and float64 differ by up to 3e-5 at a rate of
            0.002, 4e-4 at 0.01, 5e-3 at 0.05.
    """
    recipe = Recipe(epochs=1, batch_size=batch_size, learning_rate=learning_rate)
    data = _data(steps * batch_size, image_size)

    def losses(place: torch.device | str) -> torch.Tensor:
        result = train_networks(
            architecture,
            [data],
            recipe=recipe,
            device=place,
            progress=False,
        )
        return result.losses[0].double()

    with torch.backends.cudnn.flags(allow_tf32=False):
        ours = losses(device)
    theirs = losses("cpu")
    return float(((ours - theirs) / theirs).abs().max())


def steps_per_second(
    architecture: Architecture,
    device: torch.device | str,
    *,
    mixed_precision: bool,
    batch_size: int = 128,
    image_size: int = 32,
    batches: int = 40,
) -> float:
    """Return the training steps per second.

    It is the time that further epochs add, so that what every training does once is not in it.
    Their number doubles until they take at least half as long as the shortest training, so that
    noise does not decide.

    Args:
        architecture: architecture of the network.
        device: device of the training.
        mixed_precision: whether layers run in bfloat16.
        batch_size: number of images of a step.
        image_size: height and width of the images.
        batches: number of steps of an epoch.
    """
    data = [_data(batches * batch_size, image_size)]

    def seconds(epochs: int) -> float:
        result = train_networks(
            architecture,
            data,
            recipe=Recipe(epochs=epochs, batch_size=batch_size),
            device=device,
            mixed_precision=mixed_precision,
            progress=False,
        )
        return float(result.seconds)

    seconds(1)  # warms up
    shortest, epochs = seconds(1), 2
    while (added := seconds(1 + epochs) - shortest) < shortest / 2:
        epochs *= 2
    return epochs * batches / added
