"""Predictions that a study's own rule scores: its criteria, each with the outcome that was
registered for it, and what two registrations expect besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nads_book.evidence import all_met
from nads_book.experiments import load_study
from nads_book.predictions.prediction import (
    Prediction,
    answered,
    in_words,
    of_numbers,
)
from nads_book.report import readable
from nads_book.studies import experiment


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
    registered = study.registered
    rows = study.stored(study.path).rows
    met = study.score(rows).met if rows else dict.fromkeys(registered["criteria"])
    found = []
    for criterion, expected in expectations(registered["expected"], met).items():
        holds = met[criterion]
        if holds is None and "undecided" in expected and not study.missing(rows):
            found.append(Prediction(criterion, expected, "undecided", "met"))
        else:
            found.append(answered(criterion, expected != "failed", holds))
    return found


def in_text(name: str) -> list[Prediction]:
    """Return what the text of a registration expects: ranges of numbers, and criteria.

    Args:
        name: name of the registration, and of a table in ``ranges.toml``.
    """
    study = experiment(name.replace("_", "-"))
    scored = study.score(load_study(study.file)["rows"])
    table = in_words(name)
    criteria, note = table.pop("criteria", {}), table.pop("note", "")
    return [
        *of_numbers(table, scored.estimates, note=note),
        *(
            answered(in_words("names").get(key, key), expected, scored.met[key])
            for key, expected in criteria.items()
        ),
    ]


def theory_predictions() -> list[Prediction]:
    """Return the criteria of the rival theory, and the two orders of theories that its text
    expects.
    """
    found = of_criteria("rival_theory")
    scored = experiment("rival-theory").score(load_study("rival-theory.json")["rows"])
    for one in in_words("rival_theory"):
        values = {name: scored.estimates[one["cell"]][name][0] for name in one["order"]}
        order = sorted(values, key=values.__getitem__, reverse=True)
        together = one.get("criteria")  # that say the same
        holds = all_met(scored.met, *together) if together else order == one["order"]
        shown = ", ".join(f"{name} {readable(values[name], 2)}" for name in order)
        outcome = "met" if holds else "failed"
        found.append(Prediction(one["text"], one["expected"], shown, outcome))
    return found
