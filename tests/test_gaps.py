"""Notebooks with gaps: what is missing, and what stays."""

import ast

import nbformat
import pytest
from conftest import ROOT
from nads_book.site import gaps


@pytest.mark.parametrize(
    "source, changed",
    [
        (
            "a = nc.flip(x)\nb = nc.flip(\n    a,\n)  # on\nb",
            "a = nc.flip(x)\nb = ...  # nc.flip: on\nb",
        ),
        ("net = nc.LENET.build(1, 32).double()", "net = ...  # nc.LENET.build"),
        ("x = nb.load_images()", None),
        ("print(nc.flip(x))", None),
        ("%pip install x\na = nc.flip(x)", None),
    ],
)
def test_the_last_call_of_the_library_becomes_a_gap(source, changed):
    assert gaps.with_gap(source) == changed


def test_only_live_cells_that_a_reader_sees_have_gaps(tmp_path):
    cell = "a = nc.flip(x)"
    cells = [nbformat.v4.new_markdown_cell("# Title")]
    cells += [
        nbformat.v4.new_code_cell(cell, metadata={"tags": tags}) for tags in ([], ["hide-input"])
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert gaps.notebook_with_gaps(notebook) == 1
    assert [one.source == cell for one in notebook.cells if one.cell_type == "code"] == [
        False,
        True,
    ]
    empty = nbformat.v4.new_notebook(cells=cells[:1])
    assert gaps.notebook_with_gaps(empty) == 0 and len(empty.cells) == 1


def test_chapters_with_gaps_are_python_still_and_the_course_links_to_them(tmp_path):
    counts = gaps.write(tmp_path, ROOT)
    assert len(counts) >= 8
    for name in counts:
        cells = nbformat.read(tmp_path / f"{name}.ipynb", as_version=4).cells
        for cell in cells:
            if cell.cell_type == "code" and "...  # nc." in cell.source:
                ast.parse(cell.source)
    linked = gaps.with_links((ROOT / "book" / "course.md").read_text("utf8"), counts)
    assert linked.count('href="../_static/gaps/') == len(counts) and "<!-- gaps" not in linked
