"""Tasks that no linear classifier learns, along two NADs: does their order tell what is learned?

The separable data of the paper have one direction, and the classes differ in its sign. Here the
label depends on the coordinates along two neighbouring NADs together: XOR, a ring, and the sign of
a product; and, as a control, a linear task of the same size.
``book/preregistered/nonlinear_tasks.toml`` has what was expected.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

import nads_core as nc
from nads_book.experiments import (
    Context,
    Row,
    Study,
    Unit,
    load_nads,
    train_network,
)
from nads_book.studies.presets import MODELS
from nads_core.directions import NADs
from nads_core.networks.architectures import Architecture
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training import Dataset

TASKS = ("xor", "ring", "product", "linear")
NONLINEAR = TASKS[:3]
NETWORKS = ("lenet", "cnn")
# First NADs, each with its successor; any beginning covers the order.
SPREAD = (0, 160, 20, 1000, 40, 4, 400, 80, 10)
SEEDS = (0, 1, 2)
MARGIN, NOISE_STD = 3.0, 1.0
NUM_TRAIN, NUM_TEST = 10_000, 4_000
RECIPE = replace(nc.SEPARABLE_RECIPE, epochs=4, batch_size=48, learning_rate=0.2)
NUM_NETWORKS = 4_096  # for the NADs of the small CNN


def coordinates(task: str, signs: Tensor, generator: torch.Generator) -> Tensor:
    """Return the coordinates along both directions, (N, 2).

    Samples n and n + N / 2 differ in their label alone: in a sign, or in the radius.

    Args:
        task: one of `TASKS`.
        signs: labels -1 or +1, (N,), those of the first half negative.
        generator: generator of all else.
    """
    half = len(signs) // 2
    free = (torch.randint(2, (half,), generator=generator) * 2.0 - 1).repeat(2)
    if task == "linear":
        return MARGIN * torch.stack([signs, free], 1)
    if task == "xor":
        return MARGIN * torch.stack([free, signs * free], 1)
    if task == "product":
        sizes = torch.randn(half, 2, generator=generator).abs().repeat(2, 1)
        return MARGIN * sizes * torch.stack([free, signs * free], 1)
    angles = (2 * math.pi * torch.rand(half, generator=generator)).repeat(2)
    # Radii of .5 and 1.5 have a mean square of 1.25; that of XOR is 2.
    radii = MARGIN * math.sqrt(2 / 1.25) * (1 + signs / 2)
    return radii[:, None] * torch.stack([angles.cos(), angles.sin()], 1)


def sampled(task: str, directions: Tensor, num_samples: int, seed: int) -> Dataset:
    """Draw images (N, 1, H, W) and labels (N,) of a task.

    Args:
        task: one of `TASKS`.
        directions: two orthonormal images, (2, 1, H, W).
        num_samples: an even number.
        seed: seed of noise and coordinates.
    """
    generator = torch.Generator().manual_seed(seed)
    basis = directions.flatten(1)  # (2, D)
    noise = NOISE_STD * torch.randn(num_samples // 2, basis.shape[1], generator=generator)
    noise = noise - noise @ basis.T @ basis
    labels = torch.arange(2).repeat_interleave(num_samples // 2)
    along = coordinates(task, 2.0 * labels - 1, generator)
    return (noise.repeat(2, 1) + along @ basis).unflatten(1, directions.shape[1:]), labels


def mean_frequency(directions: Tensor) -> float:
    """Return the mean frequency of images (n, 1, H, W), weighted by energy, in cycles per image."""
    energy = torch.fft.fft2(directions[:, 0]).abs().square().mean(0)
    ky, kx = (torch.fft.fftfreq(size, 1 / size) for size in energy.shape)
    distance = (ky[:, None].square() + kx.square()).sqrt()
    return float((energy * distance).sum() / energy.sum())


def nads_of(
    network: str,
    context: Context,
    architecture: Architecture | None = None,
    num_networks: int = NUM_NETWORKS,
) -> NADs:
    """Return the NADs of LeNet that ship, or those of other random networks, kept beside the
    results.

    Args:
        network: name of the networks.
        context: place of what is kept.
        architecture: architecture of the networks; by default that of their name.
        num_networks: number of random networks.
    """
    if network == "lenet":
        return load_nads("lenet", 2)

    def compute() -> tuple[Tensor, Tensor]:
        nads = nc.compute_nads(
            architecture or MODELS[network],
            (1, 32, 32),
            num_networks,
            estimator=nc.SmoothedGradient(16),
            seed=1,
            device="cpu",
            progress=False,
        )
        return nads.directions, nads.eigenvalues

    return NADs(*context.kept(f"nads of {network}, {num_networks}", compute))


class NonlinearTasks(Study):
    """Do NADs order what is learned from tasks that are not
    linear? See ``nonlinear_tasks.toml``.
    """

    name = "nonlinear-tasks"
    design = {"seed": SEEDS, "first": SPREAD, "network": NETWORKS, "task": TASKS}
    constants = {
        "margin": MARGIN,
        "noise_std": NOISE_STD,
        "num_train": NUM_TRAIN,
        "epochs": RECIPE.epochs,
    }

    def run(self, unit: Unit, context: Context) -> Row:
        nads, pair = nads_of(unit["network"], context), slice(unit["first"], unit["first"] + 2)
        directions, values = nads.directions[pair], nads.eigenvalues
        energy = float(values[pair].mean() / values.mean())
        own = seed_sequence(unit["seed"], 20, unit["first"], TASKS.index(unit["task"]))
        train, test = (
            sampled(unit["task"], directions, count, seed_sequence(own, part))
            for part, count in enumerate((NUM_TRAIN, NUM_TEST))
        )
        with seeded(seed_sequence(own, 2)):
            network = MODELS[unit["network"]].build(1, 32, 2)
        row = train_network(network, train, test, RECIPE, own % 2**31, context)
        frequency = round(mean_frequency(directions), 4)
        return row | {"energy": round(energy, 6), "frequency": frequency}
