"""Test photos with small components along the first two NADs: do predictions change without them?

A reviewer's question. Photos are ordered by the norm of these components; in each tenth of them
both components are removed, or flipped, and the predictions counted that change.
``book/preregistered/small_components.toml`` has what was expected.
"""

import itertools

import numpy as np
import torch
from torch import Tensor

import nads_core as nc
from nads_book.analysis.statistics import student_mean
from nads_book.experiments import (
    PHOTO_RECIPE,
    Context,
    Estimates,
    FileStudy,
    Met,
    Row,
    Rows,
    Scored,
    Unit,
    less,
    load_nads,
    rounded,
    train_on_photos,
    within,
    without_intervals,
)
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import predicted_classes

NUM_TRAIN, NUM_TEST, SEEDS = 10_000, 10_000, (0, 1, 2)
NUM_NADS, NUM_GROUPS, NUM_EXAMPLES = 2, 10, 8
FACTORS = {"remove": 1.0, "flip": 2.0}


def components(images: Tensor, directions: Tensor) -> Tensor:
    """Return the components of images (N, C, H, W) along directions (k, 1, H, W): (N, C, k)."""
    return images.flatten(2) @ directions.flatten(1).T


def without(images: Tensor, amounts: Tensor, directions: Tensor, factor: float) -> Tensor:
    """Return images less a multiple of amounts (N, C, k) along directions (k, 1, H, W)."""
    change = (amounts @ directions.flatten(1)).view_as(images)
    return images - factor * change


def random_directions(seed: int) -> Tensor:
    """Return two orthonormal random images, (k, 1, 32, 32)."""
    generator = torch.Generator().manual_seed(seed_sequence(seed, 23))
    drawn = torch.randn(1_024, NUM_NADS, generator=generator)
    return torch.linalg.qr(drawn)[0].T.reshape(NUM_NADS, 1, 32, 32)


def groups_of(norms: Tensor) -> list[Tensor]:
    """Return the positions of ten equal groups, in ascending order of the norms (N,)."""
    return list(norms.argsort().chunk(NUM_GROUPS))


@torch.no_grad()
def answers(
    network: torch.nn.Module, images: Tensor, directions: Tensor, controls: Tensor
) -> tuple[list[Row], list[Row]]:
    """Return what changes in each group of photos, and examples of the first group.

    Args:
        network: module from normalised images to logits.
        images: normalised images (N, C, H, W).
        directions: first NADs, (k, 1, H, W).
        controls: equally many random directions, changed by the same amounts.
    """
    before = predicted_classes(network, images)
    amounts = components(images, directions)
    norms = amounts.flatten(1).norm(dim=1)
    relative = norms / images.flatten(1).norm(dim=1)
    after = {
        kind: {
            name: predicted_classes(network, without(images, amounts, along, factor))
            for name, factor in FACTORS.items()
        }
        for kind, along in (("nads", directions), ("random", controls))
    }
    rows, groups = [], groups_of(norms)
    for group in groups:
        row: Row = {
            kind: {name: (new != before)[group].double().mean() for name, new in classes.items()}
            for kind, classes in after.items()
        }
        row |= {"norm": norms[group].mean(), "relative": relative[group].mean()}
        rows.append(rounded(row))
    classes = {"photo": torch.arange(len(images)), "before": before, **after["nads"]}
    first = groups[0]
    moved = first[(after["nads"]["flip"] != before)[first]][:NUM_EXAMPLES]
    examples = [
        {name: int(values[photo]) for name, values in classes.items()}
        | {"relative": rounded(relative[photo])}
        for photo in moved
    ]
    return rows, examples


class SmallComponents(FileStudy):
    """Do predictions change without small components along
    two NADs? (``small_components.toml``).
    """

    name = "small-components"
    design = {"network": ["lenet"], "seed": SEEDS}
    on_photos = True
    constants = {"num_train": NUM_TRAIN, "num_test": NUM_TEST, "epochs": PHOTO_RECIPE.epochs}

    def run(self, unit: Unit, context: Context) -> Row:
        network, row, images = train_on_photos(
            nc.LENET.build, NUM_TRAIN, NUM_TEST, unit["seed"], context
        )
        directions = load_nads("lenet", 2).directions[:NUM_NADS]
        controls = random_directions(unit["seed"])
        groups, examples = answers(network, images, directions, controls)
        return less(row, "train_accuracy") | {"groups": groups, "examples": examples}

    def score(self, rows: Rows) -> Scored:
        """Return the shares in the first and last group with Student's intervals, and the
        registered criteria met.
        """
        criteria = self.registered["criteria"]
        if not rows:
            return Scored({}, dict.fromkeys(criteria))
        estimates: Estimates = {}
        for kind, change in itertools.product(("nads", "random"), FACTORS):
            table = shares(rows, kind, change)
            estimates[f"{kind}, {change}"] = {
                f"group {g}": student_mean(table[:, g]) for g in (0, NUM_GROUPS - 1)
            }
        change = 100 * float(np.mean([row["groups"][0]["relative"] for row in rows]))
        estimates["change of photos in the first group (% of the norm)"] = without_intervals(
            {"components removed": change, "components flipped": 2 * change}
        )
        met: Met = {}
        for name, rule in criteria.items():
            value, random = (
                shares(rows, kind, rule["change"])[:, rule["group"]].mean()
                for kind in ("nads", "random")
            )
            above = "times_random" not in rule or value > rule["times_random"] * random
            met[name] = bool(above) and within(value, rule)
        return Scored(estimates, met)


def shares(rows: Rows, kind: str, change: str) -> np.ndarray:
    """Return shares of predictions that change, (seeds, groups).

    Args:
        rows: rows of the study.
        kind: "nads" or "random".
        change: "remove" or "flip".
    """
    return np.array([[group[kind][change] for group in row["groups"]] for row in rows])
