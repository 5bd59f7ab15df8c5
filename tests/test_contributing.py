"""Extensions that CONTRIBUTING.md describes: each is made, and its lists name every file that has to change."""

import os
import pkgutil
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from conftest import NEEDS_BOOK
from nads_book.checks import Check, errata
from nads_book.studies import study_class
from torch import nn

import nads_core as nc
from nads_core.cli import main
from nads_core.directions import SmoothedGradient

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf8")


def test_every_place_that_is_named_exists():
    places = re.findall(r"`((?:nads_core|book|notebooks|tests|_toc)[\w/.]*)`", PAGE)
    assert len(places) > 10
    for place in places:
        if re.match(r"nads_core\.[a-z_.]+\.\w+$", place):  # a name in a module
            assert pkgutil.resolve_name(place)
        else:
            assert "NN_name" in place or (ROOT / place).exists(), place


NETWORK = """class TwoLayersNet(nn.Sequential):
    def __init__(self, in_channels: int, image_size: int, num_classes: int):
        pixels = in_channels * image_size**2
        super().__init__(nn.Flatten(), nn.Linear(pixels, 7), nn.ReLU(), nn.Linear(7, num_classes))


TWOLAYERS = Architecture("twolayers", TwoLayersNet, symmetries=("flip_rows",))
ARCHITECTURES = {"""
ESTIMATOR = """

@dataclass(frozen=True)
class Constant(Estimator):
    def draw(self, ensemble: Ensemble, block: int) -> Draw:
        return PointGradient().draw(ensemble, block)

    def contributions(self, ensemble: Ensemble, draw: Draw) -> Tensor:
        return torch.ones_like(draw.inputs).flatten(2)
"""
CHECK = """

def check_one(num_samples: int, *, seed: int = 0, factor: float = 1.0) -> list[Check]:
    return [Check("one", f"{n} ones", 1.0, 1e-9, factor, 1.0) for n in range(20)]
"""
FIGURE = """

@styled
def plot_line(values: Curve) -> Figure:
    figure, axes = subplots()
    axes[0, 0].plot(values)
    axes[0, 0].set(xlabel="index", ylabel="value")
    return figure
"""
ADDITIONS = {  # content of the lists: file -> texts in it with what takes their places; "" is its end
    "nads_core/networks/architectures.py": {"ARCHITECTURES = {": NETWORK, "DENSENET121)}": "DENSENET121, TWOLAYERS)}"},
    "tests/test_architectures.py": {"LAST_SIZE = {": 'LAST_SIZE = {"twolayers": 32, '},
    "nads_core/networks/__init__.py": {"LENET,": "LENET, TWOLAYERS,", '"LENET",': '"LENET", "TWOLAYERS",'},
    "nads_core/__init__.pyi": {
        "LENET,": "LENET, TWOLAYERS,", '"LENET",': '"LENET", "TWOLAYERS",',
        "    Dipole,": "    Dipole, Constant,", '"Dipole",': '"Dipole", "Constant",',
    },
    "book/api.md": {"": "`TWOLAYERS`, `Constant`"},
    "nads_core/directions/estimators.py": {"": ESTIMATOR},
    "nads_core/directions/__init__.py": {"    Dipole,": "    Dipole, Constant,", '"Dipole",': '"Dipole", "Constant",'},
    "nads_core/cli/compute.py": {'"dipole": ': '"constant": "Constant", "dipole": '},
    "book/nads_book/checks/lemma2.py": {"": CHECK},
    "book/nads_book/checks/__init__.py": {" check_lemma2,": " check_lemma2, check_one,"},
    "book/nads_book/checks/errata.toml": {"": '[one]\ntitle = "One"\n'},
    "book/nads_book/checks/errata.py": {
        "    check_lemma2,": "    check_lemma2, check_one,",
        '"lemma2": check_lemma2,': '"one": check_one, "lemma2": check_lemma2,',
    },
    "book/claims.toml": {"\neq1 = ": '\none = { verdict = "verified", statement = "One" }\neq1 = '},
    "tests/test_checks.py": {"AS_PRINTED = {": 'AS_PRINTED = {"one", '},
    "book/nads_book/figures/theory.py": {"": FIGURE},
    "book/nads_book/figures/__init__.pyi": {
        " plot_matrices,": " plot_line,\n    plot_matrices,",
        '"plot_matrices",': '"plot_line",\n    "plot_matrices",',
    },
    "tests/test_figures.py": {"CALLS = {": 'CALLS = {"plot_line": lambda: figures.plot_line([1.0, 2.0]), '},
    "book/chapters/04_pooling_theory.md": {"": "figures.plot_line(kept)"},
}  # fmt: skip
ASKING = (  # the tests that read what the lists name
    "test_architectures.py::test_declared_symmetries_hold_exactly[twolayers-flip_rows]",
    "test_architectures.py::test_output_shape",
    "test_waves.py::test_strata_divide_the_grid_by_equal_steps_of_log_energy",
    "test_published.py::test_every_reader_has_the_map_of_every_architecture",
    "test_prediction.py::test_frozen_predictions_are_those_of_the_directions_that_they_name",
    "test_book.py::test_api_page_names_everything_public",
    "test_checks.py::test_every_statement_has_a_check_and_every_check_a_statement",
    "test_checks.py::test_every_statement_is_pasted_by_a_page_or_told_by_its_evidence",
    "test_checks.py::test_verdicts[one]",
    "test_claims.py::test_every_statement_of_the_paper_is_registered",
    "test_figures.py::test_every_figure_is_drawn_in_a_chapter_or_a_recipe",
    "test_figures.py::test_a_figure_draws_labels_its_axes_and_leaves_settings_alone[plot_line]",
)
AT_WORK = """
import sys, nads_book as nb, nads_book.cli, nads_core as nc
from pathlib import Path
from nads_core.cli import main
assert all(Path(package.__file__).is_relative_to(Path.cwd()) for package in (nc, nb))
assert main("compute twolayers --estimator constant --num-networks 8 --image-shape 1 8 8 --out x.npz".split()) == 0
assert nads_book.cli.main("run fig2-twolayers --preset smoke --count 1 --out x.json".split()) == 0
nb.explorer.write_pages_data(Path("pages"))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Give a copy of the repository to which the lists were applied, and nothing else."""
    pytest.importorskip("nads_book.site.build", reason=NEEDS_BOOK)
    root = tmp_path_factory.mktemp("copy")
    for folder in ("nads_core", "book", "tests", "notebooks", "benchmarks", "tools"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (ROOT / "pyproject.toml", ROOT / "_toc.yml", ROOT / "CONTRIBUTING.md"):
        shutil.copy(path, root)
    for name, changes in ADDITIONS.items():
        text = (root / name).read_text("utf8")
        for there, instead in changes.items():
            assert there in text, f"{name} has no {there!r} any more: change ADDITIONS"
            text = text.replace(there, instead, 1) if there else text + instead
        (root / name).write_text(text, "utf8")
    return root


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [["-m", "pytest", "-q", *(f"tests/{test}" for test in ASKING)], ["-c", AT_WORK]],
    ids=["tests", "work"],
)
def test_the_lists_are_all_that_has_to_be_touched(copy, arguments):
    environment = os.environ | {
        "PYTHONPATH": f"{copy}{os.pathsep}{copy / 'book'}",
        "NADS_STRICT": "",
    }
    result = subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_what_was_touched_is_in_the_lists():
    for name in set(ADDITIONS) - {
        "book/chapters/04_pooling_theory.md"
    }:  # "the chapter that draws it"
        assert f"`{name}`" in PAGE or f"`{Path(name).parent.as_posix()}/`" in PAGE, name


