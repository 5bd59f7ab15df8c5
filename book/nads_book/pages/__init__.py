"""The pages of the book: one module per chapter, with its figures, tables, numbers and claims from
stored results.

A module is named after its chapter: `flip` belongs to ``08_flip``. It holds

- loaders of stored results, cached (`stored`), so that each function names what it reads;
- one function per figure or table, which a cell calls (``nb.pages.flip.plot_costs()``);
- one function per claim, which returns `nads_book.evidence.Evidence` and is named after the claim:
  ``dark_lines()`` decides ``dark-lines`` of the register. ``make verify`` and the build call these;
  `conclude` shows one on the page, as its sentence with the numbers;
- ``CLAIMS``, if one function decides several claims: id -> function without arguments.

A chapter of several parts is a package, which names its modules in ``PARTS``.

Nothing is decided in a cell, and a function draws or computes the same at every preset. For a new
chapter, make the module, and add its name to `MODULES`. A verdict that flips is an error of
``make verify`` and of the build.
"""

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType

from nads_book import claims
from nads_book.checks import errata
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
    "poison",
    "pooling_theory",
    "theorem1",
    "training",
    "what_nads_do_not_tell",
)


Decide = Callable[[], Evidence]


def decisions() -> dict[str, Decide]:
    """Return the functions of all pages: id of a claim -> function that decides it."""
    return {key: decide for name in MODULES for key, decide in _claims(name).items()}


def name_of(decide: Decide) -> str:
    """Return where a function that decides a claim is: module and name, the entry of a table of
    checks, or the module of one without a name.
    """
    if isinstance(decide, functools.partial):
        return f"{errata.__name__}.STATEMENTS[{decide.args[-1]!r}]"
    return f"{decide.__module__}.{decide.__name__}".removesuffix(".<lambda>")


def _claims(name: str) -> dict[str, Decide]:
    """Return the functions of one page that decide claims, by id."""
    found: dict[str, Decide] = {}
    for part in _parts(name):
        functions = inspect.getmembers(part, inspect.isfunction)
        found |= {key.replace("_", "-"): one for key, one in functions if _decides(one, part)}
        found |= getattr(part, "CLAIMS", {})
    return found


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
        if decide := _claims(name).get(id):
            break
    else:
        raise ValueError(
            f"no page decides the claim {id!r}: name one of {', '.join(sorted(decisions()))}"
        )
    found = decide()
    if publishing():
        publish(id, shown=True)
    else:
        claim = claims.decided(claims.load()[id], found)
        if claim.statement:
            show(claims.conclusion(claim))


def _decides(function: Decide, part: ModuleType) -> bool:
    """Return whether a function of a module decides a claim, without arguments."""
    signature = inspect.signature(function)
    needed = [one for one in signature.parameters.values() if one.default is one.empty]
    own = function.__module__ == part.__name__
    return own and signature.return_annotation in (Evidence, "Evidence") and not needed


def _parts(name: str) -> tuple[ModuleType, ...]:
    """Return the modules of a page."""
    page = _module(name)
    return getattr(page, "PARTS", (page,))


def _module(name: str):  # type: ignore[no-untyped-def]
    return importlib.import_module(f"{__name__}.{name}")


def __getattr__(name: str):  # type: ignore[no-untyped-def]
    if name in MODULES:
        return _module(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
