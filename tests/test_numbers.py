import math

import nads_book as nb
import pytest


@pytest.mark.parametrize(
    "number, digits, text",
    [
        (3.14e-8, 2, "3.1 · 10⁻⁸"),
        (1e-7, 1, "1 · 10⁻⁷"),
        (7.1e11, 2, "7.1 · 10¹¹"),
        (16.0, 2, "16"),
        (-0.0, 2, "0"),
        (-0.05, 2, "−0.05"),
        (0.00099999, 2, "0.001"),
        (99_999.6, 3, "1 · 10⁵"),
        (1234, 2, "1,234"),
        (1234.56, 5, "1,234.6"),
        (-1.5e-5, 2, "−1.5 · 10⁻⁵"),
        (math.nan, 2, "–"),
        (-math.inf, 2, "−∞"),
    ],
)
def test_numbers_are_written_for_people(number, digits, text):
    assert nb.readable(number, digits) == text
