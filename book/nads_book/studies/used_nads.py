"""Which NADs does a network use that was trained on photos? VGG-11, and ResNet-18 of a quarter of
the width.

Both networks are trained with two seeds. For test photos we count which predictions change when a
component is removed or turned: along a NAD, along waves on which photos have as much energy, and
along random directions by the same amounts. ``book/preregistered/used_nads.toml`` has what was
expected.
"""

import numpy as np
import torch
from torch import Tensor, nn

import nads_core as nc
from nads_book.analysis.prediction_changes import share_changed
from nads_book.analysis.statistics import student_mean
from nads_book.atlas.entries import ATLAS
from nads_book.experiments import (
    PHOTO_RECIPE,
    Context,
    Estimates,
    Facts,
    FileStudy,
    Met,
    Row,
    Rows,
    Scored,
    Unit,
    matching,
    train_on_photos,
)
from nads_book.experiments.stored import load_nads
from nads_core.networks.architectures import Architecture
from nads_core.training import predicted_classes

# With the names of their NADs: of ResNet-18 those of the full width ship, which the quarter of it
# nearly shares
NETWORKS: dict[str, tuple[Architecture, str]] = {
    "resnet": (ATLAS["resnet"].architecture, "resnet18"),
    "vgg11": (nc.VGG11, "vgg11"),
}
NUM_TRAIN, NUM_TEST, NUM_ASKED, SEEDS = 10_000, 5_000, 2_000, (0, 1)
INDICES = (0, 1, 2, 4, 7, 11, 17, 26, 40, 60, 90, 135, 200, 300, 450, 680, 1_000)
SAME, MORE = (0.8, 1.25), 1.2  # ratios of both seeds by which the rule decides
LAST = 40  # of the early NADs, which the registered rule is about
NUM_CONTROLS = 4  # waves of the nearest energy, and random directions, for each NAD
FACTORS = {"remove": 1.0, "turn": 2.0}


def photo_energies(images: Tensor, directions: Tensor) -> Tensor:
    """Return the mean square of the images' components, over images and channels, (k,).

    Args:
        images: normalised images (N, 3, 32, 32).
        directions: (k, 1, 32, 32), of norm 1.
    """
    return (images.flatten(2) @ directions.flatten(1).T).square().mean((0, 1))


def measured(name: str, network: nn.Module, images: Tensor, seed: int) -> list[Facts]:
    """Return a record for each NAD: shares along it, along waves of its photo energy, and along
    random directions.
    """
    nads, waves = load_nads(name), nc.fourier_basis(32)[0].to(images)
    before = predicted_classes(network, images)

    def changed(own: Tensor, along: Tensor) -> dict[str, float]:
        return {
            name: share_changed(network, images, before, own, along, factor)
            for name, factor in FACTORS.items()
        }

    energies = photo_energies(images, waves)
    generator, records = torch.Generator().manual_seed(seed), []
    for index in INDICES:
        nad = nads.directions[index].to(images)
        energy = photo_energies(images, nad[None])[0]
        nearest = (energies / energy).log().abs().argsort()[:NUM_CONTROLS]
        random = torch.randn(NUM_CONTROLS, 1, 32, 32, generator=generator).to(images)
        random /= random.flatten(1).norm(dim=1)[:, None, None, None]
        along = {
            "wave": [changed(waves[k], waves[k]) for k in nearest],
            "random": [changed(nad, direction) for direction in random],
        }
        means = {
            kind: {c: sum(s[c] for s in shares) / len(shares) for c in FACTORS}
            for kind, shares in along.items()
        }
        own = changed(nad, nad)
        records.append({"index": index, "energy": float(energy), "nad": own, **means})
    return records


def ratios(
    rows: Rows, network: str, control: str, how: str = "turn", early: bool = True
) -> np.ndarray:
    """Return by which factors NADs change more predictions than a control does, (seeds, NADs).

    Args:
        rows: rows of the results file.
        network: name in `NETWORKS`.
        control: "wave" or "random".
        how: one of `FACTORS`.
        early: whether to return NADs 0 to 40, which the rule is about, or the later ones.
    """
    return np.array(
        [
            [
                one["nad"][how] / one[control][how]
                for one in row["directions"]
                if (one["index"] <= LAST) is early
            ]
            for row in matching(rows, network=network)
        ]
    )


class UsedNADs(FileStudy):
    """Which NADs does a network use that was trained on photos? Two networks, two seeds
    (``used_nads.toml``).
    """

    name = "used-nads"
    design = {"seed": SEEDS, "network": NETWORKS}
    on_photos = True
    constants = {"num_asked": NUM_ASKED, "epochs": PHOTO_RECIPE.epochs, "num_train": NUM_TRAIN}

    def run(self, unit: Unit, context: Context) -> Row:
        (architecture, nads), seed = NETWORKS[unit["network"]], unit["seed"]
        network, row, images = train_on_photos(
            architecture.build, NUM_TRAIN, NUM_TEST, seed, context
        )
        images = images[:NUM_ASKED].to(context.device)
        return {
            "accuracy": row["test_accuracy"],
            "train_accuracy": row["train_accuracy"],
            "directions": measured(nads, network, images, seed),
        }

    def score(self, rows: Rows) -> Scored:
        """Apply the registered rule to each network: geometric means over NADs 0 to 40, by seed."""
        self.require_complete(rows)
        estimates: Estimates = {}
        met: Met = {}
        for network in NETWORKS:
            logs = {name: np.log(ratios(rows, network, name)) for name in ("wave", "random")}
            estimates[network] = {  # logs are (seeds, NADs)
                name: tuple(np.exp(student_mean(one.mean(0)))) for name, one in logs.items()
            }
            seeds = np.exp(logs["wave"].mean(1))
            same = (seeds > SAME[0]) & (seeds < SAME[1])
            met[f"{network}: does not use NADs more"] = bool(same.all())
            met[f"{network}: uses NADs more"] = bool((seeds > MORE).all())
        return Scored(estimates, met)
