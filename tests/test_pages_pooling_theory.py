"""The page of pooling: its formulas, and verdicts that follow from what is measured."""

import pytest
import torch
from nads_book.pages import pooling_theory as page
from nads_book.theory import pooling
from torch.testing import assert_close


def test_rings_have_one_centre_and_all_symmetries():
    plate = page.zone_plate(32)
    assert plate[16, 16] == plate.max() == 1
    assert_close(plate, plate.T)
    assert_close(plate[1:], plate[1:].flip(0))


def test_a_budget_is_the_number_of_classes_that_pass():
    assert page.budget(pooling.prefilter("average", 24, 4), 4) == pytest.approx(6)
    constant = torch.full((24,), 1 / 24, dtype=torch.float64)  # passes the zero frequency alone
    assert page.budget(constant, 4) == pytest.approx(1)


def test_signal_to_noise_is_the_library_s_where_a_wave_does_not_fold_onto_itself():
    impulse = pooling.prefilter("average", 128, 4)
    for frequency in (1, 5, 20, 41):
        expected = pooling.gamma(frequency, impulse, 4)
        assert page.signal_to_noise()[4][frequency - 1] == pytest.approx(float(expected))


@pytest.mark.parametrize("wave", ["silent", "beside"])
def test_another_accuracy_changes_the_verdicts(wave, monkeypatch):
    first = {"silent": page.silent(), "beside": page.beside()}[wave][0]
    accuracies = dict(page.published_accuracies("lenet"))
    if wave == "silent":
        accuracies[first] = 0.9
    else:
        accuracies = {k: 1 - value for k, value in accuracies.items()}
    monkeypatch.setattr(page, "published_accuracies", lambda name: accuracies)
    decide = {"silent": page.silent_waves, "beside": page.response_orders}[wave]
    assert decide().holds is False


def test_a_prefilter_of_the_reader_is_drawn():
    titles = [axis.get_title() for axis in page.plot_shares_with_yours([1, 1, 1, 1]).axes]
    assert "sum to 16" in titles[0]
