"""The chapters, executed once at `smoke`: nothing warns, figures and tables are readable."""

import re
from pathlib import Path

import nbformat
import pytest
from conftest import WITH_VARIANTS, execute_once
from nads_book.site import build

# In `make test` one chapter stands for all.
CHAPTERS = [
    pytest.param(name, marks=[pytest.mark.slow] * (name != "05_theorem1"))
    for name in (Path(path).name for path in build.chapters())
]
# 7.1e+11, 16.000000 and -0.00 are a computer's way to write numbers.
UNREADABLE = re.compile(
    r"(?<![\w.])[-−]?\d+(?:\.\d+)?e[+-]\d+\b|\d\.0{6,}\b|(?<![\w.,-])[-−]0(?:\.0+)?(?![\w.])"
)


def executed(chapter, situation="here"):
    return nbformat.read(execute_once(chapter, situation), as_version=4)


def outputs(notebook):
    """Return the outputs that the page shows."""
    return [
        output
        for cell in notebook.cells
        if "remove-output" not in cell.metadata.get("tags", ())
        for output in cell.get("outputs", [])
    ]


def printed(notebook):
    """Return the texts that cells print or display."""
    return [
        output.get("text") or output.get("data", {}).get("text/markdown", "")
        for output in outputs(notebook)
    ]


def tables(notebook):
    """Return the tables that cells display, each a list of rows of texts, the head first."""
    found = []
    for text in printed(notebook):
        if lines := re.findall(r"^\|(.*)\|$", text, re.MULTILINE):
            found.append([[cell.strip() for cell in re.split(r"(?<!\\)\|", ln)] for ln in lines])
    return found


def figures(notebook):
    """Return the kinds of output of each numbered figure."""
    return [
        {kind for output in cell.outputs for kind in output.get("data", {})}
        for cell in notebook.cells
        if "figure" in cell.metadata.get("mystnb", {})
    ]


def unexpected_warnings(text):
    """Return the lines with warnings, but for that few networks, as smoke has, claim nothing."""
    lines = text.splitlines()
    return [line for line in lines if "Warning" in line and "nothing is claimed" not in line]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_runs_at_smoke_and_shows_what_it_should(chapter, published):
    notebook = executed(chapter)
    for output in outputs(notebook):
        if output.get("name") == "stderr":
            assert not unexpected_warnings(output.text)
        # A static page cannot show widgets.
        assert "application/vnd.jupyter.widget-view+json" not in output.get("data", {})
    drawn = figures(notebook)
    assert all({"image/png", "text/html"} & kinds for kinds in drawn)
    assert drawn or chapter == "13_explorer"
    variants = any("application/x-dark-png" in kinds for kinds in drawn)
    assert variants == (chapter == WITH_VARIANTS)
    for text in printed(notebook):
        assert not UNREADABLE.search(text), text
    for table in tables(notebook):
        assert len(table) > 2 and len({len(row) for row in table}) == 1, table
        assert not {"nan", "nan%", "None", "inf"} & {cell for row in table for cell in row}, table


@pytest.mark.slow
def test_a_chapter_without_photos_shows_generated_images_and_stored_results():
    notebook = executed("07_poison", "no data")
    notes = [text for text in printed(notebook) if "NADS_DATA" in text]
    assert notes[-1].startswith("`generated`") and notebook.cells[0].source.startswith("# Poison")
    assert all("image/png" in kinds for kinds in figures(notebook))
    assert any("4 trainings of LeNet" in text for text in printed(notebook))


def test_unreadable_numbers_are_recognised():
    assert all(map(UNREADABLE.search, ("0e+00", "7.1e+11", "16.000000", "-0.00", "−0.0 |")))
    readable = ("3.1 · 10⁻⁸", "−0.05", "1.0000", "10-0", "2026-11-01", "fdc3e-12x", "0.25")
    assert not any(map(UNREADABLE.search, readable))
