"""The score of the experiment on the law's missing term: ``python book/preregistered/law_score.py law-lenet``.

``law.toml`` in this folder has what was predicted, the constants of the rules and the criteria.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nads_book.analysis.prediction import GainCorrection, predicted_accuracy
from nads_book.analysis.statistics import regression, resampled, with_interval
from nads_book.atlas.trained_waves import rising_fit
from nads_book.experiments.results import Results, results_path
from nads_book.studies.gain import load_design

Estimate = tuple[float, float, float]  # a number with its 95 % interval


def predictions(
    design: Mapping[str, np.ndarray], accuracies: np.ndarray, constants: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return the accuracies that rules predict for all n directions; no rule sees the accuracy of a held-out one.

    The first three were fixed before the experiment. The others are fitted: the constants of the law with the gain and
    of that without it; a step between two shells of energy; and the closest function that does not fall with energy.

    Args:
        design: directions, see `load_design`.
        accuracies: (n,) in [0, 1].
        constants: ``with_gain`` and ``without_gain``, powers of a `GainCorrection`.
    """
    ratios, gains, energies, seen = design["ratios"], design["gains"], design["energies"], ~design["held_out"]
    given, x, y = {"with_gain": gains, "without_gain": np.ones(len(gains))}, energies[seen], accuracies[seen]
    fixed = {name: GainCorrection(tuple(constants[name])).accuracies(ratios, g) for name, g in given.items()}
    fitted = {name: GainCorrection.fit(ratios[seen], g[seen], y).accuracies(ratios, g) for name, g in given.items()}
    steps = [np.where(energies > e, y[x > e].mean(), y[x <= e].mean()) for e in np.sort(x)[:-1]]
    order = np.argsort(x)
    return {
        "law": predicted_accuracy(ratios), **fixed, **{f"fitted_{name}": values for name, values in fitted.items()},
        "step": min(steps, key=lambda values: float(np.abs(values[seen] - y).sum())),
        "isotonic": np.interp(energies, x[order], rising_fit(x, y)[order]),
    }  # fmt: skip


def score(
    rows: Sequence[Mapping[str, Any]], design: Mapping[str, np.ndarray], registered: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Estimate]], dict[str, bool]]:
    """Return what the experiment measured, and which of the registered criteria it meets.

    Args:
        rows: a row for each direction and seed, see `Results`.
        design: directions, see `load_design`.
        registered: content of ``law.toml``.

    Returns:
        By arm: mean absolute error of each rule over all directions and over those held out, in points, and the
        ``slope``, by how many points the accuracy minus that of the law grows with one standard deviation of the
        logarithm of the gain, at equal energy and with the same share at the border; ``slope lost``, by how much it is
        smaller than in the free arm. Intervals draw directions again.
        Then the criteria by name.

    Raises:
        ValueError: if a direction has no row.
    """
    index, need = np.array([row["index"] for row in rows]), registered["criteria"]
    if missing := sorted({*range(len(design["gains"]))} - {*index.tolist()}):
        raise ValueError(f"{len(missing)} directions have no accuracies, such as {missing[:5]}: run the job first")
    squares = np.square(design["images"].astype(float))
    borders = 1 - squares[:, 4:-4, 4:-4].sum((1, 2)) / squares.sum((1, 2))  # shares of the four outer rows and columns
    predictors = {"gains": np.log(design["gains"]), "energies": np.log(design["energies"]), "borders": borders}
    predictors = {name: values[index] for name, values in predictors.items()}
    found: dict[str, dict[str, Estimate]] = {}
    errors: dict[str, dict[str, np.ndarray]] = {}
    for arm in ("free", *design["arms"].tolist()):
        values = np.array([(row if arm == "free" else row[arm])["test_accuracy"] for row in rows])
        means = np.bincount(index, values) / np.bincount(index)
        rules = predictions(design, means, registered["constants"])
        slope = regression(100 * (values - rules["law"][index]), predictors, index.tolist())["gains"]
        found[arm] = {"slope": (slope.value, slope.low, slope.high)}
        if arm == "free":
            free_values = values
        else:  # added after the registration: the same directions in both arms
            lost = regression(100 * (free_values - values), predictors, index.tolist())["gains"]
            found[arm]["slope lost"] = (lost.value, lost.low, lost.high)
        errors[arm] = {}
        for name, accuracies in rules.items():
            distances = 100 * np.abs(accuracies - means)
            errors[arm] |= {f"{name}, all": distances, f"{name}, held_out": distances[design["held_out"]]}
        found[arm] |= {name: _mean(distances) for name, distances in errors[arm].items()}
    free, frozen = found["free"], found["frozen"]

    def closer(first: str, second: str) -> bool:
        """Whether the first rule is closer to free networks than the second one, on the same directions."""
        return _mean(errors["free"][second] - errors["free"][first])[1] > 0

    met = {f"gain matters, {arm}": found[arm]["slope"][1] > need["least_slope"] for arm in found if arm != "frozen"} | {
        "gain matters less than half as much, frozen": frozen["slope"][2] < free["slope"][0] / 2,
        "law is close, frozen": frozen["law, all"][0] < need["frozen_error"],
        "law is closer than a step, frozen": frozen["law, held_out"][0] < frozen["step, held_out"][0],
        "gain brings the law closer, free": closer("with_gain, all", "without_gain, all"),
        "new directions, free": free["fitted_with_gain, held_out"][0] < need["new_error"],
        "closer than any function of energy, free": all(
            closer("fitted_with_gain, held_out", f"{rule}, held_out") for rule in ("isotonic", "fitted_without_gain")
        ),
    }
    return found, met


def _mean(values: np.ndarray) -> Estimate:
    return with_interval(resampled(np.mean, values))


def main() -> None:
    """Print the score of a job's results: its name, and its preset unless that is "paper"."""
    results = Results.load(results_path(*sys.argv[1:]))
    if not results.complete:
        raise SystemExit(f"{results}: an incomplete job has no score")
    registered = tomllib.loads(Path(__file__).with_name("law.toml").read_text("utf8"))
    found, met = score(results.rows, load_design(results.job.partition("-")[2]), registered)
    for arm, estimates in found.items():
        for name, (value, low, high) in estimates.items():
            print(f"{arm:<8} {name:<32} {value:6.2f} ({low:.2f} to {high:.2f})")
    for name, holds in met.items():
        print(f"{'yes' if holds else 'no':<8} {name}")


if __name__ == "__main__":
    main()
