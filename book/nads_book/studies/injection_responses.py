"""Responses of networks to shortcuts injected along NADs, by carrier and seed."""

from nads_book.analysis.statistics import grouped
from nads_book.experiments import Results, Row
from nads_book.studies import load_results

Condition = tuple[str, str, str, float | None]  # images, background, written, size


def following(row: Row) -> float:
    """Return the share of photos that follow wrong shortcuts, above that without shortcuts."""
    return float(row["followed"]["class"] - row["unprompted"]["class"])


def rows_of(results: Results, condition: Condition) -> list[Row]:
    """Return the networks with one kind of shortcut, by carrier and seed in ascending order."""
    names = ("images", "background", "written", "size")
    rows = [
        row
        for row in results.rows
        if row["index"] is not None and tuple(map(row.get, names)) == condition
    ]
    return sorted(rows, key=lambda row: (row["index"], row["seed"]))


def follow_shares(results: Results, condition: Condition) -> dict[int, list[float]]:
    """Return by carrier the share that follows one kind of shortcut in each network."""
    return grouped((row["index"], following(row)) for row in rows_of(results, condition))


def by_epochs(name: str) -> dict[int, Results]:
    """Return the stored results of a job such as ``notes-lenet`` for each number of epochs, in
    ascending order.

    Results of less than one of the three seeds are left out.
    """
    stored = (
        load_results(name, preset) for preset in ("laptop", "epochs20", "epochs50", "epochs100")
    )
    kept = [results for results in stored if results and 3 * len(results.rows) >= results.num_units]
    return {results.settings["recipe"]["epochs"]: results for results in kept}
