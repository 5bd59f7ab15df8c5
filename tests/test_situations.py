"""What a reader of the chapters sees in three situations: everything at hand, no photos, no published directions.

A chapter is executed at `smoke`; what is tested is the text of its cells that reach the page, and of their outputs.
"""

import os
import re
import shutil
from pathlib import Path

import nads_book as nb
import pytest
from conftest import BOOK, NEEDS_BOOK, execute_once

build = pytest.importorskip("build", reason=NEEDS_BOOK)
pages = build.pages
nbformat = build.nbformat

HIDDEN = {"remove-cell", "remove-output", "injected-parameters"}


def situations(tmp_path_factory):
    """Name the environment of each situation; None where this machine lacks what it needs. "here" changes nothing."""
    empty = str(tmp_path_factory.mktemp("no-photos"))
    photos, reference = os.environ.get("NADS_DATA"), os.environ.get("NADS_REFERENCE")
    return {
        "here": {},
        "everything": {"NADS_DATA": photos, "NADS_REFERENCE": reference} if photos and reference else None,
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
        if any(kind.startswith("image/") for output in cell.outputs for kind in output.get("data", {})):
            figure = cell.metadata.get("mystnb", {})  # without a picture its caption is not rendered
            parts += [figure.get("figure", {}).get("caption", ""), figure.get("image", {}).get("alt", "")]
        for output in cell.outputs:
            data = output.get("data", {})
            html = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", data.get("text/html", ""), flags=re.DOTALL)
            parts.append(output.get("text") or data.get("text/markdown") or html)
    return re.sub(r"\s+", " ", "\n".join(parts))


@pytest.fixture(scope="session")
def executed(tmp_path_factory):
    """Return a function from a chapter, such as "07_poison", and a situation to its page, a notebook with outputs."""
    environments = situations(tmp_path_factory)

    def look(chapter, situation):
        environment = environments[situation]
        if environment is None:
            pytest.skip("NADS_DATA and NADS_REFERENCE name the photos and the published directions")
        as_here = all(os.environ.get(name) == value for name, value in environment.items())
        place = BOOK if as_here else BOOK.parent / situation.replace(" ", "-")  # the book that the other tests build
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            notebook = nbformat.read(execute_once(chapter, place), as_version=4)
        return pages.with_byline(notebook)

    return look


@pytest.fixture(scope="session")
def reader_sees(executed):
    """Return a function from a chapter, such as "07_poison", and a situation to what its page says."""
    return lambda chapter, situation: shown(executed(chapter, situation))


# Chapters 01 and 06


@pytest.mark.parametrize("name", ["01_directional_bias", "06_nads_and_generalization"])
def test_chapters_without_photos_know_of_none(name):
    source = (Path(build.ROOT) / "book" / "chapters" / f"{name}.md").read_text("utf8")
    assert not re.search(r"load_images|NADS_DATA|fig[78]-", source) and (name[1] == "6" or "NADS_" not in source)


@pytest.mark.parametrize("situation", ["here", "no references"])
def test_everybody_sees_the_published_accuracies_beside_ours(reader_sees, situation):
    maps = reader_sees("01_directional_bias", "here")  # which knows neither photos nor published directions
    curves = reader_sees("06_nads_and_generalization", situation)
    for name in ("LogReg", "LeNet", "VGG-11", "ResNet-18", "DenseNet-121"):
        assert f"| {name} | published | 130 |" in maps
        assert name == "LogReg" or f"| {name}, paper | 264 |" in curves
    assert "| LeNet | **ours and published** | 130 |" in maps
    assert "| NAD | ours, LeNet | from | to | paper, LeNet |" in curves
    for page in (maps, curves):
        assert not re.search(r"\de[-+]\d|-\d\.\d|− ?0\.00|\bnan\b|\bNone\b", page)
        assert "within two minutes" not in page and "file is not at hand" not in page


def test_where_two_networks_learnt_too_little_the_page_does_not_say_that_they_learnt(reader_sees):
    page = reader_sees("01_directional_bias", "here")
    coarse = float(re.search(r"LeNet is right in \*\*([\d.]+)%\*\*", page)[1])
    assert (coarse > 65) == ("LeNet the coarse one" in page)
    live = re.search(r"\| LeNet without pooling \| [\d,]+ \| [\d.]+% \| ([\d.]+)% \|", page)
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
        "home ground of the dipole",
        "than their published LeNet directions",
        "differ by factors of",
    ):
        assert (words in page) == at_hand, words
    assert ("only ours are home ground here" in page) != at_hand


