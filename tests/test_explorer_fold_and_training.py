"""Figures about folding and training, and energies on the scale of their network, in a real browser."""

import re

import nads_book as nb
import numpy as np
import pytest
import torch
from explorer_pages import NADS, Reader, levels
from nads_book.explorer import data


def told(reader, element):
    return reader.page.locator(element).locator(".verdict").inner_text()


def test_a_frequency_folds_as_pooling_folds_it(reader):
    reader.open("fold.html")
    places, seen = np.arange(32), {}
    for cycles in (1, 5, 7, 9, 12, 15):
        reader.slide("Frequency (cycles)", cycles)
        samples = np.cos(2 * np.pi * cycles * places / 32 - 0.7)
        for kind, outputs in (("keep", samples[::2]), ("average", samples.reshape(16, 2).mean(1))):
            reader.page.get_by_role("combobox", name="Pooling").select_option(kind)
            height = np.abs(np.fft.rfft(outputs)) / 8
            *_, heard, share = map(
                int, re.findall(r"(\d+)", told(reader, "nad-fold").replace("16 −", ""))
            )
            seen[kind, cycles] = re.search(
                r"look like (\d+)|(\d+) cycles? before", told(reader, "nad-fold")
            ).group(1, 2)
            assert (
                int(next(filter(None, seen[kind, cycles])))
                == height.argmax()
                == min(cycles, 16 - cycles)
            )
            assert share == round(100 * height.max())
    reader.slide("Frequency (cycles)", 16)
    assert "Nothing is left" in told(reader, "nad-fold")
    assert not reader.troubles


def test_the_frequency_moves_by_keyboard(reader):
    reader.open("fold.html")
    slider = reader.page.get_by_role("slider", name="Frequency (cycles)")
    slider.focus()
    before = int(slider.input_value())
    reader.page.keyboard.press("ArrowRight")
    assert int(slider.input_value()) == before + 1 and f"{before + 1} cycles" in told(
        reader, "nad-fold"
    )


def test_two_trainings_end_at_the_stored_accuracies(reader):
    curves = nb.experiments.stored.load_study("two-trainings.json")
    reader.open("training.html")
    reader.slide("Epoch", len(curves["steps"]) - 1)
    numbers = [float(number) for number in re.findall(r"([\d.]+) %", told(reader, "nad-training"))]
    assert numbers == pytest.approx(
        [100 * wave["test"][-1] for wave in curves["waves"].values()], abs=0.06
    )
    lines = reader.page.locator("nad-training").locator("polyline")
    assert {
        len(points.split())
        for points in lines.evaluate_all("(all) => all.map((e) => e.getAttribute('points'))")
    } == {len(curves["steps"])}
    assert not reader.troubles


def test_the_wave_can_be_seen_once_it_is_strong(reader):
    import nads_core as nc

    reader.open("training.html")
    wave, projections = nc.fourier_direction((0, 8), 32)[0], []
    for strength in (1, 100):
        reader.slide("Strength ε", strength)
        pixels = reader.see("An image with the fine wave", "nad-training")[..., :3].astype(float)
        signed = torch.as_tensor(pixels[..., 0] - pixels[..., 2])  # red minus blue
        projections.append(float((signed * wave).sum() / signed.norm()))
    assert abs(projections[0]) < 0.1 and projections[1] > 0.5


def test_directions_of_networks_that_train(reader):
    """The slider shows the pictures and cosines of its step; a network with fewer steps moves it to its last."""
    reader.open("trained.html")
    for step, (start, signal) in enumerate((("1.00", "–"), ("0.50", "0.10"), ("−0.25", "0.90"))):
        reader.slide("Step", step)
        assert f"G₀ {start}, with the signal {signal}" in told(reader, "nad-trained")
        pixels = reader.see(f"direction 1 at step {(0, 1, 10)[step]}", "nad-trained")[
            ..., :3
        ].astype(float)
        across = np.abs(np.fft.rfft((pixels[..., 0] - pixels[..., 2]).sum(0)))
        assert across.argmax() == 2 + step
    reader.page.get_by_role("combobox", name="Network").select_option("cnn")
    assert told(reader, "nad-trained") == "At step 1, the cosine of G with G₀ 0.75."
    assert not reader.troubles


@pytest.mark.parametrize("name", ["fold", "trained", "training"])
def test_a_narrow_screen_shows_all_of_it(browser, site, name):
    reader = Reader(browser.new_page(viewport={"width": 320, "height": 700}), site).open(
        f"{name}.html"
    )
    assert (
        reader.page.evaluate("document.documentElement.scrollWidth") <= 320 and not reader.troubles
    )


def test_the_map_of_energies_has_the_scale_of_its_network(reader, tables):
    """On a scale of three decades, DenseNet's cross would be black."""
    reader.open("all.html")
    reader.page.get_by_role("combobox", name="Network", exact=True).select_option("densenet121")
    reader.settle()
    drawn = levels(reader.see("energies of DenseNet-121"), tables["magma"])
    header, _ = data.pack_nads(NADS["densenet121"], "DenseNet-121", "densenet121")
    energies = np.array(header["energies"])[::2, ::2]
    expected = 255 * (1 - np.log10(energies) / np.log10(energies.min()))
    assert np.abs(drawn - expected).max() < 1.5
    cross, beside = drawn[8, [4, 12]], drawn[[4, 12], [4, 12]]
    assert cross.min() > 3 * beside.max()
