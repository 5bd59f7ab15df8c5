"""Notebooks with gaps: what is missing, and what stays."""

import ast
import re
from dataclasses import dataclass

import nbformat
import pytest
import torch
from conftest import ROOT
from nads_book.site import gaps
from nbclient import NotebookClient

import nads_core as nc


@pytest.mark.parametrize(
    "source, changed, rest",
    [
        (
            "a = nc.flip(x)\nb = nc.flip(\n    a,\n)  # on\nb",
            "a = nc.flip(x)\nb = ...  # nc.flip(…): on",
            "b",
        ),
        ("net = nc.LENET.build(1, 32).double()", "net = ...  # nc.LENET.build(…).double()", ""),
        ("d = {k: nc.flip(k) for k in x}", "d = ...  # {k: nc.flip(…) for k in x}", ""),
        ("d = [nc.flip(x), nc.flip(y)]", "d = ...  # [nc.flip(x), nc.flip(…)]", ""),
        ("a, b = nc.flip(x)", "answer = ...  # nc.flip(…), for (a, b)", ""),
        ('rows["a"] = nc.flip(x)', "answer = ...  # nc.flip(…), for rows['a']", ""),
    ],
)
def test_the_last_call_of_the_library_becomes_a_gap(source, changed, rest):
    gap = gaps.with_gap(source)
    assert (gap.cell, gap.rest) == (changed, rest)


@pytest.mark.parametrize(
    "source", ["x = nb.load_images()", "print(nc.flip(x))", "%pip install x\na = nc.flip(x)"]
)
def test_other_cells_have_no_gap(source):
    assert gaps.with_gap(source) is None


@dataclass
class Trained:
    accuracy: torch.Tensor
    epochs: int = 3
    seconds: float = 0.0


def nads(num_networks=4, size=2, **facts):
    directions = torch.eye(size).view(size, 1, 1, size)
    return nc.NADs(directions, torch.ones(size), {"num_networks": num_networks} | facts)


@pytest.mark.parametrize(
    "found, ours, said, usable",
    [
        (..., Trained(torch.ones(3)), "Still a gap: .*nc.train", False),
        ("network", Trained(torch.ones(3)), "x is of the type str, expected .* Trained", False),
        (Trained, Trained(torch.ones(3)), "x is the class Trained itself, not called", False),
        (Trained(torch.ones(2)), Trained(torch.ones(3)), "x.accuracy .* shape .2,. .* .3,.", False),
        (Trained(torch.zeros(3)), Trained(torch.ones(3)), "x.accuracy has other values", True),
        (Trained(torch.ones(3), 4), Trained(torch.ones(3)), "x.epochs is 4, expected 3", True),
        (Trained(torch.ones(3) * 1.001, 3, 2.0), Trained(torch.ones(3)), "^Right", True),
        (torch.ones(1).double(), {"a": 1}, "Tensor .*, expected a dict with the keys .'a'", False),
        ({"b": 1}, {"a": 1}, "keys .'b'.*, expected .* keys .'a'", False),
        (torch.ones(2) * 1.001, torch.ones(2), "x has other values", True),
        ([1, torch.ones(2)], (2, torch.ones(3)), r"x.1. .* shape .2,.*expected", False),
        (torch.ones(2).double(), torch.ones(2), "float64, expected .*float32", False),
        (nads(seconds=1, date="now"), nads(seconds=2, date="then", readouts=8), "^Right", True),
        (nads(5), nads(), "x.'num_networks'. is 5, expected 4", True),
        (nads(5, size=3), nads(), "x.'directions'. .* shape .3, 1, 1, 3", False),
        (torch.nn.Linear(2, 3), torch.nn.Linear(2, 3), "^Right", True),
        (torch.nn.Linear(4, 3), torch.nn.Linear(2, 3), "x.'weight'. .* shape .3, 4.", False),
    ],
)
def test_a_check_says_in_words_what_is_wrong(capsys, found, ours, said, usable):
    assert gaps.checked(found, lambda: ours, "nc.train", "x") is (found if usable else ours)
    assert re.search(said, capsys.readouterr().out)


@pytest.mark.parametrize("form", [iter, list, tuple])
def test_several_values_may_have_any_form(capsys, form):
    first, second = gaps.checked(form([1, 2]), lambda: iter([1, 2]), "nc.train", "x")
    assert (first, second) == (1, 2) and capsys.readouterr().out == "Right.\n"
    gaps.checked(form([1, 3]), lambda: iter([1, 2]), "nc.train", "x")
    assert "x[1] is 3, expected 2" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("solved", [False, True])
@pytest.mark.parametrize("name", ["01_directional_bias", "04_pooling_theory"])
def test_notebooks_of_both_sessions_run_with_gaps_and_solved(name, solved):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    count = gaps.notebook_with_gaps(notebook, solved)
    assert count
    for cell in notebook.cells:
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = cell.source.replace('preset = "auto"', 'preset = "smoke"')
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
    assert checks(notebook) == ["Right." if solved else "Still a gap"] * count


def checks(notebook):
    """Return the first words of what the checks of an executed notebook with gaps print."""
    said = [
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.source.startswith("#@title Check")
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stdout"
    ]
    return [re.match("Right.|Still a gap|", text)[0] for text in said]


def test_only_live_cells_that_a_reader_sees_have_gaps(tmp_path):
    cell = "a = nc.flip(x)"
    cells = [nbformat.v4.new_markdown_cell("# Title")]
    cells += [
        nbformat.v4.new_code_cell(cell, metadata={"tags": tags}) for tags in ([], ["hide-input"])
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert gaps.notebook_with_gaps(notebook) == 1
    assert [one.source == cell for one in notebook.cells if one.cell_type == "code"] == [
        False,  # the gap
        False,  # its check
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
    names = re.findall(r'href="../_static/gaps/(\w+).ipynb"', linked)
    assert set(names) == set(counts) and "<!-- gaps" not in linked


@pytest.mark.parametrize("session", [1, 2])
def test_slides_describe_figures_as_their_chapters_do_and_last_ninety_minutes(session):
    described = {}
    for path in ROOT.glob("notebooks/*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if name := cell.metadata.get("mystnb", {}).get("figure", {}).get("name"):
                described[name] = cell.metadata["mystnb"]["image"]["alt"]
    text = (ROOT / "book" / f"slides_{session}.md").read_text("utf8")
    figures = dict(re.findall(r"thumbnails/([\w-]+)\.png\n:alt: (.*)", text))
    assert len(figures) == text.count("thumbnails/") > 4
    assert {name: described.get(name) for name in figures} == figures
    assert sum(map(int, re.findall(r"\((\d+) minutes\)", text))) == 90


def test_links_of_the_course_lead_to_sections():
    text = (ROOT / "book" / "course.md").read_text("utf8")
    links = re.findall(r"\]\(([\w./]+)#([\w-]+)\)", text)
    assert len(links) > 4
    for path, anchor in links:
        source = (ROOT / "book" / path).read_text("utf8")
        if path.endswith(".ipynb"):
            cells = nbformat.reads(source, as_version=4).cells
            source = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        headings = re.findall(r"^#+ (.*)$", source, re.MULTILINE)
        slugs = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
        assert anchor in slugs, path
