"""The register of claims: verdicts, marks in pages, preregistrations, and what is wrong when
results change.
"""

import re
import shutil

import nbformat
import numpy as np
import pytest
from conftest import git
from nads_book import claims, pages
from nads_book.claims.render import lost_by_holm
from nads_book.experiments import Results, formatting, results_path
from nads_book.experiments.evidence import Evidence, evidence
from nads_book.studies import experiment

REGISTER = """
[errata]
lemma = { verdict = "falsified", statement = "A lemma." }

[measured]
statement = "It is 3."
verdict = "verified"
falsified_by = "Another number."
sources = ["book/results/job.json"]

[derived]
statement = "So is that."
verdict = "verified"
falsified_by = "The other one."
follows = { measured = "verified", errata-lemma = "falsified" }
"""
RETIRED = """
[old]
statement = "It was 2."
verdict = "toy"
holds = false
prediction = "met"
measure = "points"
value = 2
reason = "too small"
merged_into = "measured"
"""
TAKEAWAY = "<!-- takeaway -->\n**Takeaway**\n\n{}\n<!-- end of takeaway -->\n"
SIGNS = "✓ holds, ◐ in a smaller experiment, ? open"
MARKED = "No. It is 3 (eq. 4).<!-- claim: measured --> So is *that*.<!-- claim: derived -->"


# Verdicts


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((True, "paper", None, None), "verified"),
        ((True, "theory", (1, 2), 0), "verified"),
        ((False, "narrow", None, None), "toy"),
        ((True, "epochs50", None, None), "toy"),
        ((None, "paper", None, None), "inconclusive"),
        ((True, "paper", (-1, 1), 0), "inconclusive"),
        ((True, "paper", (None, 1), None), "inconclusive"),
    ],
)
def test_the_verdict_depends_on_outcome_size_and_interval(arguments, expected):
    assert claims.verdict(*arguments) == expected


# Evidence


def test_a_claim_of_stored_results_takes_size_seeds_and_trainings_from_them():
    rows = [{"seed": 0}, {"seed": 1}, {"seed": 1}]
    small, full = (
        Results({}, rows, [], experiment("fig1-lenet", preset)) for preset in ("laptop", "paper")
    )
    a = evidence(np.bool_(True), np.float32(0.5), 0, np.nan, results=[full, small])
    b = evidence(False, results=[full])
    assert (a.holds, a.value, a.interval) == (True, 0.5, (0.0, None))
    assert (a.size, a.num_seeds, a.num_trainings) == ("laptop", 2, 6)
    assert a.sources == ("book/results/fig1-lenet.json", "book/results/fig1-lenet.laptop.json")
    assert (b.holds, b.size, b.num_trainings) == (False, "paper", 3)


# Pages


@pytest.fixture
def book(tmp_path):
    """Return the root of a book with a register, a chapter, its executed notebook, and results."""
    for folder in ("book/results", "notebooks", "executed"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "book" / "claims.toml").write_text(REGISTER)
    shutil.copy(results_path("fig8-lenet"), tmp_path / "book" / "results" / "job.json")
    (tmp_path / "book" / "errata.md").write_text("# Errata\n")
    (tmp_path / "README.md").write_text("# A book\n\nIt is\n3.<!-- claim: measured -->\n")
    write(tmp_path)
    return tmp_path


def write(root, text=MARKED, signs=SIGNS):
    """Write a chapter, and its executed notebook with the places of two claims."""
    takeaway = nbformat.v4.new_markdown_cell(f"# Small\n\n{signs}\n\n" + TAKEAWAY.format(text))
    cells = [takeaway, nbformat.v4.new_code_cell("1")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), root / "notebooks" / "01_small.ipynb")
    records = [{formatting.CLAIM: {"id": key}} for key in ("measured", "errata-lemma")]
    cells[1].outputs = [nbformat.v4.new_output("display_data", record) for record in records]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), root / "executed" / "01_small.ipynb")


def collected(root, holds=True, size="theory", decided=("measured", "errata-lemma")):
    """Decide the claims as their functions would, and as the executed notebook shows them."""
    measured = Evidence(holds, value=3.0, size=size, num_seeds=1, num_trainings=2)
    found = {"measured": measured, "errata-lemma": Evidence(False, size="theory")}
    found = {key: found[key] for key in decided}
    return claims.decide(found, claims.places((root / "executed").glob("*.ipynb")), root)


def test_marked_sentences_pass(book):
    claims.check_pages(book)
    found = collected(book)
    assert found["measured"].pages == ["notebooks/01_small", "README"]
    assert claims.problems(found.values(), book) == []


