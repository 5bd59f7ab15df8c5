"""Do energies order what is learned with other initial scales, widths and batch norm?

Energies are those of the second moment of input gradients (`nads_book.studies.geometry`) of random
networks of each kind. ``book/preregistered/recipes.toml`` has what was expected.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

import nads_core as nc
from nads_book.atlas.small_networks import SmallCNN, exchange_layers
from nads_book.experiments import (
    Context,
    Estimate,
    Estimates,
    Row,
    Rows,
    Scored,
    Study,
    Unit,
    rounded,
    train_along,
)
from nads_book.published.waves import LEARNED
from nads_book.statistics import (
    area_under_curve,
    resampled_correlations,
    with_interval,
)
from nads_book.studies.forgetting import waves
from nads_book.studies.geometry import BATCH, SIZE, input_gradients, inputs_of
from nads_book.studies.presets import SIZES
from nads_core.networks.architectures import downsample
from nads_core.runtime.seeds import seed_sequence, seeded

NETWORKS = ("lenet", "cnn")
# Options of `build`: width, whether there is batch norm, initial weights.
RECIPES: Mapping[str, tuple[float, bool, str]] = {
    "default": (1, False, "default"),
    "he": (1, False, "he"),
    "mup": (1, False, "mup"),
    "half width": (0.5, False, "default"),
    "twice the width": (2, False, "default"),
    "batch norm": (1, True, "default"),
}
NUM_RANDOM, NOISE_STD, FIRST_IDENTITY = 1_024, 3.0, 5 * 10**6
TRAINING = SIZES["laptop"].separable


def lenet(width: float, norm: bool) -> nn.Sequential:
    """Return a LeNet for images of 32 x 32, with all hidden widths multiplied."""
    first, second, third, fourth = (round(width * size) for size in (6, 16, 120, 84))
    layers: list[nn.Module] = []
    for before, channels in ((1, first), (first, second)):
        layers += [nn.Conv2d(before, channels, 5)]
        layers += [nn.BatchNorm2d(channels)] if norm else []
        layers += [nn.ReLU(), downsample("max")]
    layers += [nn.Flatten(), nn.Linear(25 * second, third), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(third, fourth), nn.ReLU(), nn.Linear(fourth, 2))


def build(network: str, recipe: str) -> nn.Module:
    """Return a new network of one recipe, with two logits.

    "he": normal weights of variance 2 / fan-in, biases 0; "mup": the same, but the weights of the
    last layer have variance 2 / fan-in^2, as maximal updates need (Yang and Hu, 2021).
    """
    width, norm, scales = RECIPES[recipe]
    if network == "lenet":
        model: nn.Module = lenet(width, norm)
    else:
        norms = "batch" if norm else "none"
        model = SmallCNN(1, SIZE, 2, width=round(16 * width), norms=norms)
    if scales != "default":
        exchange_layers(model, initialisation="he")
    if scales == "mup":
        *_, last = (layer for layer in model.modules() if isinstance(layer, nn.Linear))
        with torch.no_grad():
            last.weight /= last.in_features**0.5
    return model


def energies(network: str, recipe: str, directions: Tensor) -> Tensor:
    """Return the energies of directions (n, D) in random networks, relative to that of a mean
    direction, (n,). Batch norm takes the statistics of a batch of noise.
    """
    along, total = torch.zeros(len(directions), dtype=torch.float64), 0.0
    for number in range(NUM_RANDOM):
        inputs, generator = inputs_of(FIRST_IDENTITY + number)
        with seeded(seed_sequence(FIRST_IDENTITY + number, 0)):
            model = build(network, recipe).train()
        batch = torch.randn(BATCH, 1, SIZE, SIZE, generator=generator)
        first, second = input_gradients(model, inputs, batch)
        along += (directions @ first) * (directions @ second)
        total += float(first @ second)
    return along * directions.shape[1] / total


def orders(rules: Mapping[str, np.ndarray], accuracy: np.ndarray) -> dict[str, Estimate]:
    """Return the rank correlations of some rules with accuracies (n,), with intervals."""
    return {name: with_interval(resampled_correlations(x, accuracy)) for name, x in rules.items()}


def wave_frequencies() -> np.ndarray:
    """Return the frequencies of `waves`, (n,), in cycles per image."""
    return np.hypot(*np.array(waves()).T)


class Recipes(Study):
    """Do energies order what is learned with He and muP scales, other widths, and batch norm?"""

    name = "recipes"
    on_gpu = False
    design = {"seed": (0,), "network": NETWORKS, "recipe": RECIPES}

    def run(self, unit: Unit, context: Context) -> Row:
        network, recipe, seed = unit["network"], unit["recipe"], unit["seed"]
        directions = torch.stack([nc.fourier_direction(wave, size=SIZE) for wave in waves()])
        name = f"energies of {network}, {recipe}"
        found = context.kept(name, partial(energies, network, recipe, directions.flatten(1)))
        reached = train_along(
            partial(build, network, recipe),
            directions,
            NOISE_STD,
            TRAINING,
            seed,
            context,
            data_seeds=(seed_sequence(seed, 30) % 2**31, seed_sequence(seed, 31) % 2**31),
            paired=TRAINING.paired_test,
        )
        return reached | {"energies": rounded(found, 5, significant=True)}

    def judge(self, rows: Rows) -> Scored:
        """Return how energies order accuracies, and the registered criteria met."""
        estimates: Estimates = {}
        default = {row["network"]: row["energies"] for row in rows if row["recipe"] == "default"}
        for row in rows:
            accuracy, energy = np.array(row["test_accuracy"]), np.array(row["energies"])
            rules = {
                "energy": energy,
                "frequency": -wave_frequencies(),
                "energy of the default": np.array(default[row["network"]]),
            }
            found = estimates[f"{row['network']}, {row['recipe']}"] = orders(rules, accuracy)
            learned = accuracy > LEARNED
            found["area"] = (area_under_curve(energy, learned), np.nan, np.nan)
            found["learned"] = (float(learned.sum()), np.nan, np.nan)
        met = {
            name: min(estimates[cell][rule["by"]][0] for cell in rule["cells"]) >= rule["at_least"]
            for name, rule in self.registered["criteria"].items()
        }
        return Scored(estimates, met)
