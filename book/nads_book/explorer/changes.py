"""Pictures that a reader changes along NADs, beside accuracies of networks that learned photos
changed likewise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nads_book.explorer.bundle import element
from nads_book.explorer.data import as_script, pack_shipped
from nads_book.figures.publishing import publishing

STRENGTH = 0.05  # of what the note writes


@dataclass
class Changes:
    """Hole and number of the poison as two switches, or the flip, as HTML; pictures of the reader's
    stay in the page.

    Args:
        kind: "note" or "flip".
        networks: networks, each with ``key`` (an architecture that ships), ``label``, ``caption``
            and ``accuracies``: for "flip" of "upright", "signs" and "flipped"; for "note" one
            mapping of "clean", "hole", "number" and "both" per NAD index in ``carriers``.
        book: whether program and arrays are loaded from files that the pages of the book share.
    """

    kind: str
    networks: Sequence[Mapping[str, Any]]
    book: bool = field(default_factory=publishing)

    def _repr_html_(self) -> str:
        needed = () if self.book else ("photos", *(one["key"] for one in self.networks))
        scripts = [as_script(name, pack_shipped(name)) for name in needed]
        config = {"networks": self.networks, "strength": STRENGTH}
        return element(
            f"nad-{self.kind}", config, "This figure is interactive.", self.book, scripts
        )
