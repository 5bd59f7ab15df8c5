"""CONTRIBUTING.md, done: what its lists name is all that has to be touched."""

import pkgutil
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

import nads_core as nc
from nads_core.__main__ import main
from nads_core.directions import SmoothedGradient
from nads_core.theory import errata
from nads_core.theory.checks import Check

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf8")


def test_a_list_names_at_most_three_places_that_are_there():
    lists = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
    assert len(lists) == 5
    for section in lists:
        items = re.findall(r"^- (.*)", section, re.MULTILINE)
        assert 2 <= len(items) <= 3
        for place in re.findall(r"`((?:nads_core|book|notebooks|tests|_toc)[\w/.]*)`", section):
            if re.match(r"nads_core\.[a-z_.]+\.\w+$", place):  # a name in a module
                assert pkgutil.resolve_name(place)
            else:
                assert "NN_name" in place or (ROOT / place).exists(), place


def test_an_architecture(monkeypatch, tmp_path):
    class TwoLayers(nn.Sequential):
        def __init__(self, in_channels, image_size, num_classes, width=7):
            pixels = in_channels * image_size**2
            super().__init__(nn.Flatten(), nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, num_classes))

    added = nc.Architecture("twolayers", TwoLayers, symmetries=("flip_rows",))
    monkeypatch.setitem(nc.ARCHITECTURES, added.name, added)
    path = tmp_path / "x.npz"
    options = ["--out", str(path), "--num-networks", "8", "--image-shape", "1", "8", "8", "--device", "cpu"]
    assert main(["compute", "twolayers", *options]) == 0
    assert nc.NADs.load(path).provenance["symmetries"] == ["flip_rows"]
    job = nc.Experiment("fig1", added, "smoke", ({"frequency": [0, 2], "seed": 0},), nc.SEPARABLE_RECIPE, 10, 10)
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
    build = pytest.importorskip("build", reason="what builds the book is not installed: pip install -e .[book]")
    jupytext = pytest.importorskip("jupytext")
    for folder in ("book/chapters", "notebooks"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("_toc.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    text = (ROOT / "book" / "chapters" / "02_pooling_theory.md").read_text("utf8")
    (tmp_path / "book" / "chapters" / "99_mine.md").write_text(text, "utf8")
    notebook = jupytext.read(tmp_path / "book" / "chapters" / "99_mine.md")
    jupytext.write(notebook, tmp_path / "notebooks" / "99_mine.ipynb")
    toc = tmp_path / "_toc.yml"
    line = "      - file: notebooks/08_flip\n"
    toc.write_text(toc.read_text().replace(line, f"{line}      - file: notebooks/99_mine\n"))
    assert build.chapters(tmp_path)[8] == "notebooks/99_mine" and len(build.chapters(tmp_path)) == 11
    assert build.execute("notebooks/99_mine", tmp_path / "_build", "smoke", tmp_path) > 0


def test_a_check(monkeypatch):
    def check_variance(num_samples, *, seed=0, factor=1.0):
        """The variance of a uniform number on [0, 1] is a twelfth; printed: a tenth."""
        x = torch.rand(num_samples, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        squares = (x - 0.5).square()
        error = float(squares.std() / num_samples**0.5)
        return [Check("variance", "uniform", float(squares.mean()), error, factor / 12, factor / 10)]

    monkeypatch.setitem(errata.STATEMENTS, "variance", errata.Statement("A variance", check_variance))
    statement = errata.STATEMENTS["variance"]
    assert statement.verdict(statement.check(10_000)) == "holds with a changed constant"
    assert "not settled" in errata.summary("variance", statement.check(10_000, factor=2.0))


def test_a_figure():
    pytest.importorskip("matplotlib").use("Agg")
    from nads_core.figures.style import styled, subplots

    @styled
    def plot_line(values):
        """Draw values against their index."""
        figure, axes = subplots()
        axes[0, 0].plot(values)
        return figure

    figure = plot_line([1.0, 2.0])
    assert figure.axes[0].lines[0].get_ydata().tolist() == [1.0, 2.0]
