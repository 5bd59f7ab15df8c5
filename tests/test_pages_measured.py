"""The published spectra, as the page shows them."""

import numpy as np
import pytest

published_spectra = pytest.importorskip("nads_book.pages.published_spectra")


@pytest.mark.stored
def test_published_spectra_have_the_overlaps_of_the_held_out_test():
    found = published_spectra.rows()
    assert found["lenet"]["overlaps"]["10"] == pytest.approx(0.948, abs=0.001)
    assert found["vgg11"]["overlaps"]["50"] == pytest.approx(0.561, abs=0.001)
    assert "overlaps" not in found["densenet121"]  # the authors' directions are kept back
    for row in found.values():
        for source in published_spectra.SOURCES:
            shares = np.array(row[source])
            assert shares[0] == shares.max() and 0 < shares.sum() < 1 + 1e-3
            half, most = row[f"{source} hold"]
            assert half <= most
    table = published_spectra.table_spectra()
    assert "0.95" in table and "–" in table
