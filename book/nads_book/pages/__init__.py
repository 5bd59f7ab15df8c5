"""The pages of the book: one module per chapter, with its figures, tables, numbers and claims from
stored results.

A module is named after its chapter: `flip` belongs to ``08_flip``. It holds

- loaders of stored results, cached (`stored`), so that each function names what it reads;
- one function per figure or table, which a cell calls (``nb.pages.flip.plot_costs()``);
- one function per claim, or per family of claims, which returns `nads_book.evidence.evidence`;
- ``CLAIMS``: id of the register -> function without arguments that decides it. ``make verify`` and
  the build call these; `conclude` shows one on the page, as its sentence with the numbers;
- ``LAB_TABLES``, if it has any: title -> function without arguments that returns a table in
  Markdown or HTML, which the chapter's lab notes show beside its claims, its predictions and what
  was trained.

A chapter of several parts is a package, which gathers those of its modules (`gathered`).

Nothing is decided in a cell, and a function draws or computes the same at every preset. For a new
chapter, make the module, and add its name to `MODULES`. A verdict that flips is an error of
``make verify`` and of the build.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType

from nads_book import claims
from nads_book.evidence import Evidence
from nads_book.publishing import publishing
from nads_book.report import publish, show

MODULES = (
    "atlas",
    "directional_bias",
    "explorer",
    "flip",
    "lemma1_hessian",
    "nad_computation",
    "nads_and_generalization",
    "other_photos",
    "poison",
    "pooling_theory",
    "scale",
    "scores_on_data",
    "theorem1",
    "training",
    "using_nads",
)


Decide = Callable[[], Evidence]


def decisions() -> dict[str, Decide]:
    """Return the functions of all pages: id of a claim -> function that decides it."""
    return {key: decide for name in MODULES for key, decide in _module(name).CLAIMS.items()}


def conclude(id: str) -> None:
    """Show a claim with its verdict and its number.

    While the book is built, the cell is only marked: the build shows the claim there, as all claims
    stand then.

    Args:
        id: name in `book/claims.toml`.

    Raises:
        ValueError: if no page decides this claim.
    """
    # The page that asks is imported already; the others are not looked at, so that it does not
    # depend on them.
    for name in sorted(MODULES, key=lambda name: f"{__name__}.{name}" not in sys.modules):
        if id in _module(name).CLAIMS:
            break
    else:
        raise ValueError(
            f"no page decides the claim {id!r}: name one of {', '.join(sorted(decisions()))}"
        )
    found = _module(name).CLAIMS[id]()
    if publishing():
        publish(id, shown=True)
    else:
        claim = claims.decided(claims.load()[id], found)
        if claim.statement:
            show(claims.conclusion(claim))


def gathered(*parts: ModuleType) -> tuple[Mapping[str, Decide], Mapping[str, Callable[[], str]]]:
    """Return the claims and the tables of a chapter whose module is a package of several parts."""
    claims = {key: each for part in parts for key, each in getattr(part, "CLAIMS", {}).items()}
    tables = {key: each for part in parts for key, each in getattr(part, "LAB_TABLES", {}).items()}
    return claims, tables


def chapter_of(module: str) -> str:
    """Return the chapter that a module of this package belongs to, such as ``07_poison``.

    Raises:
        FileNotFoundError: if no notebook has its name.
    """
    for path in sorted((claims.ROOT / "notebooks").glob("*.ipynb")):
        if path.stem.partition("_")[2] == module:
            return path.stem
    raise FileNotFoundError(f"there is no chapter for nads_book.pages.{module}")


def lab_tables() -> dict[str, Mapping[str, Callable[[], str]]]:
    """Return the tables of the lab notes: chapter -> title -> function that makes the table."""
    return {chapter_of(name): getattr(_module(name), "LAB_TABLES", {}) for name in MODULES}


def chapters_of_claims() -> dict[str, str]:
    """Return the chapter whose module decides a claim, by the id of the claim."""
    return {key: chapter_of(name) for name in MODULES for key in _module(name).CLAIMS}


def _module(name: str):  # type: ignore[no-untyped-def]
    return importlib.import_module(f"{__name__}.{name}")


def __getattr__(name: str):  # type: ignore[no-untyped-def]
    if name in MODULES:
        return _module(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
