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
            html = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", data.get("text/html", ""), flags=re.DOTALL)
            parts.append(output.get("text") or data.get("text/markdown") or html)
    return re.sub(r"\s+", " ", "\n".join(parts))


@pytest.fixture(scope="session")
def reader_sees(tmp_path_factory):
    """Return a function from a chapter, such as "07_poison", and a situation to what its page says."""
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
        return shown(nbformat.read(place / "executed" / "smoke" / f"{chapter}.ipynb", as_version=4))

    return look


# Chapters 01 and 06


@pytest.mark.parametrize("situation", ["everything", "no photos", "no references"])
def test_everybody_sees_the_published_accuracies_beside_ours(reader_sees, situation):
    maps, curves = (reader_sees(name, situation) for name in ("01_directional_bias", "06_nads_and_generalization"))
    for name in ("LogReg", "LeNet", "VGG-11", "ResNet-18", "DenseNet-121"):
        assert f"| {name} | published | 256 |" in maps
        assert name == "LogReg" or f"| {name}, paper | 264 |" in curves
    assert "| LeNet | **ours and published** | 130 |" in maps
    assert "| NAD | ours, LeNet | from | to | paper, LeNet |" in curves
    for page in (maps, curves):
        assert not re.search(r"\de[-+]\d|-\d\.\d|− ?0\.00|\bnan\b|\bNone\b", page)
        assert "within two minutes" not in page and "file is not at hand" not in page


def test_where_two_networks_learnt_too_little_the_page_does_not_say_that_they_learnt(reader_sees):
    page = reader_sees("01_directional_bias", "everything")
    coarse = float(re.search(r"LeNet is right in \*\*([\d.]+)%\*\*", page)[1])
    assert (coarse > 65) == ("LeNet the coarse one" in page)
    live = re.search(r"\| LeNet without pooling \| [\d.]+% \| ([\d.]+)% \|", page)
    assert (float(live[1]) > 58) == ("which blinds LeNet" in page)


@pytest.mark.parametrize("situation", ["everything", "no references"])
def test_the_authors_directions_are_compared_with_where_they_are_at_hand_and_nowhere_else(reader_sees, situation):
    page = reader_sees("06_nads_and_generalization", situation)
    at_hand = situation == "everything"
    for words in ("law, along theirs", "published NADs |", "dipole, the authors' |", "ResNet-18, paper | largest"):
        assert (words in page) == at_hand, words
    for words in (
        "The law expects a part of such gaps",
        "Where curves are steep, the law's scale",
        "differ by factors of",
    ):
        assert (words in page) == at_hand, words
    assert ("only ours are home ground here" in page) != at_hand


def test_the_introduction_says_of_the_densenet_what_its_published_accuracies_say():
    text = re.sub(r"\s+", " ", (build.ROOT / "book" / "intro.md").read_text("utf8"))
    densenet = list(nc.published.fourier_accuracies("densenet121").values())
    near_guessing, nearly_perfect = (sum(map(test, densenet)) for test in (lambda a: a < 0.55, lambda a: a > 0.99))
    assert set(nc.published.fourier_accuracies("logreg").values()) == {1.0}
    assert round(10 * near_guessing / len(densenet)) == 9 and 1 < nearly_perfect < 13
    assert "logistic regression is never wrong" in text
    assert "near guessing for nine in ten frequencies of the wave, and is nearly perfect for a few others" in text
