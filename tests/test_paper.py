"""The page *The paper, figure by figure*: every item has a row, and all that a row names exists."""

import base64
import re

import nbformat
import pytest
from conftest import ROOT
from nads_book import claims
from nads_book.claims import paper

CHAPTERS = sorted(ROOT.glob("book/chapters/*.md"))
LABELS = {
    name for path in CHAPTERS for name in re.findall(r"name: (fig-[\w-]+)", path.read_text("utf8"))
}
PICTURES = {label: paper.Thumbnail(b"", f"alt of {label}") for label in LABELS}
ITEM = '[["1"]]\nwhere = "Fig. 1"\nsays = "x"\n'


@pytest.fixture(scope="module")
def register():
    return {one.id: one for one in claims.load_retired()} | claims.load()


def test_every_item_has_a_card_with_the_signs_of_the_register(register):
    sections = paper.load_items(register)
    items = [item for section in sections.values() for item in section]
    assert len(items) == (ROOT / "book" / "paper.toml").read_text("utf8").count("\nsays = ")
    for item in items:
        row = paper.card(item, register, PICTURES)
        assert item.where in row and item.says in row and item.note in row
        for claim in map(register.get, item.claims):
            assert (claims.conclusion(claim) if claim.reason else paper.badge(claim)) in row
        if item.figure:
            assert f"thumbnails/{item.figure}.png\n" in row
        if item.page:
            path = (ROOT / "book" / item.page).resolve()
            assert any(path.with_suffix(ending).exists() for ending in (".md", ".ipynb")), item.page
        for figure in item.trained:
            assert re.search(r"\d+ of \d+ networks", row), figure


def test_all_figures_of_the_paper_its_lemmas_and_equations_are_there(register):
    places = " ".join(item.where for items in paper.load_items(register).values() for item in items)
    assert {f"Fig. {number}" for number in range(1, 9)} <= set(re.findall(r"Fig\. \d", places))
    for place in ("Theorem 1", "Lemma 1", "Lemma 2", "Definition 1", "ζ"):
        assert place in places
    assert {*"123456"} <= set(re.findall(r"[Ee]q\. \((\d)\)", places))
    assert {*"12345"} <= set(re.findall(r"Footnote (\d)", places))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (ITEM, "nothing was found"),
        (ITEM + 'claims = ["gone"]', "no claim 'gone'"),
        (ITEM + 'note = "x"', "no item has 'errata-eq1'"),
        (ITEM + 'notes = "x"', "notes"),
    ],
)
def test_what_the_list_lacks_is_an_error(tmp_path, register, text, problem):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "paper.toml").write_text(text)
    with pytest.raises(claims.ClaimError, match=problem):
        paper.load_items({"errata-eq1": register["errata-eq1"]}, tmp_path)


def test_a_statement_of_the_paper_has_its_verdict_and_what_was_measured(register):
    claim = claims.Claim("errata-x", "falsified", answer="no; it does not", measured="24 settings.")
    claim.counterexample, claim.function = "D = 3", "module.function"
    text, folded = paper.verdict(claim), paper.decided_by(claim)
    assert "**no**; it does not. 24 settings." in text and "D = 3" in text
    assert "`module.function`" in folded


def test_thumbnails_are_the_pictures_of_executed_chapters(tmp_path):
    picture = {"image/png": base64.b64encode(b"picture").decode()}
    output = nbformat.v4.new_output("display_data", picture)
    options = {"figure": {"name": "fig-a"}, "image": {"alt": "what it shows"}}
    cells = [nbformat.v4.new_code_cell("1", outputs=[output], metadata={"mystnb": options})]
    cells.append(nbformat.v4.new_code_cell("2"))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    found = paper.thumbnails([tmp_path / "a.ipynb"])
    assert found == {"fig-a": paper.Thumbnail(b"picture", "what it shows")}
