"""What a reader of the chapters sees in three situations: everything at hand, no photos, no published directions.

A chapter is executed at `smoke`; what is tested is the text of its cells that reach the page, and of their outputs.
"""

import os
import re
from pathlib import Path

import build
import nbformat
import pytest

import nads_core as nc

HIDDEN = {"remove-cell", "remove-output", "injected-parameters"}


def situations(tmp_path_factory):
    """Name the environment of each situation; None where this machine lacks what it needs."""
    empty = str(tmp_path_factory.mktemp("no-photos"))
    photos, reference = os.environ.get("NADS_DATA"), os.environ.get("NADS_REFERENCE")
    return {
        "everything": photos and reference and {"NADS_DATA": photos, "NADS_REFERENCE": reference},
        "no photos": {"NADS_DATA": empty, "NADS_DOWNLOAD": "0", "NADS_REFERENCE": reference or ""},
        "no references": {"NADS_DATA": photos or empty, "NADS_DOWNLOAD": "0", "NADS_REFERENCE": ""},
    }


def shown(notebook):
    """Return the text of an executed notebook that reaches the page: prose, captions, printed and displayed text."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        if HIDDEN & set(cell.metadata.get("tags", [])):
            continue
        figure = cell.metadata.get("mystnb", {})
        parts += [figure.get("figure", {}).get("caption", ""), figure.get("image", {}).get("alt", "")]
        for output in cell.outputs:
            data = output.get("data", {})
            parts.append(output.get("text") or data.get("text/markdown") or data.get("text/html") or "")
    return re.sub(r"\s+", " ", "\n".join(parts))


@pytest.fixture(scope="session")
def executed(tmp_path_factory):
    """Return a function from a chapter, such as "07_poison", and a situation to its page, a notebook with outputs."""
    environments, folder = situations(tmp_path_factory), Path(build.ROOT) / "_build" / "test"

    def look(chapter, situation):
        environment = environments[situation]
        if not environment:
            pytest.skip("NADS_DATA and NADS_REFERENCE name the photos and the published directions")
        place = folder / situation.replace(" ", "-")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            build.execute(f"notebooks/{chapter}", place, "smoke")
        notebook = nbformat.read(place / "executed" / "smoke" / f"{chapter}.ipynb", as_version=4)
        return build.with_byline(notebook)

    return look


@pytest.fixture(scope="session")
def reader_sees(executed):
    """Return a function from a chapter, such as "07_poison", and a situation to what its page says."""
    return lambda chapter, situation: shown(executed(chapter, situation))


# Chapters 07 to 09


ON_PHOTOS = ("07_poison", "08_flip")
STORED = {"07_poison": "fig7-lenet", "08_flip": "fig8-lenet"}
SEEN = [  # on pages of other machines, beside numbers that said something else
    "does what a linear classifier does", "behind a carrier nothing drops to zero", "All curves rise",
    "grey levels of 256", "LeNet's curve rises much earlier", "the answer is the hole, all of it",
    "The order of the NADs decides what is found", "and learns little else",
    "at the last index even this note is overlooked", "is ignored, even when it is always right",
    "does most of the damage", "Both answers are right", "the gap on test photos stays", "far beyond the interval",
    "Logistic regression is the same on all of them", "that no network notices", "does not know the word",
    "what lies late is overlooked", "less than two minutes", "within two minutes", "takes half a minute",
]  # fmt: skip


def title_block(page):
    """Return what a page says before its question, which is the first bold paragraph after the byline."""
    return re.search(r"^# .*?(?=\*\*(Which features|Would CIFAR-10))", page)[0]


def tables(notebook):
    """Return the tables that cells display."""
    texts = [
        output.get("data", {}).get("text/markdown", "") for cell in notebook.cells for output in cell.get("outputs", [])
    ]
    return [text for text in texts if text.startswith("|")]


@pytest.mark.parametrize("chapter", ON_PHOTOS)
def test_without_photos_the_title_block_says_so(reader_sees, chapter):
    block = title_block(reader_sees(chapter, "no photos"))
    assert "There are no photos here" in block and "says nothing about CIFAR-10" in block and "NADS_DATA" in block


@pytest.mark.parametrize("chapter", ON_PHOTOS)
def test_with_photos_the_title_block_names_them(reader_sees, chapter):
    page = reader_sees(chapter, "everything")
    assert re.search(r"Images: CIFAR-10[^,]*, [\d,]+ to train on", title_block(page))
    assert "There are no photos here" not in page and "live run learnt generated" not in page


@pytest.mark.parametrize("chapter", ON_PHOTOS)
def test_generated_numbers_share_no_table_with_those_of_cifar10(executed, chapter):
    rows = [text for text in tables(executed(chapter, "no photos")) if "generated images" in text]
    assert rows or chapter == "08_flip"
    assert not [text for text in rows if re.search("CIFAR-10|paper", text)]
    live = [text for text in tables(executed(chapter, "no photos")) if re.search(r"paper\b", text)]
    assert live and not [text for text in live if re.search("live|1,000 |500 ", text)]


@pytest.mark.parametrize("chapter", ON_PHOTOS)
def test_stored_results_are_shown_and_say_where_they_come_from(reader_sees, chapter):
    results = nc.load_results(STORED[chapter])
    seeds = len({row["seed"] for row in results.rows})
    made = [results.photos, results.provenance[-1]["device"], results.provenance[-1]["date"], f"({seeds} seed"]
    for situation in ("everything", "no photos"):
        page = reader_sees(chapter, situation)
        (line,) = re.findall(r"\*\*LeNet[^*]*\*\*: \d+ of \d+ networks.*?-\d\d\.", page)
        for told in (f"{len(results.rows)} of {results.num_units} networks", "50,000 training photos", *made):
            assert told in line


@pytest.mark.parametrize("chapter", ON_PHOTOS)
def test_captions_are_true_of_any_images(chapter):
    notebook = nbformat.read(Path(build.ROOT) / "notebooks" / f"{chapter}.ipynb", as_version=4)
    figures = [cell.metadata["mystnb"] for cell in notebook.cells if "mystnb" in cell.metadata]
    assert len(figures) >= 3
    for figure in figures:
        for text in (figure["figure"]["caption"], figure["image"]["alt"]):
            assert "photo" not in text or "paper's" in text  # CIFAR-10's own figure, whatever is learnt live


@pytest.mark.parametrize("situation", ["everything", "no photos"])
@pytest.mark.parametrize("chapter", [*ON_PHOTOS, "09_explorer"])
def test_nothing_is_said_that_was_once_false(reader_sees, chapter, situation):
    page = reader_sees(chapter, situation)
    assert not [sentence for sentence in SEEN if sentence in page]


def test_correlations_with_what_a_poison_removes_need_photos(reader_sees):
    there, lacking = (reader_sees("07_poison", situation) for situation in ("everything", "no photos"))
    assert re.search(r"with the size of what the poison removes by \*\*−0\.[6-9]\d\*\*", there)
    assert "with the size of what the poison removes by" not in lacking and "no correlations" in lacking
