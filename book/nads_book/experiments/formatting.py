"""What the chapters print with: numbers as people write them, sentences, tables and claims."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nads_book.experiments import Results
    from nads_core.data import ImageSet

LABELS = {
    "logreg": "LogReg",
    "lenet": "LeNet",
    "vgg11": "VGG-11",
    "resnet18": "ResNet-18",
    "densenet121": "DenseNet-121",
}
CLAIM = "application/vnd.nads.claim+json"  # type of the output that marks the place of a claim
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def readable(number: float, digits: int = 2) -> str:
    """Return a number in a few significant digits, without trailing zeros and without a computer's
    exponent.

    Args:
        number: anything that `float` takes.
        digits: significant digits; whole numbers below 100,000 keep all of theirs.

    >>> [readable(x) for x in (3.14e-8, 16.0, 0.5, -0.0, 1234, 7.1e11)]
    ['3.1 · 10⁻⁸', '16', '0.5', '0', '1,234', '7.1 · 10¹¹']
    """
    number = float(number)
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    rounded = float(f"{number:.{digits - 1}e}")
    if abs(number) < 1e5 and number == round(number):
        text = f"{number + 0.0:,.0f}"
    elif 1e-3 <= abs(rounded) < 1e5:
        text = f"{rounded:,}".removesuffix(".0")
    else:
        mantissa, exponent = f"{rounded:e}".split("e")
        text = f"{float(mantissa):g} · 10{str(int(exponent)).translate(_RAISED)}"
    return text.replace("-", "−")


def fixed(value: float, digits: int = 1, sign: bool = False) -> str:
    """Return a number with a fixed count of decimals, never as −0; a missing one as a dash.

    Args:
        value: anything that `float` takes.
        digits: number of decimals.
        sign: whether positive numbers and 0 get a plus sign.

    >>> fixed(-0.26), fixed(-0.04), fixed(1.5, 2, sign=True), fixed(float("nan"))
    ('−0.3', '0.0', '+1.50', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{round(float(value), digits) + 0.0:{'+' * sign}.{digits}f}".replace("-", "−")


def estimate(values: Iterable[float], digits: int = 2, sign: bool = False) -> str:
    """Return an estimate with its interval, without one where only the estimate is given, and nan
    as a dash.

    Args:
        values: the estimate, then the lower and the upper end of its interval.
        digits: number of decimals, or more where the interval is narrow.
        sign: whether positive numbers get a plus sign.

    >>> estimate((0.314, -0.1, 0.5)), estimate([0.5]), estimate([float("nan")] * 3)
    ('0.31 (−0.10 to 0.50)', '0.50', '–')
    """
    found = list(values)
    width = found[-1] - found[0]
    if 0 < width < math.inf:  # so many digits that the ends differ
        digits = max(digits, min(6, math.ceil(-math.log10(width))))
    value, *ends = (fixed(value, digits, sign) for value in found)
    return f"{value} ({' to '.join(ends)})" if ends and value != "–" else value


def percent(share: float, digits: int = 0) -> str:
    """Return a share in percent, with a fixed count of decimals; a missing one as a dash.

    >>> percent(0.321), percent(0.0005, 2), percent(float("nan"))
    ('32 %', '0.05 %', '–')
    """
    text = fixed(100 * share, digits)
    return text if text == "–" else f"{text} %"


def markdown_table(rows: Iterable[Sequence[object]], head: Sequence[object]) -> str:
    """Return a table in Markdown.

    Args:
        rows: cells of each row, of any type that `str` takes.
        head: titles of the columns.

    >>> print(markdown_table([["LeNet", 3]], ["", "layers"]))
    |  | layers |
    |---|---|
    | LeNet | 3 |
    """
    lines = [" | ".join(str(cell).replace("\n", " ") for cell in row) for row in (head, *rows)]
    first, *others = (f"| {line} |" for line in lines)
    return "\n".join([first, "|---" * len(head) + "|", *others])


def without_html(text: str) -> str:
    """Return Markdown in which HTML is text: names of devices and photos come from files that
    anybody can write.

    >>> without_html("on a <b>fast</b> CPU, 1 < 2")
    'on a &lt;b>fast&lt;/b> CPU, 1 < 2'
    """
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)


def show(text: str) -> None:
    """Display Markdown without HTML under the cell that runs."""
    from IPython.display import Markdown, display

    shown = Markdown()
    shown.data = without_html(text)  # the constructor opens a text that names a file, such as "."
    display(shown)


def badge(source: ImageSet | Results | str) -> str:
    """Return what images a number is about: "CIFAR-10", "Fashion-MNIST", "generated", or the name
    of another source.

    >>> badge("CIFAR-10 (JPEG copy)"), badge("generated images, not photos"), badge("images in x")
    ('CIFAR-10', 'generated', 'images in x')
    """
    name = (
        source
        if isinstance(source, str)
        else getattr(source, "photos", "") or getattr(source, "source", "")
    )
    return next(
        (known for known in ("CIFAR-10", "Fashion-MNIST", "generated") if known in name), name
    )


def table(rows: Iterable[Sequence[object]], head: Sequence[object]) -> None:
    """Display a table: see `markdown_table`."""
    show(markdown_table(rows, head))


def publish(id: str, shown: bool = False) -> None:
    """Mark the output of a cell as the place that shows a claim.

    Args:
        id: name in `book/claims.toml`.
        shown: whether the build displays the claim there.
    """
    from IPython.display import publish_display_data

    publish_display_data({CLAIM: {"id": id, **({"shown": True} if shown else {})}})


def show_images_used(train: ImageSet, test: ImageSet) -> None:
    """Display which images a chapter's live runs use, with a warning where these are not
    CIFAR-10.
    """
    note = (
        ""
        if train.source.startswith("CIFAR-10")
        else (
            " **They are not CIFAR-10, and these live results imply nothing about it.** Set "
            "`NADS_DATA` to a folder with CIFAR-10 to change that."
        )
    )
    show(
        f"`{badge(train)}` Live: {train.source}, {len(train):,} to train on, {len(test):,} to test "
        f"on.{note}"
    )
