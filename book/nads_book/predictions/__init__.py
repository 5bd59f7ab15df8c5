"""Every registered prediction beside its result: met, failed or open.

What was registered is in ``book/preregistered/*.toml`` (`load_registered`) and, for the atlas, in
``atlas-predictions.json``. Ranges that a registration states in its text only are repeated here,
next to the function that computes the number from stored rows (`training`, `data`). A study whose
registration has nothing but criteria is scored by its own rule (`criteria`). The book shows all of
them on the page *Predictions*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from nads_book.atlas.predictions import predictions as atlas_predictions
from nads_book.atlas.predictions import score as score_of_atlas
from nads_book.atlas.stored import load_atlas
from nads_book.checkout import checkout_folder
from nads_book.experiments import load_registered
from nads_book.predictions import criteria, data, training
from nads_book.predictions.prediction import Prediction
from nads_book.report import estimate, markdown_table
from nads_book.studies import OTHERS

__all__ = ["Prediction", "counts", "everything", "page", "registrations", "section", "table"]

REGISTRATIONS: dict[str, Callable[[], list[Prediction]]] = {
    "forgetting": training.forgetting_predictions,
    "geometry": training.geometry_predictions,
    "used_nads": training.used_predictions,
    "law": training.gain_predictions,
    "repair": partial(criteria.in_text, "repair"),
    "pooling": lambda: criteria.in_text("pooling") + criteria.in_text("pooling_control"),
    "nas": partial(criteria.in_text, "nas"),
    "other_data": data.pair_predictions,
    "replications": data.replication_predictions,
    "nads64": data.large_predictions,
    "rival_theory": criteria.theory_predictions,
    "small_components": lambda: (
        criteria.of_criteria("small_components") + criteria.in_text("small_components")
    ),
}


def registrations() -> list[str]:
    """Return the names of all files of registrations, in alphabetical order."""
    return sorted(path.stem for path in checkout_folder("book/preregistered").glob("*.toml"))


def of_the_atlas() -> list[Prediction]:
    """Return what was predicted of single changes of small architectures."""
    atlas = load_atlas()
    outcomes = {"held": "met", "failed": "failed", "open": "open"}
    found = []
    for one in atlas_predictions():
        score = score_of_atlas(one, atlas)
        if score is not None:
            result = estimate((score.found.value, *score.found.interval))
            text = f"{one.entry}: {one}"
            found.append(Prediction(text, one.because, result, outcomes[score.verdict]))
    return found


def everything() -> dict[str, list[Prediction]]:
    """Return all predictions by the path of their registration."""
    found = {}
    for name in registrations():
        function = REGISTRATIONS.get(name)
        if function is None and name.replace("_", "-") not in OTHERS:
            raise ValueError(f"{name}.toml belongs to no study: add it to REGISTRATIONS")
        found[f"book/preregistered/{name}.toml"] = (
            function() if function else criteria.of_criteria(name)
        )
    found["book/results/studies/atlas-predictions.json"] = of_the_atlas()
    return found


def counts(predictions: Iterable[Prediction]) -> str:
    """Return how many predictions have each outcome, in words."""
    number = Counter(one.outcome for one in predictions)
    return ", ".join(f"{number[name]} {name}" for name in ("met", "failed", "open") if number[name])


def table(predictions: Iterable[Prediction]) -> str:
    """Return predictions beside their results, in Markdown."""
    order = ["failed", "open", "met"]
    rows = [
        [
            one.outcome if one.outcome == "met" else f"**{one.outcome}**",
            one.text + (f" ({one.note})" if one.note else ""),
            one.expected,
            one.found,
        ]
        for one in sorted(predictions, key=lambda one: order.index(one.outcome))
    ]
    return markdown_table(rows, ["outcome", "prediction", "expected", "found"])


def known_before(path: str) -> str:
    """Return what a registration says was known before it, as a quotation; "" if it says
    nothing.
    """
    name = path.rpartition("/")[2]
    content = load_registered(name.removesuffix(".toml")) if name.endswith(".toml") else {}
    words = " ".join(content.get("known_before", "").split())
    return f"> *Known before:* {words}\n\n" if words else ""


def section(path: str, predictions: list[Prediction]) -> str:
    """Return the predictions of one registration: counts, what was known before, and their
    table.
    """
    numbers = f"{len(predictions)} predictions: {counts(predictions)}."
    return f"{numbers}\n\n{known_before(path)}{table(predictions)}"


def page(found: Mapping[str, list[Prediction]]) -> str:
    """Return the generated part of the page *Predictions*: counts, then a table for each
    registration.
    """
    rows = [[f"`{path}`", counts(predictions)] for path, predictions in found.items()]
    all_of_them = [one for predictions in found.values() for one in predictions]
    rows.append(["**all**", counts(all_of_them)])
    parts = [markdown_table(rows, ["registered in", "outcomes"])]
    for path, predictions in found.items():
        title = path.rpartition("/")[2].partition(".")[0].replace("_", " ").replace("-", " ")
        parts.append(f"## {title[0].upper()}{title[1:]}\n\n`{path}`, {section(path, predictions)}")
    return "\n\n".join(parts)
