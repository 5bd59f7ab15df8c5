"""Predictions that a study's own rule scores: its criteria, each with the outcome that was
registered for it, and what two registrations expect besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nads_book.experiments import load_registered, load_study
from nads_book.predictions.prediction import Prediction, answered, in_words, ranged
from nads_book.report import readable
from nads_book.studies import experiment

ORDER_ALONG_WAVES = (  # criteria that together say that two theories tie and the third is behind
    "waves, alignment not worse than energy",
    "waves, alignment ahead of frequency",
    "waves, energy ahead of frequency",
)


def expectations(expected: Mapping[str, Any], criteria: Iterable[str]) -> dict[str, str]:
    """Return the outcome that was registered for each criterion, "met" unless another is named.

    Args:
        expected: table of the registration: outcomes by criterion, or by network and task.
        criteria: names of criteria, such as "cnn, ring" for a task of a network.
    """
    found = {}
    for criterion in criteria:
        network, _, task = criterion.partition(", ")
        tasks = expected.get(network)
        own = tasks.get(task) if isinstance(tasks, dict) else expected.get(criterion)
        found[criterion] = own or "met"
    return found


def of_criteria(name: str) -> list[Prediction]:
    """Return the criteria of a study with what was expected of them, by the study's own rule.

    Args:
        name: name of the registration; the study's has hyphens.

    Raises:
        ValueError: if no study has this name.
    """
    study = experiment(name.replace("_", "-"))
    registered = load_registered(name)
    rows = study.stored(study.path).rows if study.path.is_file() else []
    met = study.score(rows).met if rows else dict.fromkeys(registered["criteria"])
    found = []
    for criterion, expected in expectations(registered["expected"], met).items():
        holds = met[criterion]
        if holds is None and "undecided" in expected and not study.missing(rows):
            found.append(Prediction(criterion, expected, "undecided", "met"))
        else:
            found.append(answered(criterion, expected != "failed", holds))
    return found


def theory_predictions() -> list[Prediction]:
    """Return the criteria of the rival theory, and the two orders of theories that its text
    expects.
    """
    found = of_criteria("rival_theory")
    estimates = experiment("rival-theory").score(load_study("rival-theory.json")["rows"]).estimates
    expected = load_registered("rival_theory")["expected"]["winner"]
    outcomes = [one.outcome for one in found if one.text in ORDER_ALONG_WAVES]
    for (family, cell), words in zip(
        (("waves", "lenet, waves"), ("designed directions", "lenet, designed")),
        expected.split("; "),
        strict=True,
    ):
        words = words.partition(": ")[2]
        names = [name for name in ("gain", "alignment", "energy", "frequency") if name in words]
        values = {name: estimates[cell][name][0] for name in names}
        order = sorted(names, key=values.__getitem__, reverse=True)
        as_expected = order == sorted(names, key=words.index)
        if family == "waves":
            as_expected = outcomes == ["met"] * len(ORDER_ALONG_WAVES)
        shown = ", ".join(f"{name} {readable(values[name], 2)}" for name in order)
        outcome = "met" if as_expected else "failed"
        found.append(Prediction(f"LeNet, {family}: order of theories", words, shown, outcome))
    return found


def component_predictions() -> list[Prediction]:
    """Return the criteria of photos with small components, and by how much those photos change."""
    rows = load_study("small-components.json")["rows"]
    removed = 100 * float(np.mean([row["groups"][0]["relative"] for row in rows]))
    low, high = in_words("small_components")["relative_change"]
    text = "change of photos in the first group (% of the norm)"
    note = "The registration does not say whether removed or flipped."
    return [
        *of_criteria("small_components"),
        ranged(f"{text}, components removed", removed, low, high, note=note),
        ranged(f"{text}, components flipped", 2 * removed, low, high, note=note),
    ]
