"""Numbers as people write them, for pages and tables."""

from __future__ import annotations

import math

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def readable(number: float, digits: int = 2) -> str:
    """Return a number in a few significant digits, without trailing zeros and without a computer's exponent.

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
    if number == 0:
        text = "0"
    elif abs(number) < 1e5 and number == round(number):
        text = f"{number:,.0f}"
    elif 1e-3 <= abs(rounded) < 1e5:
        text = f"{rounded:,.{max(0, digits - 1 - math.floor(math.log10(abs(rounded))))}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        text = f"{mantissa} · 10{str(int(exponent)).translate(_RAISED)}"
    return text.replace("-", "−")
