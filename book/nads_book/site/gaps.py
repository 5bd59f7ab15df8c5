"""Notebooks with gaps that check themselves, for a course: `nads_book.site.sync` writes them.

In each live cell of a chapter that a reader sees, the last assignment that calls the library loses
its right side, which stays as a hint without the arguments of the call. The cell ends there; a
folded cell below it says in words what is wrong, and continues with the chapter's answer if it has
to.
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
    "*A notebook with gaps: run the cells in order, replace each `...` by what its comment says, "
    "with the missing arguments (`help` names those of a function), and run the folded cell below. "
    "It says what is wrong, contains the chapter's answer, and continues with it if yours cannot be "
    "used. Under “Your turn” every answer of the right form is right.*"
)
CHECK = """#@title Check {{ display-mode: "form" }}
from nads_book.site.gaps import checked

{target} = checked({name}, lambda: {answer}, "{function}", "{name}")"""
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
    'hole = ...  # nc.poison(…)'
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
    # `a, b = ...` and `a["b"] = ...` would be errors or hard to check
    name = target if isinstance(node.targets[0], ast.Name) else "answer"
    calls = [call for call in ast.walk(node.value) if isinstance(call, ast.Call)]
    call = [call for call in calls if ast.unparse(call.func) == function][-1]
    # constants, such as the size of the noise, cannot be guessed
    kept = [option for option in call.keywords if isinstance(option.value, ast.Constant)]
    call.args, call.keywords = [ast.Name("…")], kept
    hint = ast.unparse(node.value) + (f", for {target}" if name != target else "")
    hint += f": {comment}" if comment else ""
    before = "".join(f"{line}\n" for line in lines[: node.lineno - 1])
    return Gap(
        f"{before}{name} = ...  # {hint}",
        CHECK.format(target=target, name=name, answer=answer, function=function),
        "\n".join(lines[last:]).strip("\n"),
    )


def add_gaps(notebook: nbformat.NotebookNode) -> int:
    """Put gaps into the live cells of a notebook, with a check below each and a note below its
    title; return their number.
    """
    cells, count = [], 0
    for cell in notebook.cells:
        shown = not HIDDEN & set(cell.metadata.get("tags", []))
        gap = with_gap(cell.source) if cell.cell_type == "code" and shown else None
        if gap is None:
            cells.append(cell)
            continue
        count += 1
        cells.append(new_code_cell(gap.cell))
        folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
        cells.append(new_code_cell(gap.check, metadata=folded))
        if gap.rest:
            cell.source = gap.rest
            cells.append(cell)
    notebook.cells = cells
    if count:
        notebook.cells.insert(1, new_markdown_cell(NOTE))
    return count


def checked(found: Any, answer: Callable[[], Any], function: str, name: str) -> Any:
    """Print in words what is wrong with what fills a gap, and return what the next cells need.

    Args:
        found: what fills the gap.
        answer: function that returns the chapter's answer.
        function: name of the function that the answer calls.
        name: name of what fills the gap.
    """
    found, expected = (
        tuple(value) if isinstance(value, Iterator) else value for value in (found, answer())
    )
    if found is ...:
        print(f"Still a gap: replace `...` by a call of {function}. Until then, ours is used.")
        return expected
    wrong, usable = difference(found, expected, name)
    if not wrong:
        print("Right.")
    elif usable:
        print(f"Another answer than the chapter's: {wrong}. If you meant it, go on.")
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
