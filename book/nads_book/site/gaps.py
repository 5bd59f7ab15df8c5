"""Notebooks with gaps that check themselves, for a course: `nads_book.site.sync` writes them.

In each live cell of a chapter that a reader sees, the last assignment that calls the library
becomes one of `...` to `answer`, with a hint: its right side without the arguments of the call. The
cell ends there; a folded cell below it says in words what is wrong with the answer, and gives the
variable its value, that of the chapter if it has to. The check uses an answer once, so that it
never judges an old one after a cell that stopped with an error.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import nbformat
import numpy as np
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell

from nads_core import NADs

HIDDEN = {"remove-cell", "remove-input", "hide-input", "hide-cell", "parameters"}
CALL = re.compile(r"\b(?:nc|nb\.pooling)(?:\.(?!load_)\w+)+(?=\()")
NOTE = (
    "*A notebook with gaps: run the cells in order, and replace each `...` by what its comment "
    "says, with an argument for each … (`help(nc.flip)` names those of a function). Run this cell, "
    "then the folded one below: it says what is wrong, contains the chapter's answer, and "
    "continues with it if yours cannot be used. Under “Your turn” every answer of the right form "
    "is right.*"
)
CHECK = """#@title Check {{ display-mode: "form" }}
from nads_book.site.gaps import checked