def test_an_architecture(monkeypatch, tmp_path):
    class TwoLayers(nn.Sequential):
        def __init__(self, in_channels, image_size, num_classes, width=7):
            pixels = in_channels * image_size**2
            super().__init__(
                nn.Flatten(), nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, num_classes)
            )

    added = nc.Architecture("twolayers", TwoLayers, symmetries=("flip_rows",))
    monkeypatch.setitem(nc.ARCHITECTURES, added.name, added)
    path = tmp_path / "x.npz"
    options = [
        "--out",
        str(path),
        "--num-networks",
        "8",
        "--image-shape",
        "1",
        "8",
        "8",
        "--device",
        "cpu",
    ]
    assert main(["compute", "twolayers", *options]) == 0
    assert nc.NADs.load(path).provenance["symmetries"] == ["flip_rows"]
    job = study_class("fig1")(
        num_train=10, num_test=10, recipe=nc.SEPARABLE_RECIPE, architecture=added, preset="smoke",
        trainings=({"frequency": [0, 2], "seed": 0},),
    )  # fmt: skip
    assert job.name == "fig1-twolayers"


def test_an_estimator():
    @dataclass(frozen=True)
    class SignOfSmoothedGradient(SmoothedGradient):
        """The sign of each entry alone."""

        def contributions(self, ensemble, draw):
            return super().contributions(ensemble, draw).sign()

    options = dict(image_shape=(1, 8, 8), device="cpu", progress=False)
    nads = nc.compute_nads(nc.LOGREG, 8, estimator=SignOfSmoothedGradient(2), **options)
    assert "SignOfSmoothedGradient" in nads.provenance["estimator"]
    # Entries of magnitude 1: C has ones on its diagonal, before the symmetries and after.
    assert float(nads.eigenvalues.sum()) == pytest.approx(64, rel=0.05)


