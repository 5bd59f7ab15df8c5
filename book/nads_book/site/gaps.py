"""Notebooks with gaps that check themselves, for a course: `nads_book.site.sync` writes them.

In each live cell of a chapter that a reader sees, the last assignment that calls the library
becomes one of `...` to `answer`, with a hint: its right side without the arguments of the call. The
cell ends there; a folded cell below it says what is wrong with the answer, as `torch.testing` says
it, and gives the variable its value, that of the chapter if it has to. The check uses an answer
once, so that it never judges an old one after a cell that stopped with an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import nbformat
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell
from torch.testing import assert_close

from nads_core import NADs

HIDDEN = {"remove-cell", "remove-input", "hide-input", "hide-cell", "parameters"}
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}
LIBRARY = re.compile(r"(nc|nb\.pooling)(\.(?!load_)\w+)+")
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
ROUNDING = 1e-4  # difference of numbers that counts as none, relative and absolute
REPEATED = 0.01  # the same of repeated trainings: two points where an accuracy is near 1
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
        if isinstance(node, ast.Assign):
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and LIBRARY.fullmatch(ast.unparse(call.func)):
                    found = node, call
    if found is None:
        return None
    node, call = found
    lines = source.splitlines()
    last = node.end_lineno or node.lineno
    comment = lines[last - 1][node.value.end_col_offset :].strip(" #")
    target, answer = ast.unparse(node.targets[0]), ast.unparse(node.value)
    missing: ast.expr = ast.Name("…")
    call.args = [missing] * len(call.args)
    for option in call.keywords:
        # constants, such as the size of the noise, cannot be guessed, and stay beside what can
        if option.arg and not (call.args and isinstance(option.value, ast.Constant)):
            option.value = missing
    hint = f"{ast.unparse(node.value)}, for {target}"
    hint += f": {comment}" if comment else ""
    return Gap(
        "\n".join([*lines[: node.lineno - 1], f"answer = ...  # {hint}"]),
        CHECK.format(target=target, answer=answer, function=ast.unparse(call.func)),
        "\n".join(lines[last:]).strip("\n"),
    )


def add_gaps(notebook: nbformat.NotebookNode) -> None:
    """Put gaps into the live cells of a notebook, with a check below each and a note below its
    title.
    """
    cells = [notebook.cells[0], new_markdown_cell(NOTE)]
    for cell in notebook.cells[1:]:
        shown = cell.cell_type == "code" and not HIDDEN & set(cell.metadata.get("tags", []))
        if shown and (gap := with_gap(cell.source)):
            cells += [new_code_cell(gap.cell), new_code_cell(gap.check, metadata=FOLDED)]
            cell.source = gap.rest
        if cell.source:
            cells.append(cell)
    notebook.cells = cells


def checked(found: Any, answer: Callable[[], Any], function: str) -> Any:
    """Print what is wrong with what fills a gap, and return what the next cells need.

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
    tolerance = REPEATED if "train" in function else ROUNDING
    usable = False
    try:
        for usable in (False, True):  # what has the chapter's types and shapes
            both = (compared(value, usable) for value in (found, expected))
            assert_close(*both, rtol=tolerance, atol=tolerance)
        print("Right.")
    except (AssertionError, TypeError) as error:
        kinds = f"{type(found).__name__}, ours a {type(expected).__name__}"
        ours = "Another answer than the chapter's; continue if you meant it."
        print(ours if usable else f"Not yet; until then, ours is used: yours is a {kinds}.", error)
    return found if usable else expected


def compared(value: Any, values: bool) -> Any:
    """Return what of a value counts, as `torch.testing` can compare it, or types and shapes alone;
    of a network, whose weights are random, their shapes; of a training no seconds, since a second
    run takes others.
    """
    if isinstance(value, torch.nn.Module):
        return compared(value.state_dict(), values=False)
    if isinstance(value, torch.Tensor):
        return value if values else value.to("meta")
    if isinstance(value, NADs):
        settings = {key: value.provenance.get(key) for key in SETTINGS}
        value = settings, value.directions, value.eigenvalues
    elif fields := getattr(type(value), "__dataclass_fields__", None):
        value = {name: getattr(value, name) for name in fields if name != "seconds"}
    if isinstance(value, Mapping):
        return {key: compared(part, values) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [compared(part, values) for part in value]
    if values and isinstance(value, int | float):
        return value
    return {str(value) if values else type(value).__name__: True}
