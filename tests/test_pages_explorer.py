"""The page of the explorer: overlaps of architectures, and the verdict that follows from them."""

import pytest
from nads_book.pages import explorer as page

import nads_core as nc


def test_the_signature_holds_and_does_not_for_two_equal_architectures(monkeypatch):
    assert page.signature().holds
    found = dict(page.overlaps()) | {("lenet", "vgg11"): (0.99, 0.98, 1.0)}
    monkeypatch.setattr(page, "overlaps", lambda: found)
    assert page.signature().holds is False


def test_a_network_has_everything_in_common_with_itself():
    nads = nc.load_nads("lenet")
    curves = page.plot_common({"a": nads, "b": nads}).axes[0].lines
    assert curves[0].get_ydata() == pytest.approx([1] * len(page.LEADING))
    assert curves[1].get_ydata()[-1] == pytest.approx(300 / 1024)
