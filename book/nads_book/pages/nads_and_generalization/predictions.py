"""The first-step law put to the test: predictions before training, and the authors' NADs."""

from functools import cache

import numpy as np

import nads_core as nc
from nads_book.analysis.statistics import means
from nads_book.evidence import Evidence, Facts, evidence, exact_share
from nads_book.experiments import load_study

TRAINED = "law-trained.json"
FACTS: Facts = {"size": "paper", "num_seeds": 1}


Cell = tuple[int, int, float]  # NAD, training samples, sigma


@cache
def reached() -> tuple[dict[Cell, float], dict[Cell, float]]:
    """Return accuracies by NAD, samples and noise, after the usual epochs and ten times as many."""
    epochs = nc.SEPARABLE_RECIPE.epochs
    usual, longer = (
        means(
            ((row["index"], row["num_train"], row["noise_std"]), row["accuracy"])
            for row in load_study(TRAINED)["rows"]
            if (row.get("epochs", epochs) == epochs) is as_usual
        )
        for as_usual in (True, False)
    )
    return usual, longer


@cache
def predictions() -> dict[Cell, dict[str, float]]:
    """Return what was predicted for each NAD, number of samples and noise that was trained."""
    rows = load_study("law.json")["prediction"]["rows"]
    found = {(row["index"], row["num_train"], row["noise_std"]): row for row in rows}
    return {cell: row for cell, row in found.items() if cell in reached()[0]}


def samples_and_noise() -> Evidence:
    """Decide whether few samples with little noise are worse than the law says, for most NADs."""
    usual, longer = reached()
    few, many = (1_000, 1.0), (10_000, 2.0)
    nads = [nad for nad in dict.fromkeys(nad for nad, *_ in predictions()) if (nad, *few) in usual]
    law = [predictions()[nad, *few]["law"] > predictions()[nad, *many]["law"] for nad in nads]
    # Few samples after the usual epochs, and after ten times as many.
    right, as_long = (
        np.equal(law, [few_of[nad, *few] > usual[nad, *many] for nad in nads])
        for few_of in (usual, longer)
    )
    share, facts = exact_share(right), FACTS | {"num_trainings": 2 * len(nads)}
    return evidence(max(share[0], as_long.mean()) < 0.5, *share, null=0.5, **facts)
