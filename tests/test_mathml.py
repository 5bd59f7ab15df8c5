"""Formulas as MathML, without a book around them."""

import pytest
from bs4 import BeautifulSoup
from math_core import LatexError
from nads_book.site import mathml


def converted(tex, block=True):
    """Return the formula's element, less its annotation, and the annotation's text."""
    formula = BeautifulSoup(mathml.convert(tex, block), "html.parser").math
    return formula, formula.annotation.extract().get_text()


def test_a_formula_keeps_its_tex_and_its_place():
    tex = r"\operatorname{diag}(\mathbb E\,\lVert\mathcal N\rVert) < \tfrac12 \widehat{x}"
    for block in (False, True):
        formula, kept = converted(tex, block)
        assert kept == tex and (formula.get("display") == "block") == block
        assert not set("\\{}") & set(formula.get_text()), "no TeX is left"
        assert {"diag", "𝔼", "‖"} <= {part.get_text() for part in formula.select("mi, mo")}
        assert [part.get_text() for part in formula.mfrac.find_all("mn")] == ["1", "2"]


def test_lines_are_aligned_and_continued():
    formula, _ = converted("\\begin{aligned}\na &= b \\\\\n&+ c\n\\end{aligned}")
    assert [cell.get_text() for cell in formula.select("mtd")] == ["a", "=b", "", "+c"]
    assert formula.select("mtr")[1].mo["form"] == "infix", "TeX has a space behind that sign"
    cases, _ = converted(r"\begin{cases} 1 & x \\ 2 & y \end{cases}")
    assert len(cases.select("mtr")) == 2 and "{" in cases.mo


def test_what_cannot_be_converted_is_an_error():
    wrong = [r"\nosuch", r"\frac{1", r"a & b", r"a \\ b", "a\n\nb", r"\eqref{x}", "x^1^2"]
    for tex in [*wrong, r"\begin{align} a &= b \end{align}"]:
        with pytest.raises(LatexError, match="."):
            mathml.convert(tex, block=True)
