"""NADs of networks that a reader trains, beside stored ones."""

from dataclasses import replace

import torch
from matplotlib.figure import Figure
from torch import nn

import nads_core as nc
from nads_book import figures
from nads_book.pages.training.trajectories import known
from nads_core.directions import NADs

BATCH = 32


def trained_nads(wave: tuple[int, int], steps: int, num_networks: int, seed: int = 0) -> NADs:
    """Return the NADs of LeNets after some steps on a separable data set.

    Args:
        wave: (ky, kx) of the direction that separates the classes, cycles per image.
        steps: number of training steps; 0 for random weights.
        num_networks: number of networks.
        seed: seed of weights, data and batches.
    """
    direction = nc.fourier_direction(wave, size=32)
    data = nc.separable_dataset(
        direction, num_samples=BATCH * max(steps, 1), noise_std=1.0, seed=seed
    )
    recipe = replace(nc.SEPARABLE_RECIPE, epochs=1, batch_size=BATCH)

    def build() -> nn.Module:
        network = nc.LENET.build(1, 32, 2)
        if steps:
            order = int(torch.randint(2**31, ()))  # of the batches
            with torch.enable_grad():
                nc.train_network(network, data, recipe=recipe, seed=order, progress=False)
        return network

    return nc.compute_nads(
        build,
        num_networks,
        image_shape=(1, 32, 32),
        seed=seed,
        symmetries=(),
        equal_weights=True,
        output=lambda logits: logits[:, 1] - logits[:, 0],
        evaluation="factory",
        progress=False,
    )


def relative_energy(nads: NADs, wave: tuple[int, int]) -> float:
    """Return the energy of a wave, relative to the mean over all directions."""
    energy = nads.energy(nc.fourier_direction(wave, size=32)[None])
    return float(energy / nads.eigenvalues.mean())


def plot_your_training(wave: tuple[int, int], before: NADs, after: NADs) -> Figure:
    """Draw the leading direction of a reader's networks, beside stored ones.

    Args:
        wave: (ky, kx) that the reader's networks learned.
        before: NADs of untrained networks.
        after: NADs of trained networks.
    """
    pictures = {}
    for step in (0, 300):
        leading = known()["lenet", "learned wave", step]["leading"][0]
        pictures[f"stored, (0, 4),\nstep {step}"] = torch.tensor(leading).view(32, 32)
    for name, nads in (("before", before), ("after", after)):
        title = f"yours, {wave}, {name}\nenergy {relative_energy(nads, wave):.1f}"
        pictures[title] = nads.directions[0, 0]
    return figures.plot_signed_images(pictures)