@pytest.mark.parametrize(
    ("text", "signs", "problem"),
    [
        (f"{MARKED} And this is new.", SIGNS, "“And this is new.”"),
        ("It is $x$. So is that.<!-- claim: derived -->", SIGNS, "“It is $x$.”"),
        (MARKED, "✓ holds, ? open", "does not explain ◐"),
    ],
)
def test_a_takeaway_states_claims_and_a_chapter_explains_its_signs(book, text, signs, problem):
    write(book, text, signs)
    with pytest.raises(claims.ClaimError, match=f"01_small.*{re.escape(problem)}"):
        claims.check_pages(book)


NEW = '[new]\nverdict = "toy"\n'


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("README.md", "It is 4.<!-- claim: four -->\n", "README refers to 'four'"),
        ("book/claims.toml", NEW.replace("toy", "true"), "'new'.*'true'"),
        ("book/claims.toml", NEW, "falsified_by"),
        ("book/claims.toml", f'{NEW}prediction = "perhaps"', "perhaps"),
        ("book/claims.toml", f'{NEW}preregistered = "x.toml"', "'x.toml': name two events"),
        ("book/claims.toml", f'{NEW}falsified_by = "x"\nfollows = {{gone = "toy"}}', "'gone'"),
        ("book/claims.toml", REGISTER.replace("verified", "falsified", 1), "what was found"),
        ("book/retired.toml", RETIRED.replace('"measured"', '"gone"'), "'gone'"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(book, file, text, named):
    (book / file).write_text(text)
    with pytest.raises(claims.ClaimError, match=named):
        claims.check_pages(book)


# What flips


@pytest.mark.parametrize(
    ("change", "evidence", "expected"),
    [
        (
            ("", ""),
            {"holds": False},
            ["measured: registered as verified, is now falsified", "derived: "],
        ),
        (
            ('"verified"\nf', '"toy"\nf'),
            {"holds": False, "size": "laptop"},
            ["measured: registered as toy, does not hold", "derived: "],
        ),
        (
            ("", ""),
            {"decided": ["errata-lemma"]},
            ["measured: no page decides it", "derived: no page decides it"],
        ),
        (
            ("job.json", "other.json"),
            {},
            ["measured: book/results/other.json is missing", "derived: book/results/other.json"],
        ),
    ],
    ids=["evidence", "toy", "undecided", "results"],
)
def test_what_flips_or_is_missing_is_found_with_what_follows_from_it(
    book, change, evidence, expected
):
    (book / "book" / "claims.toml").write_text(REGISTER.replace(*change, 1))
    problems = claims.problems(collected(book, **evidence).values(), book)
    for problem, beginning in zip(problems, expected, strict=True):
        assert problem.startswith(beginning)


def test_a_record_that_is_not_registered_fails(book):
    (book / "book" / "claims.toml").write_text("")
    with pytest.raises(claims.ClaimError, match="measured is decided"):
        collected(book)


# Rules that many claims share


def test_a_decision_of_no_claim_or_a_second_one_is_an_error(monkeypatch):
    with pytest.raises(claims.ClaimError, match="'gone' is decided"):
        claims.decides("gone")
    pages.decisions()
    with pytest.raises(claims.ClaimError, match="two functions decide 'comb'"):
        claims.decides("comb")(lambda: None)


# What a reader sees


def test_a_chapter_shows_the_conclusions_that_it_asks_for(book):
    notebook = nbformat.read(book / "executed" / "01_small.ipynb", as_version=4)
    notebook.cells[1].outputs[0].data[formatting.CLAIM]["shown"] = True
    found = collected(book)
    assert "*does not hold*" in claims.conclusion(found["errata-lemma"])
    _, anchors, code, shown = claims.with_claims(notebook, found).cells
    assert 'id="evidence-errata-lemma"' in anchors.source and code.outputs == []
    assert "It is 3." in shown.source


def test_the_page_has_a_card_per_claim_the_predictions_and_what_was_retired(book):
    (book / "book" / "retired.toml").write_text(RETIRED)
    found = collected(book)
    found["measured"].prediction = "failed"
    page = claims.page("<!-- claims -->", found, book)
    for key in found:
        assert page.count(f'id="{key}"') == 1
    assert (
        '| **otherwise** | <a href="#measured">measured</a> | It is 3. | holds | value: 3 |' in page
    )
    assert "| as predicted | old | It was 2. | does not hold | points: 2 |" in page
    assert 'too small: <a href="#measured">measured</a>' in page
    assert "Of 2 registered predictions 1 came as predicted, 1 came otherwise" in page


def test_holm_takes_back_the_weakest_of_many_decisions():
    def claim(key, value, null=0.0):
        return claims.Claim(
            key, "verified", value=value, interval=[value - 1, value + 1], null=null
        )

    strong, weak, none = claim("strong", 3.0), claim("weak", 1.05), claim("none", 0.5)
    assert lost_by_holm([strong, weak, none]) == (3, ["weak"])
    assert lost_by_holm([claim("below", -1.05), strong]) == (2, [])


# Predictions and sizes


@pytest.mark.parametrize(
    ("sources", "size"),
    [
        (["book/results/fig1-lenet.json"], True),
        (["book/nads_book/published/fig1.csv"], True),
        (["book/results/fig1-lenet.json", "book/results/law-lenet.json"], False),
    ],
)
def test_only_what_the_paper_did_is_at_its_size(book, sources, size):
    claim = collected(book)["measured"]
    claim.sources = sources
    claim.size = "paper"
    assert claim.at_paper_size is size


# Preregistrations


def commit(root, **files):
    """Write files, and commit them and whatever else has changed."""
    for name, text in files.items():
        (root / name).write_text(text)
    git(root, "add", ".")
    git(root, "commit", "-m", "x")


@pytest.fixture
def history(tmp_path):
    """Return a repository with a prediction, which was renamed, and later results."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    root = tmp_path / "repository"
    (root / "data").mkdir(parents=True)
    git(root, "init")
    for name in ("data/guess.json", "data/result.json"):
        commit(root, **{name: f"{name}\n" * 20})
    (root / "data/guess.json").rename(root / "data/prediction.json")
    commit(root)
    return root


def test_a_prediction_is_older_than_its_results(history):
    prediction, result, missing = (
        f"data/{name}.json" for name in ("prediction", "result", "missing")
    )
    for first, then, expected, said in (
        (prediction, result, True, "is older than"),
        (result, prediction, False, "**not**"),
        ("HEAD~2", "HEAD~1", True, "is older than"),
        ("HEAD", "HEAD", False, "**not**"),
        (missing, result, False, "data/missing.json is not in the git history"),
    ):
        older, how = claims.first_in_history(first, then, history)
        assert older is expected and said in how


RULE = 'known = "{known}"\n[criteria]\nloss = {{ at_most = {limit} }}\n'


@pytest.mark.parametrize(
    "before, after, older",
    [
        ([], [{"known": "nothing"}], True),  # prose may be corrected
        ([{"limit": 2}], [], True),
        ([], [{"limit": 3}], False),
        ([], [{"limit": 3}, {}], False),  # changed and changed back
    ],
)
def test_rules_that_change_after_the_results_are_no_registration(history, before, after, older):
    rule = "data/rule.toml"
    for values in [{}, *before, "results", *after]:
        if values == "results":
            commit(history, **{"data/new.json": "{}"})
        else:
            commit(history, **{rule: RULE.format(**{"known": "all", "limit": 1} | values)})
    found, how = claims.first_in_history(rule, "data/new.json", history)
    assert found is older
    assert ("rules were changed" in how) == bool(before or not older)
    (history / rule).write_text(RULE.format(known="all", limit=9))
    found, how = claims.first_in_history(rule, "data/new.json", history)
    assert found is False and rule in how  # what is judged by was never committed


def test_without_history_a_preregistration_is_not_checked_and_says_so(history, tmp_path):
    arguments = ("data/prediction.json", "data/result.json")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--depth", "1", history.as_uri(), shallow)
    older, how = claims.first_in_history(*arguments, shallow)
    assert older is None and how.startswith("not checked")
    shutil.rmtree(shallow / ".git")
    assert claims.first_in_history(*arguments, shallow) == (None, how)


@pytest.mark.parametrize(
    ("first", "then", "verdict"),
    [
        ("data/prediction.json", "data/result.json", "verified"),
        ("data/result.json", "data/prediction.json", "falsified"),
    ],
)
def test_a_claim_preregistered_too_late_is_falsified(book, history, first, then, verdict):
    shutil.copytree(history, book, dirs_exist_ok=True)
    path = book / "book" / "claims.toml"
    entry = f'[measured]\npreregistered = {{ first = "{first}", then = "{then}" }}'
    path.write_text(REGISTER.replace("[measured]", entry))
    assert collected(book)["measured"].verdict == verdict
