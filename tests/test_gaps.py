"""Notebooks with gaps: what is missing, what stays, and what their checks say; slides and links of
the course.
"""

import ast
import re
from dataclasses import dataclass
from itertools import pairwise

import nbformat
import pytest
import torch
from conftest import ROOT
from nads_book.site import gaps, sync

import nads_core as nc

NOTEBOOKS = sorted((ROOT / "book" / "gaps").glob("*.ipynb"))
SESSIONS = ("01_directional_bias", "04_pooling_theory")
COURSE = (ROOT / "book" / "course.md").read_text("utf8")


@pytest.mark.parametrize(
    "source, changed, rest",
    [
        (
            "a = nc.flip(x)\nb = nc.flip(\n    a,\n)  # on\nb",
            "a = nc.flip(x)\nanswer = ...  # nc.flip(…), for b: on",
            "b",
        ),
        ("d = nc.flip(1, 2).double()", "answer = ...  # nc.flip(…, …).double(), for d", ""),
        ("d = nc.f(a, b=c, e=1, **g)", "answer = ...  # nc.f(…, b=…, e=1, **g), for d", ""),
        ("d = nc.flip(a=1)", "answer = ...  # nc.flip(a=…), for d", ""),
        ("d = [nc.flip(x), nc.flip(y)]", "answer = ...  # [nc.flip(x), nc.flip(…)], for d", ""),
        ("a, b = nc.flip(x)", "answer = ...  # nc.flip(…), for (a, b)", ""),
        ("print(nc.flip(x))", None, None),
    ],
)
def test_the_last_call_of_the_library_becomes_a_gap(source, changed, rest):
    gap = gaps.with_gap(source)
    assert gap is changed is None or (gap.cell, gap.rest) == (changed, rest)


@dataclass
class Trained:
    accuracy: torch.Tensor
    epochs: int = 3
    seconds: float = 0.0


def nads(num_networks=4, **facts):
    directions = torch.eye(2).view(2, 1, 1, 2)
    return nc.NADs(directions, torch.ones(2), {"num_networks": num_networks} | facts)


@pytest.mark.parametrize(
    "found, ours, said, usable",
    [
        (..., Trained(torch.ones(3)), "No new answer: .*nc.train", False),
        (Trained(torch.zeros(3)), Trained(torch.ones(3)), "Another.* not close.*'accuracy'", True),
        (Trained(torch.ones(3), 4), Trained(torch.ones(3)), "Expected 3 but got 4.*epochs", True),
        (Trained(torch.ones(3) * 1.001, 3, 2.0), Trained(torch.ones(3)), "^Right", True),
        ({"b": 1}, {"a": 1}, "Not yet.*Missing keys .*'a'.*Additional .*'b'", False),
        (torch.ones(2) * 1.03, torch.ones(2), "Another.* not close", True),
        ("max", "none", "Another.*none.*max", True),
        (
            [1, torch.ones(2)],
            (2, torch.ones(3)),
            r"Not yet.*shape.*.2.. != .*.3...*item .1.",
            False,
        ),
        (torch.ones(2).double(), torch.ones(2), "Not yet.*float64 != .*float32", False),
        (nads(seconds=1, date="now"), nads(seconds=2, date="then", readouts=8), "^Right", True),
        (nads(5), nads(), "Expected 4 but got 5.*num_networks", True),
        (torch.nn.Linear(4, 3), torch.nn.Linear(2, 3), "shape.*3, 4.* != .*weight", False),
    ],
)
def test_a_check_says_what_is_wrong(capsys, found, ours, said, usable):
    assert gaps.checked(found, lambda: ours, "nc.train") is (found if usable else ours)
    assert re.search(said, capsys.readouterr().out, re.DOTALL)


def test_several_values_may_have_any_form(capsys):
    first, second = gaps.checked(iter([1, 2]), lambda: iter([1, 2]), "nc.train")
    assert (first, second) == (1, 2) and capsys.readouterr().out == "Right.\n"
    gaps.checked((1, 3), lambda: iter([1, 2]), "nc.train")
    assert re.search("Expected 2 but got 3.*item .1.", capsys.readouterr().out, re.DOTALL)


def test_only_repeated_trainings_may_differ_by_a_per_cent(capsys):
    for function, said in (("nc.train_networks", "Right"), ("nc.poison", "Another")):
        gaps.checked(torch.ones(2) * 1.001, lambda: torch.ones(2), function)
        assert capsys.readouterr().out.startswith(said)


def test_a_check_judges_no_answer_twice(capsys):
    gap = gaps.with_gap("wave = nc.fourier_direction(k)")
    names = {"nc": nc, "k": (0, 1), "answer": "a wave"}
    for said in ("Not yet", "No new answer"):
        exec(gap.check, names)
        assert torch.is_tensor(names["wave"]) and capsys.readouterr().out.startswith(said)


def cells_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def solve(notebook):
    """Fill the gaps with the answers that their checks contain."""
    for gap, check in pairwise(cells_of(notebook)):
        if answer := re.search(r'\.\.\.\), lambda: (.*), "[\w.]+"\)', check.source):
            gap.source = gap.source.replace("= ...", f"= {answer[1]}")


def checks(notebook):
    """Return the first words of what the checks of an executed notebook with gaps print."""
    said = [
        "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
        for cell in cells_of(notebook)
        if cell.source.startswith("#@title Check")
    ]
    return {re.match("Right.|No new answer|", text)[0] for text in said}


def test_only_live_cells_that_a_reader_sees_have_gaps():
    source = "a = nc.flip(x)"
    cells = [nbformat.v4.new_markdown_cell("# Title")]
    for tags in ([], ["hide-input"]):
        cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": tags}))
    notebook = nbformat.v4.new_notebook(cells=cells)
    gaps.add_gaps(notebook)
    assert [one.source == source for one in cells_of(notebook)] == [False, False, True]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_with_gaps_is_its_chapter_and_the_course_leads_to_it(path):
    notebook = sync.notebook_of(ROOT / "book" / "chapters" / f"{path.stem}.md")
    gaps.add_gaps(notebook)
    written = nbformat.read(path, as_version=4)
    assert written.cells == sync.numbered(notebook).cells, "run `make sync`, and commit both"
    for cell in cells_of(written)[1:]:
        ast.parse(cell.source)
    missing = [cell.source for cell in cells_of(written) if "= ...  #" in cell.source]
    assert missing and all("…" in source for source in missing)
    assert f"<gaps/{path.name}>" in COURSE and f"/main/book/gaps/{path.name})" in COURSE
