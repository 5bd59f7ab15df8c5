"""Which predictions of a trained network change when photos lose, or turn, some components?

Components along NADs, and controls of the same size: along random directions, and along waves on
which photos have as much energy. ``book/preregistered/used_nads.toml`` has what was expected.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

import nads_core as nc
from nads_book.atlas.entries import ATLAS
from nads_book.experiments import (
    PHOTO_RECIPE,
    Context,
    Row,
    Rows,
    Scored,
    Study,
    Unit,
    load_nads,
    train_on_photos,
)
from nads_book.statistics import student_mean
from nads_core.networks.architectures import Architecture
from nads_core.training import predicted_classes

NUM_TRAIN, SIZE = 10_000, 32
# With the names of their NADs: of ResNet-18 those of the full width ship, which the quarter of it
# nearly shares
NETWORKS: dict[str, tuple[Architecture, str]] = {
    "resnet": (ATLAS["resnet"].architecture, "resnet18"),
    "vgg11": (nc.VGG11, "vgg11"),
}
SEEDS, NUM_ASKED = (0, 1), 2_000
INDICES = (0, 1, 2, 4, 7, 11, 17, 26, 40, 60, 90, 135, 200, 300, 450, 680, 1_000)
SAME, MORE = (0.8, 1.25), 1.2  # ratios of both seeds by which the rule decides
LAST = 40  # of the early NADs, which the registered rule is about
NUM_CONTROLS = 4  # waves of the nearest energy, and random directions, for each NAD


def changed_shares(
    network: nn.Module, images: Tensor, own: Tensor, along: Tensor, factors: Mapping[str, float]
) -> dict[str, float]:
    """Return the shares of predictions that change when multiples of components are subtracted.

    Args:
        network: module from normalised images to logits.
        images: normalised images (N, C, H, W).
        own: directions (k, D) whose components say by how much.
        along: directions (k, D) that are changed: the same, or others for a control.
        factors: multiples by name: 1 removes a component, 2 turns it.
    """
    before = predicted_classes(network, images)
    change = ((images.flatten(2) @ own.T) @ along).view_as(images)
    after = {name: predicted_classes(network, images - x * change) for name, x in factors.items()}
    return {name: float((one != before).double().mean()) for name, one in after.items()}


class UsedNADs(Study):
    """Which NADs does a network use that was trained on photos? Two networks, two seeds
    (``used_nads.toml``).
    """

    name = "used-nads"
    size = "narrow"
    design = {"seed": SEEDS, "network": NETWORKS}
    on_photos = True
    constants = {"num_asked": NUM_ASKED, "epochs": PHOTO_RECIPE.epochs, "num_train": NUM_TRAIN}

    def run(self, unit: Unit, context: Context) -> Row:
        (architecture, name), seed = NETWORKS[unit["network"]], unit["seed"]
        network, row, images = train_on_photos(architecture.build, NUM_TRAIN, 5_000, seed, context)
        images = images[:NUM_ASKED].to(context.device)
        nads, waves = (
            directions.flatten(1).to(images)
            for directions in (load_nads(name).directions, nc.fourier_basis(SIZE)[0])
        )
        generator = torch.Generator().manual_seed(seed)

        def energy(directions: Tensor) -> Tensor:
            return (images.flatten(2) @ directions.T).square().mean((0, 1))  # (k,)

        def mean_shares(pairs: list[tuple[Tensor, Tensor]]) -> dict[str, float]:
            factors = {"remove": 1.0, "turn": 2.0}
            found = [changed_shares(network, images, own, along, factors) for own, along in pairs]
            return {key: sum(one[key] for one in found) / len(found) for key in factors}

        directions = []
        for index in INDICES:
            nad = nads[[index]]
            nearest = (energy(waves) / energy(nad)).log().abs().argsort()[:NUM_CONTROLS]
            random = torch.randn(NUM_CONTROLS, SIZE**2, generator=generator).to(images)
            random /= random.norm(dim=1, keepdim=True)
            directions.append(
                {
                    "index": index,
                    "energy": float(energy(nad)),
                    "nad": mean_shares([(nad, nad)]),
                    "wave": mean_shares([(waves[[k]], waves[[k]]) for k in nearest.tolist()]),
                    "random": mean_shares([(nad, one[None]) for one in random]),
                }
            )
        return {"accuracy": row["test_accuracy"], "directions": directions}

    def judge(self, rows: Rows) -> Scored:
        """Apply the registered rule to each network: geometric means over NADs 0 to 40, by seed."""
        estimates, met = {}, {}
        for network in NETWORKS:
            own = [row for row in rows if row["network"] == network]
            logs = {name: np.log(ratios(own, name)) for name in ("wave", "random")}
            estimates[network] = {  # logs are (seeds, NADs)
                name: tuple(np.exp(student_mean(one.mean(0)))) for name, one in logs.items()
            }
            seeds = np.exp(logs["wave"].mean(1))
            same = (seeds > SAME[0]) & (seeds < SAME[1])
            met[f"{network}: does not use NADs more"] = bool(same.all())
            met[f"{network}: uses NADs more"] = bool((seeds > MORE).all())
        return Scored(estimates, met)


def ratios(rows: Rows, control: str) -> np.ndarray:
    """Return by which factors early NADs change more predictions than a control, (seeds, NADs).

    Args:
        rows: rows of a network of `UsedNADs`.
        control: "wave" or "random".
    """
    found = [[one for one in row["directions"] if one["index"] <= LAST] for row in rows]
    return np.array([[one["nad"]["turn"] / one[control]["turn"] for one in row] for row in found])