def test_statements_that_the_numbers_beside_them_contradicted_are_gone(reader_sees):
    maps, curves = (reader_sees(name, "here") for name in ("01_directional_bias", "06_nads_and_generalization"))
    for words in (
        "its own last layer could",
        "solutions that fit the training set",
        "learns its training images by heart",
    ):
        assert words not in maps, words
    for words in ("run out it does not", "no prediction", "mostly the order of those", "above all when", "tell little"):
        assert words not in curves, words
    law, measured = map(int, re.search(r"\*\*VGG-11\*\*: it says (\d+), and they fell at (\d+)", curves).groups())
    assert re.search(rf"\| VGG-11 \| 44 \| {law} \| [^|]+ \| {measured} \|", curves) and law > 10 * measured
    reached = re.findall(r"\| 0\.\d+ \| \d+ of 130 \| (\d+) \|", maps)  # steps to losses 0.3, 0.1 and 0.03
    assert len(reached) == 3 and sorted(map(int, reached)) == list(map(int, reached))


def test_the_introduction_says_of_the_densenet_what_its_published_accuracies_say():
    text = re.sub(r"\s+", " ", (build.ROOT / "book" / "intro.md").read_text("utf8"))
    densenet = list(nb.published.fourier_accuracies("densenet121").values())
    near_guessing, nearly_perfect = (sum(map(test, densenet)) for test in (lambda a: a < 0.55, lambda a: a > 0.99))
    assert set(nb.published.fourier_accuracies("logreg").values()) == {1.0}
    assert round(10 * near_guessing / len(densenet)) == 9 and 1 < nearly_perfect < 13
    assert "logistic regression is never wrong" in text
    assert "near guessing for nine in ten frequencies of the wave, and is nearly perfect for a few others" in text


# Chapters 02 to 05, and 10

COMPARED = (  # what chapter 5 says of the authors' directions, only where it has them
    "Published directions found: **LeNet, ResNet-18**",
    "rank correlation of all",
    "that our matrix gives to each published direction",
    "Each estimator of LeNet, and each way to finish the smoothed one, against the published directions:",
    "Of the first ten published directions the smoothed gradient finds",
    "Two things deserve suspicion",
)
CONCLUDED = (
    "The shipped results have",
    "the authors' dipole, 2 CPU threads",
    "It can be done",
    "times** sooner",
)  # in chapter 10
# The byline tells what a page took, and promises nothing.
PROMISED = r"on a laptop|half a minute|about a minute|(?<!computed in )\b[0-9]+ s on|minutes on a|on an idle"


@pytest.mark.parametrize("situation", ["everything", "no references"])
def test_chapter_5_speaks_of_published_directions_where_it_has_them(reader_sees, situation):
    text = reader_sees("05_nad_computation", situation)
    has_them = situation == "everything"
    assert [sentence in text for sentence in COMPARED] == [has_them] * len(COMPARED)
    assert ("None of them is at hand here, so ours are compared with nothing." in text) == (not has_them)
    assert "in these tables" not in text and "table above" not in text and "both ends" not in text
    assert not re.search(PROMISED, text)


def test_chapter_10_says_what_was_measured_here(reader_sees):
    text = reader_sees("10_scale", "here")
    assert not re.search(f"near the peak|near the limit|little is left|{PROMISED}", text)
    measured = dict(re.findall(r"\| (LeNet|ResNet-18) \|(?: [\d.,]+ \|){5} ([\d.]+) \|", text))  # together / limit
    deep, small = measured["ResNet-18"], measured["LeNet"]
    assert f"a ResNet-18 takes **{deep} times** its limit, a LeNet **{small} times**" in text
    assert all(sentence in text for sentence in CONCLUDED)
    assert re.search(r"is (below|, with all the networks that we allowed, not yet below) the tolerance", text)


def test_chapter_10_concludes_nothing_without_benchmarks(tmp_path):
    for folder in ("notebooks", "benchmarks/results"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("notebooks/10_scale.ipynb", "requirements.txt"):
        shutil.copy(Path(build.ROOT) / name, tmp_path / name)
    build.execute("notebooks/10_scale", tmp_path / "_build", "smoke", tmp_path)
    executed = tmp_path / "_build" / "executed" / "smoke" / "10_scale.ipynb"
    text = shown(nbformat.read(executed, as_version=4))
    assert "No shipped results are at hand." in text and text.count("No results of it are at hand here.") == 2
    assert not any(sentence in text for sentence in CONCLUDED) and "first directions from that run" not in text


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
    results = nb.load_results(STORED[chapter])
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
    figures = [cell.metadata["mystnb"] for cell in notebook.cells if "figure" in cell.metadata.get("mystnb", {})]
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
    assert re.search(r"with the size of what the poison removes by −0\.[6-9]\d \(−[01]\.\d\d to [+−]0\.\d\d\)", there)
    assert "with the size of what the poison removes by" not in lacking and "no correlations" in lacking
