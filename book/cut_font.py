"""Make the font of the formulas from STIX Two Math: ``python book/cut_font.py STIXTwoMath-Regular.ttf``.

Run it when a formula needs a character that the font lacks: add the character to the ``unicode-range`` in `book.css`
first. It needs fontTools with brotli (``pip install fonttools brotli``). STIX Two Math is at
https://github.com/stipub/stixfonts; `_static/STIXTwoMath.txt` has its licence.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

STATIC = Path(__file__).parent / "_static"
RADICAL_WIDTH = 860  # thousandths of an em


def ranges(css: str) -> list[int]:
    """Return the characters of the ``unicode-range`` in a style sheet."""
    listed = re.search(r"unicode-range: ([^;]+);", css)
    if listed is None:
        raise ValueError("the style sheet has no unicode-range")
    found: list[int] = []
    for part in re.findall(r"U\+([0-9A-F]+)(?:-([0-9A-F]+))?", listed[1]):
        found += range(int(part[0], 16), int(part[1] or part[0], 16) + 1)
    return found


def equal_radicals(font: TTFont) -> None:
    """Give root signs of all heights the same width: Chromium leaves room for the widest behind every root."""
    variants = font["MATH"].table.MathVariants
    base = font.getBestCmap()[ord("√")]
    signs = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(base)]
    names = {base, *(record.VariantGlyph for record in signs.MathGlyphVariantRecord)}
    names |= {part.glyph for part in signs.GlyphAssembly.PartRecords}
    for name in names:
        glyph, (width, bearing) = font["glyf"][name], font["hmtx"][name]
        if glyph.isComposite():
            raise ValueError(f"{name} is composed of other glyphs, which cannot be scaled")
        glyph.coordinates.scale((RADICAL_WIDTH / width, 1))
        glyph.coordinates.toInt()
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (RADICAL_WIDTH, round(bearing * RADICAL_WIDTH / width))


def main() -> int:
    """Write ``_static/STIXTwoMath.woff2``."""
    font = TTFont(sys.argv[1])
    equal_radicals(font)
    options = Options(hinting=False, layout_features=["ssty", "dtls", "flac", "ccmp", "mark", "mkmk", "kern"])
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 7, 13, 14]  # with copyright and licence
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=ranges((STATIC / "book.css").read_text("utf8")))
    subsetter.subset(font)
    font.flavor = "woff2"
    target = STATIC / "STIXTwoMath.woff2"
    font.save(target)
    print(f"{target}: {target.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
