"""Why Adam loses accuracy on flipped photos."""

from matplotlib.figure import Figure

from nads_book.evidence import Evidence
from nads_book.figures.style import bar_ends, legend, panel_row, rule, shade, styled
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.studies.adam_flip import BASES, EQUAL_VARIANCES, ONE_STEP_SIZE, TREATMENTS

STUDY = "adam-flip"
LABELS = {
    "adam": "Adam",
    "sgd": "SGD",
    ONE_STEP_SIZE: "Adam, one step size per matrix",
    EQUAL_VARIANCES: "SGD, inputs of equal variance",
}
BASIS_LABELS = {
    "rotated": "random rotation",
    "flipped": "flipped",
    "nads": "NAD coordinates",
    "components": "principal components",
}


def effective() -> dict[str, float]:
    """Return over how many inputs each basis spreads the variance."""
    return {row["basis"]: row["effective_inputs"] for row in rows_of(STUDY)}


@styled
def plot_bases() -> Figure:
    """Draw the points lost in each basis against the number of inputs that share the variance."""
    figure, (axis,) = panel_row(
        [""], 3.2, xlabel="effective number of inputs", ylabel="accuracy lost (points)"
    )
    where = effective()
    for treatment in TREATMENTS:
        found = scored(STUDY).estimates[treatment]
        order = sorted(found, key=where.__getitem__)
        values, lengths = bar_ends([found[basis] for basis in order])
        places = [where[basis] for basis in order]
        axis.errorbar(places, values, lengths, fmt="o-", capsize=2, label=LABELS[treatment])
    rule(axis)
    axis.set_xscale("log")
    top = axis.get_ylim()[1]
    for basis in BASES[1:]:
        label = BASIS_LABELS[basis].replace(" ", "\n")
        axis.text(where[basis], top, label, ha="center", va="bottom", color=shade(0.3))
    legend(figure, axis, loc="outside lower center", ncols=2)
    return figure


def flip_costs(treatment: str, *criteria: str) -> Evidence:
    """Decide by registered criteria, and show what the flip costs with a treatment."""
    rows = [row for row in rows_of(STUDY) if row["treatment"] == treatment]
    return registered(STUDY, criteria, scored(STUDY).estimates[treatment]["flipped"], rows)


CLAIMS = {
    "adam-uneven": lambda: flip_costs(
        "adam", "uneven bases cost with Adam", "an even basis costs nothing with Adam"
    ),
    "adam-step-sizes": lambda: flip_costs(ONE_STEP_SIZE, "no basis costs with one step size"),
}
