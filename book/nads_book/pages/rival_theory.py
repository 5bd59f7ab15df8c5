"""A rival theory, lazy training, against energies (a section of ``03_nads_and_generalization``)."""

from typing import Any

from matplotlib.figure import Figure

from nads_book import figures
from nads_book.evidence import Evidence, evidence
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.report import estimate, fixed, markdown_table
from nads_book.studies.rival_theory import cells, keys, predictions

STUDY = "rival-theory"
THEORIES = {
    "energy": "energy of random networks",
    "gain": "energy with gain",
    "alignment": "tangent kernel, alignment",
    "kernel": "tangent kernel, regression",
    "frequency": "low frequency first",
}
CELLS = {
    "lenet, waves": "LeNet, waves",
    "lenet, designed": "LeNet, designed directions",
    "cnn, waves": "small CNN, waves",
    "cnn, designed": "small CNN, designed directions",
}


def complete() -> list[str]:
    """Return the cells of which at least one seed is stored, in the order of `CELLS`."""
    return [cell for cell in CELLS if cell in scored(STUDY).estimates]


def plot_theories() -> Figure:
    """Draw the rank correlation of each theory with the accuracy after training."""
    found = scored(STUDY).estimates
    panels: dict[str, Any] = {}
    for network, label in (("lenet", "LeNet"), ("cnn", "small CNN")):
        own = [cell for cell in complete() if cell.startswith(network)]
        if own:
            panels[label] = {
                CELLS[cell].partition(", ")[2]: {
                    text: found[cell][name] for name, text in THEORIES.items()
                }
                for cell in own
            }
    return figures.plot_intervals(panels, ["rank correlation with accuracy"] * len(panels))


def table_theories() -> str:
    """Return rank correlations of theories with trained accuracies, and leads over energies."""
    found = scored(STUDY).estimates
    rows = [
        [text, *(estimate(found[cell][name]) for cell in complete())]
        for name, text in THEORIES.items()
    ]
    for name in ("alignment", "kernel", "gain", "frequency"):
        key = f"{name} before energy"
        cells_of = [estimate(found[cell][key], sign=True) for cell in complete()]
        rows.append([f"{THEORIES[name]}, lead over energy", *cells_of])
    return markdown_table(rows, ["rank correlation", *(CELLS[cell] for cell in complete())])


def table_levels() -> str:
    """Return how far kernel regression gets, and training, on the same directions."""
    rows = []
    for cell in cells():
        one = predictions(rows_of(STUDY), *cell)
        if one is not None:
            kernel, trained = 100 * one.values["kernel"], 100 * one.trained
            numbers = [
                fixed(x, 0) for x in (kernel.mean(), kernel.max(), trained.mean(), trained.max())
            ]
            rows.append([CELLS[", ".join(cell)], len(keys(*cell)), *numbers])
    head = ["", "directions", "kernel, mean (%)", "kernel, best", "trained, mean", "trained, best"]
    return markdown_table(rows, head)


def lead(criterion: str, cell: str, key: str) -> Evidence:
    """Decide by a registered criterion, and show a lead of one theory over another."""
    return registered(STUDY, [criterion], scored(STUDY).estimates.get(cell, {}).get(key, ()))


def lazy_training_stays_below() -> Evidence:
    """Decide whether kernel regression stays far below trained LeNets along waves (registered)."""
    one = predictions(rows_of(STUDY), "lenet", "waves")
    best = [] if one is None else [100 * float(one.values["kernel"].max())]
    return registered(STUDY, ["waves, kernel far below training"], best)


def criteria_failed() -> Evidence:
    """Decide whether four of the seven registered criteria failed."""
    met = scored(STUDY).met
    failed = sum(holds is False for holds in met.values())
    holds = None if None in met.values() else (failed, len(met)) == (4, 7)
    return evidence(holds, failed, size="laptop")


LAB_TABLES = {
    "Theories against trained accuracies": table_theories,
    "How far kernel regression gets": table_levels,
}
CLAIMS = {
    "lazy-below": lazy_training_stays_below,
    "kernel-orders-waves": lambda: lead(
        "waves, alignment not worse than energy", "lenet, waves", "alignment before energy"
    ),
    "rival-criteria": criteria_failed,
    "energy-before-frequency": lambda: lead(
        "waves, energy ahead of frequency", "lenet, waves", "frequency before energy"
    ),
    "kernel-sees-gain": lambda: lead(
        "designed, alignment ahead of energy", "lenet, designed", "alignment before energy"
    ),
}
