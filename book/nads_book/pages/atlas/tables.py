"""All entries of the atlas."""

from nads_book.atlas import Measured, load_atlas
from nads_book.pages.atlas import changes
from nads_book.report import estimate, table


def written(found: Measured) -> str:
    """Return a measure with its interval."""
    size = abs(found.value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2
    return estimate((found.value, *found.interval), digits)


def show_entries() -> None:
    """Display each entry with its effective number, its effect, and how many networks resolve the
    effect.
    """
    atlas = load_atlas()
    rows = []
    for name, entry in atlas.entries.items():
        effect = known = "–"
        if entry.base:
            effect = written(atlas.effect(name))
            needed = atlas.networks_to_know(name)
            if needed <= atlas.facts[name]["num_networks"]:
                known = f"{max(100, round(needed, -2)):,.0f}"
        number = written(changes.measured(name, "effective"))
        rows.append([name, entry.change, number, effect, known])
    head = ["entry", "change", "effective number", "effect, 1 − cosine", "networks that resolve it"]
    table(rows, head)
