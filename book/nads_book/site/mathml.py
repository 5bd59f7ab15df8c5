"""Sphinx's renderer of formulas: TeX becomes MathML while the book is built, so that pages need no
script to show it.

The TeX stays in each formula, as its annotation, for the search and for programs that read pages.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

CONVERTER = LatexToMathML(annotation=True, fancy_error=False)
# What the converter accepts, but shows without line breaks, or with numbers that Sphinx does not
# know.
REJECTED = {
    r"\n[ \t]*\n": "a formula has no empty lines",
    r"\\(eq)?ref\b": "refer to formulas with the role {eq}",
    r"\\begin\{(equation|align|alignat|flalign|gather|multline)\}": "use aligned or gathered, and "
    "let Sphinx number it",
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
        ValueError: for a formula that cannot be converted.

    >>> convert("x", block=False)  # doctest: +NORMALIZE_WHITESPACE
    '<math><semantics><mi>x</mi><annotation
    encoding="application/x-tex">x</annotation></semantics></math>'
    """
    tex = tex.strip()
    for pattern, advice in REJECTED.items():
        if found := re.search(pattern, tex):
            raise ValueError(f"{found[0]!r}: {advice}")
    if r"\\" in tex and r"\begin" not in tex:
        raise ValueError(r"lines that end with \\ need an environment, such as aligned")
    try:
        found = CONVERTER.convert_with_local_state(tex, displaystyle=block)
    except LatexError as error:
        raise ValueError(f"character {error}") from None
    return CONTINUED.sub(r'\1<mo form="infix">\2', found)


def render(node: nodes.Node, block: bool) -> str:
    """Convert a formula of a page; one that cannot be converted is a warning, which ends the build,
    and stays TeX.
    """
    tex = node.astext()
    try:
        return convert(tex, block)
    except ValueError as error:
        logger.warning("no MathML for the formula %r: %s", tex, error, location=node)
        return f"<code>{html.escape(tex)}</code>"


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in a line."""
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    self.body.append(f"{render(node, block=False)}</span>")
    raise nodes.SkipNode


def visit_math_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, in a box that scrolls where it is too wide, with its
    number.
    """
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    self.body.append(f'<div class="formula">{render(node, block=True)}</div>')
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
