"""Directions hidden in noise with the covariance of photos, in place of white noise.

``book/preregistered/photo_noise.toml`` has what was expected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

import nads_core as nc
from nads_book.experiments import (
    Context,
    Estimates,
    Row,
    Rows,
    Scored,
    Study,
    Unit,
    rounded,
    train_each,
)
from nads_book.studies.forgetting import waves
from nads_book.studies.geometry import SIZE, photos
from nads_book.studies.presets import SIZES
from nads_book.studies.recipes import build, energies, orders, wave_frequencies
from nads_core.runtime.seeds import seed_sequence

NOISE_STD = 3.0
NADS = np.unique(np.geomspace(1, 1_001, 19).round().astype(int))[:16] - 1
TRAINING = SIZES["laptop"].separable


@dataclass(frozen=True)
class HiddenInNoise(Sequence[tuple[Tensor, Tensor]]):
    """x = +-v + w - (w . v) v for each of some directions v (B, 1, H, W), with noise w
    (N, 1, H, W) and labels (N,).
    """

    directions: Tensor
    noise: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.directions)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        v = self.directions[index]
        along = 2.0 * self.labels - 1 - (self.noise * v).sum((1, 2, 3))
        return self.noise + along[:, None, None, None] * v, self.labels


def components(kind: str) -> Tensor:
    """Return A with A^T A = S, the covariance of the noise, of trace 9 D, (n, D)."""
    images = photos()[0]
    images = images - images.mean(0)
    if kind == "moved":  # by half of the sampling rate
        images = images * (1.0 - 2 * (torch.arange(SIZE)[:, None] + torch.arange(SIZE)).fmod(2))
    found = images.flatten(1)
    return found * NOISE_STD / found.square().sum(0).mean().sqrt()


def hidden(directions: Tensor, parts: Tensor, count: int, seed: int, paired: bool) -> HiddenInNoise:
    """Return datasets of ``count`` samples; paired, each noise occurs with both labels."""
    generator = torch.Generator().manual_seed(seed)
    drawn = count // 2 if paired else count
    noise = torch.randn(drawn, len(parts), generator=generator) @ parts
    labels = torch.randint(2, (drawn,), generator=generator)
    if paired:
        noise, labels = noise.repeat(2, 1), torch.cat([labels, 1 - labels])
    return HiddenInNoise(directions, noise.view(-1, 1, SIZE, SIZE), labels)


class PhotoNoise(Study):
    """Does the variance of the noise along a direction matter for what is learned?"""

    name = "photo-noise"
    on_gpu = False
    on_photos = True

    def units(self) -> list[Unit]:
        cells = (("lenet", "waves"), ("cnn", "waves"), ("lenet", "nads"))
        return [
            {"seed": 0, "network": network, "directions": directions, "noise": noise}
            for network, directions in cells
            for noise in ("photos", "moved")
        ]

    def run(self, unit: Unit, context: Context) -> Row:
        network, seed = unit["network"], unit["seed"]
        if unit["directions"] == "waves":
            directions = torch.stack([nc.fourier_direction(wave, size=SIZE) for wave in waves()])
        else:
            directions = torch.as_tensor(nc.load_nads("lenet").directions[NADS]).float()
        flat, parts = directions.flatten(1), components(unit["noise"])
        factory = partial(build, network, "default")
        train, test = (
            hidden(directions, parts, count, seed_sequence(seed, 40 + paired) % 2**31, paired)
            for count, paired in ((TRAINING.num_train, False), (TRAINING.num_test, True))
        )
        reached = train_each(factory, train, test, TRAINING.recipe, seed, context)
        name = f"energies of {network}, {unit['directions']}"
        found = context.kept(name, partial(energies, network, "default", flat))
        return reached | {
            "energies": rounded(found, 5, significant=True),
            "variances": rounded((flat @ parts.T).square().sum(1), 5, significant=True),
        }

    def judge(self, rows: Rows) -> Scored:
        """Return how each rule orders accuracies, and the registered criteria met; None where the
        interval contains the limit.
        """
        estimates: Estimates = {}
        for row in rows:
            energy, variance, accuracy = (
                np.array(row[name]) for name in ("energies", "variances", "test_accuracy")
            )
            rules = {
                "energy": energy,
                "energy times variance": energy * variance,
                "energy over variance": energy / variance,
                "little variance": -variance,
            }
            if row["directions"] == "waves":
                rules["frequency"] = -wave_frequencies()
            cell = f"{row['network']}, {row['directions']}, {row['noise']}"
            estimates[cell] = orders(rules, accuracy)
        met = {}
        for name, rule in self.registered["criteria"].items():
            value, low, high = estimates[rule["cell"]][rule["by"]]
            inside = low < rule["at_least"] <= high
            met[name] = None if inside else value >= rule["at_least"]
        return Scored(estimates, met)