def test_a_chapter(tmp_path):
    build = pytest.importorskip("nads_book.site.build", reason=NEEDS_BOOK)
    jupytext, nbformat = pytest.importorskip("jupytext"), build.nbformat
    for folder in ("book/chapters", "notebooks"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("_toc.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    text = "---\nkernelspec: {name: python3, display_name: Python 3, language: python}\n---\n\n# Mine\n\n"
    text += '```{code-cell} ipython3\n:tags: [parameters]\n\npreset = "auto"\n```\n'
    (tmp_path / "book" / "chapters" / "99_mine.md").write_text(text, "utf8")
    notebook = jupytext.read(tmp_path / "book" / "chapters" / "99_mine.md")
    jupytext.write(notebook, tmp_path / "notebooks" / "99_mine.ipynb")
    toc = tmp_path / "_toc.yml"
    line = "      - file: notebooks/08_flip\n"
    toc.write_text(toc.read_text().replace(line, f"{line}      - file: notebooks/99_mine\n"))
    found = build.chapters(tmp_path)
    assert found[found.index("notebooks/08_flip") + 1] == "notebooks/99_mine"
    assert len(found) == len(build.chapters()) + 1
    cells = nbformat.read(
        build.Chapter("notebooks/99_mine", tmp_path / "_build", "smoke", tmp_path).source, 4
    ).cells
    assert [cell.cell_type for cell in cells] == ["markdown", "code"] and cells[1].metadata[
        "tags"
    ] == ["parameters"]


def test_a_check(monkeypatch):
    def check_variance(num_samples, *, seed=0, factor=1.0):
        """The variance of a uniform number on [0, 1] is a twelfth; printed: a tenth."""
        x = torch.rand(
            num_samples, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
        squares = (x - 0.5).square()
        error = float(squares.std() / num_samples**0.5)
        return [
            Check("variance", "uniform", float(squares.mean()), error, factor / 12, factor / 10)
        ]

    monkeypatch.setitem(
        errata.STATEMENTS, "variance", errata.Statement("A variance", check_variance)
    )
    statement = errata.STATEMENTS["variance"]
    assert statement.verdict(statement.check(10_000)) == "holds with a changed constant"
    assert "not settled" in errata.summary("variance", statement.check(10_000, factor=2.0))


def test_a_figure():
    pytest.importorskip("matplotlib").use("Agg")
    from nads_book.figures.style import styled, subplots

    @styled
    def plot_line(values):
        """Draw values against their index."""
        figure, axes = subplots()
        axes[0, 0].plot(values)
        return figure

    figure = plot_line([1.0, 2.0])
    assert figure.axes[0].lines[0].get_ydata().tolist() == [1.0, 2.0]
