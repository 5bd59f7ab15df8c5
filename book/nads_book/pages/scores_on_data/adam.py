"""Why Adam loses accuracy on flipped photos."""

from dataclasses import replace
from functools import cache

from matplotlib.figure import Figure

from nads_book.analysis.statistics import pooled_variance
from nads_book.evidence import Evidence, above
from nads_book.experiments import load_study, matching
from nads_book.figures.style import bar_ends, legend, panel_row, rule, shade, styled
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.pages.scores_on_data.stored import DATA, trained
from nads_book.report import estimate, fixed, markdown_table
from nads_book.studies import pair_statistics as rules
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


def table_bases() -> str:
    """Return the points lost by basis and treatment."""
    found, where = scored(STUDY).estimates, effective()
    rows = [
        [BASIS_LABELS[basis], fixed(where[basis], 0)]
        + [estimate(found[treatment][basis], 1) for treatment in TREATMENTS]
        for basis in BASES[1:]
    ]
    return markdown_table(rows, ["points lost", "effective inputs", *LABELS.values()])


def flip_costs(treatment: str, *criteria: str) -> Evidence:
    """Decide by registered criteria, and show what the flip costs with a treatment."""
    rows = [row for row in rows_of(STUDY) if row["treatment"] == treatment]
    return registered(STUDY, criteria, scored(STUDY).estimates[treatment]["flipped"], rows)


def sgd_any_basis() -> Evidence:
    """Decide whether no basis costs with SGD (registered), and the flip less than a point."""
    found = flip_costs("sgd", "no basis costs with SGD")
    return replace(found, holds=found.holds and (found.value or 0) < 1)


# The MLP of the contest of scores


@cache
def mlp_losses() -> dict[tuple[str, str, str], list[float]]:
    """Return the points that variants cost the MLP: (optimiser, data, variant) -> one per seed."""
    found = {}
    for optimiser, rows in {
        "Adam": trained()["rows"],
        "SGD": load_study("other-data-control.json")["rows"],
    }.items():
        own = matching(rows, architecture="mlp")
        of = {(row["data"], row["variant"], row["seed"]): row["test_accuracy"] for row in own}
        for data in ("cifar10", "fashion-mnist"):
            for variant in ("shuffled", "flipped", "random phases"):
                found[optimiser, data, variant] = [
                    100 * (of[data, rules.AS_IS, seed] - of[data, variant, seed])
                    for seed in (0, 1)
                    if {(data, rules.AS_IS, seed), (data, variant, seed)} <= of.keys()
                ]
    return found


def adam_basis() -> Evidence:
    """Decide whether the flip of CIFAR-10 costs an MLP more with Adam than with SGD."""
    losses = mlp_losses()
    adam, sgd = (losses[name, "cifar10", "flipped"] for name in ("Adam", "SGD"))
    gap = pooled_variance(losses.values()).difference(adam, sgd)
    return above(gap, size="narrow", num_seeds=2, num_trainings=8)


def table_of_optimisers() -> str:
    """Return the points that variants cost the MLP with Adam and with SGD."""
    losses = mlp_losses()
    rows = [
        [DATA[data], variant]
        + [", ".join(map(fixed, losses[name, data, variant])) for name in ("Adam", "SGD")]
        for _, data, variant in dict.fromkeys(("", *key[1:]) for key in losses)
    ]
    return markdown_table(rows, ["data", "variant", "Adam (points lost)", "SGD"])


LAB_TABLES = {
    "The MLP with Adam and with SGD": table_of_optimisers,
    "Adam by basis of the inputs": table_bases,
}
CLAIMS = {
    "adam-uneven": lambda: flip_costs(
        "adam", "uneven bases cost with Adam", "an even basis costs nothing with Adam"
    ),
    "adam-step-sizes": lambda: flip_costs(ONE_STEP_SIZE, "no basis costs with one step size"),
    "sgd-equal-variances": lambda: flip_costs(
        EQUAL_VARIANCES, "SGD on equal variances loses like Adam"
    ),
}