{target} = checked(globals().pop("answer", ...), lambda: {answer}, "{function}")"""
ROUNDING = 1e-4  # relative difference of numbers that counts as none
REPEATED = 0.02  # the same of repeated trainings
ARRAYS = torch.Tensor | np.ndarray
SETTINGS = "num_networks", "seed", "estimator"  # of NADs; they say more than directions


class Gap(NamedTuple):
    """A cell with a gap.

    Args:
        cell: source up to the gap.
        check: source of the cell that checks it.
        rest: what follows in the chapter's cell; may be empty.
    """

    cell: str
    check: str
    rest: str


def with_gap(source: str) -> Gap | None:
    """Return a cell whose last assignment from a call of the library is a gap, or None if it has no
    such line.

    >>> with_gap("hole = nc.poison(images, labels, nads, 0, 0)").cell
    'answer = ...  # nc.poison(…, …, …, …, …), for hole'
    """
    found = None
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and (names := CALL.findall(ast.unparse(node.value))):
            found = node, names[-1]
    if found is None:
        return None
    node, function = found
    lines = source.splitlines()
    last = node.end_lineno or node.lineno
    comment = lines[last - 1][node.value.end_col_offset :].strip().removeprefix("#").strip()
    target, answer = ast.unparse(node.targets[0]), ast.unparse(node.value)
    calls = [call for call in ast.walk(node.value) if isinstance(call, ast.Call)]
    call = [call for call in calls if ast.unparse(call.func) == function][-1]
    missing: ast.expr = ast.Name("…")
    call.args = [missing] * len(call.args)
    for option in call.keywords:
        # constants, such as the size of the noise, cannot be guessed, and stay beside what can
        if option.arg and not (call.args and isinstance(option.value, ast.Constant)):
            option.value = missing
    hint = f"{ast.unparse(node.value)}, for {target}"
    hint += f": {comment}" if comment else ""
    before = "".join(f"{line}\n" for line in lines[: node.lineno - 1])
    return Gap(
        f"{before}answer = ...  # {hint}",
        CHECK.format(target=target, answer=answer, function=function),
        "\n".join(lines[last:]).strip("\n"),
    )


def add_gaps(notebook: nbformat.NotebookNode) -> None:
    """Put gaps into the live cells of a notebook, with a check below each and a note below its
    title.
    """
    cells = []
    for cell in notebook.cells:
        shown = not HIDDEN & set(cell.metadata.get("tags", []))
        gap = with_gap(cell.source) if cell.cell_type == "code" and shown else None
        if gap is None:
            cells.append(cell)
            continue
        cells.append(new_code_cell(gap.cell))
        folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
        cells.append(new_code_cell(gap.check, metadata=folded))
        if gap.rest:
            cell.source = gap.rest
            cells.append(cell)
    cells.insert(1, new_markdown_cell(NOTE))
    notebook.cells = cells


def checked(found: Any, answer: Callable[[], Any], function: str) -> Any:
    """Print in words what is wrong with what fills a gap, and return what the next cells need.

    Args:
        found: what fills the gap; `...` if nothing does.
        answer: function that returns the chapter's answer.
        function: name of the function that the answer calls.
    """
    found, expected = (
        tuple(value) if isinstance(value, Iterator) else value for value in (found, answer())
    )
    if found is ...:
        print(
            f"No new answer: replace `...` by a call of {function}, run that cell (without an "
            "error), and then this one. Until then, ours is used."
        )
        return expected
    wrong, usable = difference(found, expected, "answer")
    if not wrong:
        print("Right.")
    elif usable:
        print(f"Another answer than the chapter's: {wrong}. Continue if you meant it.")
    else:
        print(f"Not yet: {wrong}. Until then, ours is used.")
    return found if usable else expected


def difference(
    found: Any, expected: Any, name: str, tolerance: float = ROUNDING
) -> tuple[str, bool]:
    """Return in words a difference of two values, empty if there is none, and whether one can take
    the place of the other: it has the same type and shape.
    """
    parts, wanted = parts_of(found), parts_of(expected)
    if kind(found) != kind(expected) or parts.keys() != wanted.keys():
        return f"{name} is {kind(found)}, expected {kind(expected)}", False
    if isinstance(expected, ARRAYS):
        a, b = (np.asarray(value, dtype=float) for value in (found, expected))
        if np.abs(a - b).max(initial=0) <= tolerance * np.abs(b).max(initial=0):
            return "", True
        sizes = f"{a.mean():.3g} and {a.std():.3g}, expected {b.mean():.3g} and {b.std():.3g}"
        return f"{name} has other values (mean and standard deviation {sizes})", True
    if isinstance(expected, int | float | str) and found != expected:
        return f"{name} is {found!r}, expected {expected!r}", True
    tolerance = REPEATED if hasattr(expected, "seconds") else tolerance
    all_of = [difference(parts[key], wanted[key], name + key, tolerance) for key in wanted]
    # what cannot be used comes first
    return min((one for one in all_of if one[0]), key=itemgetter(1), default=("", True))


def parts_of(value: Any) -> dict[str, Any]:
    """Return what of a value counts, by what follows its name: of a network, whose weights are
    random, their shapes; of a training no seconds, since a second run takes others.
    """
    if isinstance(value, torch.nn.Module):
        return {f".{key}": torch.zeros_like(part) for key, part in value.state_dict().items()}
    if isinstance(value, NADs):
        settings = {f".provenance[{key!r}]": value.provenance.get(key) for key in SETTINGS}
        return settings | {".directions": value.directions, ".eigenvalues": value.eigenvalues}
    if isinstance(value, Mapping):
        return {f"[{key!r}]": part for key, part in value.items()}
    if isinstance(value, list | tuple):
        return {f"[{place}]": part for place, part in enumerate(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (field.name for field in dataclasses.fields(value) if field.name != "seconds")
        return {f".{name}": getattr(value, name) for name in names}
    return {}


def kind(value: Any) -> str:
    """Return in words what a value is."""
    if isinstance(value, ARRAYS):
        return f"a {type(value).__name__} of the shape {(*value.shape,)} and type {value.dtype}"
    if isinstance(value, Mapping):
        return f"a dict with the keys {sorted(value, key=str)}"
    if isinstance(value, list | tuple):
        return f"a sequence of {len(value)}"
    if isinstance(value, type):
        return f"the class {value.__name__} itself, not called"
    return f"of the type {type(value).__name__}"
