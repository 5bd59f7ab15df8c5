"""The pages of the book: one module per chapter, with its figures, tables, numbers and claims from
stored results.

A module is named after its chapter: `flip` belongs to ``08_flip``. A long section can have a module
of its own, such as `certainty`. Each holds

- loaders of stored results, cached, so that each function names what it reads;
- one function per figure or table, which a cell calls (``nb.pages.flip.plot_costs()``);
- one function per claim, ``@decides("dark-lines")``, which returns `Evidence`. ``make verify`` and
  the build call these; `conclude` shows one on the page, as its sentence with the numbers.

Nothing is decided in a cell, and a function draws or computes the same at every preset. For a new
chapter, make the module. A verdict that flips is an error of ``make verify`` and of the build.
"""

import functools
import importlib
import pkgutil
from types import ModuleType

from nads_book import claims
from nads_book.experiments.evidence import Evidence
from nads_book.experiments.formatting import publish, show
from nads_book.figures.publishing import publishing

MODULES = tuple(module.name for module in pkgutil.iter_modules(__path__))


def decisions() -> dict[str, functools.partial[Evidence]]:
    """Return the functions of all pages: id of a claim -> function that decides it."""
    for name in MODULES:
        _module(name)
    return claims.DECISIONS


def name_of(id: str) -> str:
    """Return where a claim is decided."""
    return f'@decides("{id}") in {decisions()[id].func.__module__}'


def conclude(id: str) -> None:
    """Show a claim with its verdict and its number.

    While the book is built, the cell is only marked: the build shows the claim there, as all claims
    stand then.

    Args:
        id: name in `book/claims.toml`.

    Raises:
        KeyError: if no page decides this claim.
    """
    # The page that asks is imported already; it does not depend on the others.
    found = (claims.DECISIONS.get(id) or decisions()[id])()
    if publishing():
        publish(id, shown=True)
    else:
        show(claims.conclusion(claims.decided(claims.load()[id], found)))


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")


def __getattr__(name: str) -> ModuleType:
    if name in MODULES:
        return _module(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
