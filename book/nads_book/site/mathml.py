"""Sphinx's renderer of formulas: TeX becomes MathML while the book is built, so that pages need no
script to show it.

The TeX stays in each formula, as its annotation, for the search and for programs that read pages.
"""

from __future__ import annotations

import re

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

CONVERTER = LatexToMathML(annotation=True, fancy_error=False)
# What the converter accepts, but shows without line breaks, or with numbers that Sphinx does not
# know.
REJECTED = {
    r"\n[ \t]*\n": "a formula has no empty lines",
    r"\\(eq)?ref\b": "refer to formulas with the role {eq}",
    r"\\begin\{(equation|align|alignat|flalign|gather|multline)\}": "use aligned or gathered, and "
    "let Sphinx number it",
    r"(?s)^(?!.*\\begin).*?\\\\": "several lines need an environment, such as aligned",
}
CONTINUED = re.compile(
    r'(<mtd style="text-align: left[^>]*>)<mo[^>]*>([+−±∓])'
)  # a line that begins with a sign

logger = logging.getLogger(__name__)


def convert(tex: str, block: bool) -> str:
    r"""Convert a formula.

    Args:
        tex: formula without delimiters.
        block: whether it stands on a line of its own.

    Returns:
        A ``math`` element with the TeX as annotation.

    Raises:
        LatexError: for a formula that cannot be converted.

    >>> convert("x", block=False)  # doctest: +NORMALIZE_WHITESPACE
    '<math><semantics><mi>x</mi><annotation
    encoding="application/x-tex">x</annotation></semantics></math>'
    """
    tex = tex.strip()
    for pattern, advice in REJECTED.items():
        if found := re.search(pattern, tex):
            raise LatexError(f"{found[0]!r}: {advice}")
    formula = CONVERTER.convert_with_local_state(tex, displaystyle=block)
    return CONTINUED.sub(r'\1<mo form="infix">\2', formula)


def visit(self: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula in a line, or on a line of its own, in a box that scrolls where it is too
    wide, with its number. One that cannot be converted is a warning, which ends the build.
    """
    block = isinstance(node, nodes.math_block)
    tag, formula = ("div" if block else "span"), ""
    try:
        formula = convert(node.astext(), block)
    except LatexError as error:
        logger.warning("no MathML for the formula %r: %s", node.astext(), error, location=node)
    self.body.append(self.starttag(node, tag, "", CLASS="math notranslate nohighlight"))
    self.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    if node.get("number"):
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(f"</{tag}>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit, None), (visit, None))
