"""The first-step law put to the test: predictions before training, and the authors' NADs."""

import math
from functools import cache

import numpy as np

import nads_core as nc
from nads_book.analysis import published, statistics
from nads_book.analysis.prediction import Responses, informative, predicted_accuracy
from nads_book.analysis.statistics import means, student_mean
from nads_book.evidence import Estimate, Evidence, Facts, evidence, exact_share
from nads_book.experiments import load_study
from nads_book.report import estimate, fixed, markdown_table

LAWS = {"law": "first-step law", "without_gain": "refitted, no gain", "with_gain": "with the gain"}
TRAINED = "law-trained.json"
FACTS: Facts = {"size": "paper", "num_seeds": 1}


# Predicted before training: samples and noise


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


def predicted(law: str) -> np.ndarray:
    """Return the predictions of a law, a key of `LAWS`, in the order of `predictions`."""
    return np.array([row[law] for row in predictions().values()])


def measured() -> np.ndarray:
    """Return the accuracies in the same order."""
    return np.array([reached()[0][cell] for cell in predictions()])


def improvement(before: str, after: str) -> Estimate:
    """Return by how many points one law is closer: NADs and settings are drawn again."""
    said = informative(measured())
    off = [100 * np.abs(predicted(law) - measured()) for law in (before, after)]
    nads = np.array([nad for nad, *_ in predictions()])
    cells = np.array([cell for _, *cell in predictions()])
    gained = off[0] - off[1]
    low, high = statistics.resampled_crossed_mean(gained, nads, cells, said)
    return float(gained[said].mean()), low, high


def gain_open() -> Evidence:
    """Decide whether the gain brings predictions along twelve NADs closer."""
    count = len(load_study(TRAINED)["rows"]) - len(reached()[1])
    facts = FACTS | {"num_trainings": count}
    return evidence(True, *improvement("without_gain", "with_gain"), null=0, **facts)


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


def gain_pairs() -> Evidence:
    """Decide whether the NAD of a larger gain is ahead of its partner by more than the law says."""
    # NADs follow in pairs, the louder one first: (pairs, 2, settings).
    ours, law = (each.reshape(6, 2, -1) for each in (measured(), predicted("law")))
    beyond = np.subtract(*(ours - law).swapaxes(0, 1))  # (pairs, settings)
    chosen = np.array(informative(ours).all(1))
    right = [gap[use].mean() > 0 for gap, use in zip(beyond, chosen, strict=True) if use.any()]
    return evidence(True, *exact_share(right), null=0.5, **FACTS)


def more_steps() -> Evidence:
    """Decide whether LeNets with 1,000 samples gain from training ten times as long."""
    usual, longer = reached()
    gained = student_mean([100 * (value - usual[cell]) for cell, value in longer.items()])
    facts = FACTS | {"num_trainings": 2 * len(longer)}
    return evidence(gained[0] > 3, *gained, null=0, **facts)


# Along the authors' own directions


@cache
def authors_laws() -> dict[str, tuple[Responses, np.ndarray]]:
    """Return responses of random networks and accuracies along the authors' NADs."""
    return {
        name: (
            Responses(np.array(one["energies"]), np.array(one["squares"]), 1.0),
            np.array(list(published.nad_accuracies(name).values())),
        )
        for name, one in load_study("law-published.json")["laws"].items()
    }


@cache
def best_noise(name: str) -> float:
    """Return the σ at which the law fits the authors' accuracies best."""
    responses, accuracies = authors_laws()[name]

    def error(std: float) -> float:
        law = predicted_accuracy(responses.signal_to_noise(10_000, std))
        return float(np.square(law - accuracies).mean())

    return float(min(np.arange(0.3, 5.01, 0.05), key=error))


def vgg_best_std() -> Evidence:
    """Decide whether the law needs twice the σ for the authors' VGG-11."""
    ratio = best_noise("vgg11") / max(best_noise("lenet"), best_noise("resnet18"))
    return evidence(ratio > 2, ratio, size="paper")


def vgg_along_theirs() -> Evidence:
    """Decide whether our VGG-11 scores more than theirs along two of three of the authors' NADs."""
    theirs, rows = published.nad_accuracies("vgg11"), load_study("law-published.json")["rows"]
    above = sorted(
        100 * (row["test_accuracy"] - theirs[row["index"]]) for row in rows if row["noise_std"] == 1
    )
    holds = (sum(gap > 20 for gap in above), len(above)) == (2, 3)
    return evidence(holds, above[-2], size="laptop", num_seeds=1, num_trainings=len(rows))


def no_one_curve() -> Evidence:
    """Decide whether the authors' LeNet and ResNet-18 need different scales of the law."""
    places = []
    for name in ("lenet", "resnet18"):
        responses, accuracies = authors_laws()[name]
        ratio = responses.signal_to_noise(10_000, 1.0)
        places.append(statistics.crossing(ratio, accuracies, 0.75) or math.nan)
    factor = max(places) / min(places)
    return evidence(factor > 1.5, factor, size="paper")


# Tables of the lab notes


def table_of_predictions() -> str:
    """Return how far three laws were off, and how much closer each is than the one before."""
    said, rows, before = informative(measured()), [], None
    for law, label in LAWS.items():
        off = 100 * np.abs(predicted(law) - measured())
        closer = estimate(improvement(before, law), 1) if before else "–"
        rows.append([label, fixed(off[said].mean()), fixed(off.mean()), closer])
        before = law
    head = [f"{said.sum()} between chance and perfect", f"all {len(said)}", "closer by (95 %)"]
    return markdown_table(rows, ["points", *head])


LAB_TABLES = {
    "84 accuracies predicted before training": table_of_predictions,
}
