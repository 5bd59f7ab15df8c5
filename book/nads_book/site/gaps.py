"""Notebooks with gaps that check themselves, for a course: ``python -m nads_book.site.gaps FOLDER``.

In each live cell of a chapter that a reader sees, the last assignment that calls the library loses
its right side, which stays as a hint without the arguments of the call. The cell ends there; a
folded cell below it says in words what is wrong, and goes on with the chapter's answer if it has to.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import numpy as np
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell

from nads_book.experiments.checkout import checkout_folder
from nads_core import NADs

HIDDEN = {"remove-cell", "remove-input", "hide-input", "hide-cell", "parameters"}
CALL = re.compile(r"\b(?:nc|nb\.pooling)(?:\.(?!load_)\w+)+(?=\()")
MARK = re.compile(r"<!-- gaps: (\w+) -->")
NOTE = (
    "*A notebook with gaps, for Colab or a clone of the repository: run the cells in order, replace "
    "each `...` by what its comment says, with arguments (`help` names those of a function), and run "
    "the folded cell below, which checks it and contains one answer.*"
)
CHECK = """#@title Check {{ display-mode: "form" }}
from nads_book.site.gaps import checked

{target} = checked({name}, lambda: {answer}, "{function}", "{name}")"""
ROUNDING = 1e-4  # relative difference of numbers that counts as none
REPEATED = 0.02  # the same of repeated trainings
SETTINGS = "num_networks", "seed", "estimator"  # of NADs; they say more than directions


class Gap(NamedTuple):
    """A cell with a gap.

    Args:
        cell: source up to the gap.
        solved: the same with the answer.
        check: source of the cell that checks it.
        rest: what follows in the chapter's cell; may be empty.
    """

    cell: str
    solved: str
    check: str
    rest: str


def with_gap(source: str) -> Gap | None:
    """Return a cell whose last assignment from a call of the library is a gap, or None if it has no
    such line.

    >>> with_gap("hole = nc.poison(images, labels, nads, 0, 0)").cell
    'hole = ...  # nc.poison(…)'
    """
    if any(line.startswith(("%", "!")) for line in source.splitlines()):
        return None
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
    call.args, call.keywords = [ast.Name("…")], []
    hint = ast.unparse(node.value) + (f", for {target}" if name != target else "")
    hint += f": {comment}" if comment else ""
    before = "".join(f"{line}\n" for line in lines[: node.lineno - 1])
    return Gap(
        f"{before}{name} = ...  # {hint}",
        f"{before}{name} = {answer}",
        CHECK.format(target=target, name=name, answer=answer, function=function),
        "\n".join(lines[last:]).strip("\n"),
    )


def notebook_with_gaps(notebook: nbformat.NotebookNode, solved: bool = False) -> int:
    """Put gaps, or their answers, into the live cells of a notebook, with a check below each and a
    note below its title; return their number.
    """
    cells, count = [], 0
    for cell in notebook.cells:
        shown = not HIDDEN & set(cell.metadata.get("tags", []))
        gap = with_gap(cell.source) if cell.cell_type == "code" and shown else None
        if gap is None:
            cells.append(cell)
            continue
        count += 1
        cells.append(new_code_cell(gap.solved if solved else gap.cell))
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
    """Print in words what is wrong with what fills a gap, and return what the next cells go on with.

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
        print(f"This is not the chapter's answer: {wrong}. Is this what you meant?")
    else:
        print(f"Not yet: {wrong}. Until then, ours is used.")
    return found if usable else expected


def difference(
    found: Any, expected: Any, name: str, tolerance: float = ROUNDING
) -> tuple[str, bool]:
    """Return in words a difference of two values, empty if there is none, and whether one can take
    the place of the other: it has the same type and shape. Seconds do not count: a second run takes
    others.
    """
    sequences = isinstance(found, list | tuple) and isinstance(expected, list | tuple)
    if type(found) is not type(expected) and not sequences:
        return f"{name} is {kind(found)}, expected {kind(expected)}", False
    if isinstance(expected, torch.Tensor | np.ndarray):
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            return f"{name} is {kind(found)}, expected {kind(expected)}", False
        a, b = (np.asarray(value, dtype=float) for value in (found, expected))
        far = np.abs(a - b).max(initial=0) > tolerance * np.abs(b).max(initial=0)
        return (f"{name} has other values: look at the arguments" if far else ""), True
    found, expected = compared(found), compared(expected)
    if isinstance(expected, Mapping):
        if found.keys() != expected.keys():
            return f"{name} is {kind(found)}, expected {kind(expected)}", False
        parts = [(found[key], expected[key], f"{name}[{key!r}]") for key in expected]
    elif isinstance(expected, list | tuple):
        if len(found) != len(expected):
            return f"{name} has {len(found)} elements, expected {len(expected)}", False
        parts = [(found[i], expected[i], f"{name}[{i}]") for i in range(len(expected))]
    elif dataclasses.is_dataclass(expected):
        fields = [f.name for f in dataclasses.fields(expected) if f.name != "seconds"]
        parts = [(getattr(found, f), getattr(expected, f), f"{name}.{f}", REPEATED) for f in fields]
    elif isinstance(expected, int | float | str) and found != expected:
        return f"{name} is {found!r}, expected {expected!r}", True
    else:
        return "", True
    differences = [difference(*part) for part in parts]
    # what cannot be used comes first
    return min((one for one in differences if one[0]), key=itemgetter(1), default=("", True))


def compared(value: Any) -> Any:
    """Return what of a value counts: of a network, whose weights are random, their shapes."""
    if isinstance(value, torch.nn.Module):
        return {key: torch.zeros_like(weights) for key, weights in value.state_dict().items()}
    if isinstance(value, NADs):
        results = {"directions": value.directions, "eigenvalues": value.eigenvalues}
        return {key: value.provenance.get(key) for key in SETTINGS} | results
    return value


def kind(value: Any) -> str:
    """Return in words what a value is."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return f"a {type(value).__name__} of the shape {(*value.shape,)} and type {value.dtype}"
    if isinstance(value, Mapping):
        return f"a dict with the keys {[*value]}"
    if isinstance(value, type):
        return f"the class {value.__name__} itself, not called"
    return f"of the type {type(value).__name__}"


def write(folder: Path, root: Path) -> dict[str, int]:
    """Write the notebooks with gaps of all chapters that have live cells.

    Args:
        folder: folder that is made.
        root: folder of the repository.

    Returns:
        Number of gaps by chapter.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for path in sorted(root.glob("notebooks/*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if count := notebook_with_gaps(notebook):
            counts[path.stem] = count
            nbformat.write(notebook, folder / path.name)
    return counts


def with_links(text: str, counts: dict[str, int]) -> str:
    """Replace ``<!-- gaps: NAME -->`` in the page *Course* by a link to the notebook, if it has
    gaps.
    """

    def link(mark: re.Match[str]) -> str:
        count = counts.get(mark[1], 0)
        address = f"../_static/gaps/{mark[1]}.ipynb"
        words = f"{count} gap{'s' * (count > 1)}"
        return f'<a href="{address}" download>{words}</a>' if count else ""

    return MARK.sub(link, text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m nads_book.site.gaps FOLDER")
    for name, number in write(Path(sys.argv[1]), checkout_folder("notebooks").parent).items():
        print(f"{name}: {number} gaps")
