"""NADs of networks that a reader trains, beside stored ones."""

import torch
from matplotlib.figure import Figure

import nads_core as nc
from nads_book import figures
from nads_book.pages.training.trajectories import known
from nads_book.report import fixed
from nads_core.directions import NADs


def relative_energy(nads: NADs, wave: tuple[int, int]) -> float:
    """Return the energy of a wave, relative to the mean over all directions."""
    energy = nads.energy(nc.fourier_direction(wave, size=32)[None])
    return float(energy / nads.eigenvalues.mean())


def plot_your_training(wave: tuple[int, int], before: NADs, after: NADs) -> Figure:
    """Draw the leading direction of a reader's networks, beside stored ones.

    Args:
        wave: (ky, kx) that the reader's networks learned.
        before: NADs of random networks.
        after: NADs of trained networks.
    """
    pictures = {}
    for step in (0, 300):
        leading = known()["lenet", "learned wave", step]["leading"][0]
        pictures[f"stored, (0, 4),\nstep {step}"] = torch.tensor(leading).view(32, 32)
    for name, nads in (("before", before), ("after", after)):
        title = f"yours, {wave}, {name}\nenergy {fixed(relative_energy(nads, wave), 1)}"
        pictures[title] = nads.directions[0, 0]
    return figures.plot_signed_images(pictures)
