"""What the flip costs an MLP with two optimisers."""

from functools import cache

from nads_book.analysis.statistics import pooled_variance
from nads_book.evidence import Evidence, above
from nads_book.experiments import matching
from nads_book.experiments.stored import load_study
from nads_book.pages.scores_on_data.stored import DATA, trained
from nads_book.report import fixed, markdown_table
from nads_book.studies import pair_statistics as rules


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


LAB_TABLES = {"The MLP with Adam and with SGD": table_of_optimisers}
