"""The fifteen lines that the page *NADs in one page* shows are the method of the library."""

import json
from pathlib import Path

import torch
from nads_book.theory.reference import compute_reference_nads
from torch.testing import assert_close

import nads_core as nc

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "02_nads_in_one_page.ipynb"


def test_the_lines_on_the_page_are_the_reference():
    cells = json.loads(NOTEBOOK.read_text("utf8"))["cells"]
    (source,) = [text for c in cells if "def compute_nads" in (text := "".join(c["source"]))]
    names = {"torch": torch}
    exec(source, names)

    def lenet():
        return nc.LENET.build(1, 16, 1)

    expected = compute_reference_nads(lenet, 5, (1, 16, 16), num_inputs=4, seed=3)
    torch.manual_seed(3)
    eigenvalues, directions = names["compute_nads"](lenet, 5, 4, (1, 16, 16))
    assert_close(eigenvalues, expected[0])
    first = (directions[:4] * expected[1][:4]).flatten(1).sum(1)
    assert_close(first.abs(), torch.ones(4, dtype=first.dtype))
