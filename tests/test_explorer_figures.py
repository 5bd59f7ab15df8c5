"""The bet, the atlas and figures that a reader moves, in a real browser."""

import itertools

import nads_book as nb
import numpy as np
import pytest
import torch
from explorer_pages import (
    NADS,
    PHOTOS,
    assert_photo,
    assert_signed,
    levels,
)
from nads_book.atlas import load_entry_nads
from nads_book.explorer import gallery
from nads_book.explorer.wave_bet import guess_data
from PIL import Image

import nads_core as nc

pytestmark = pytest.mark.slow

KEYS = {"u": "ArrowUp", "d": "ArrowDown", "l": "ArrowLeft", "r": "ArrowRight", " ": "Space"}


# The bet


def bet(reader, keys=" r dl l l "):
    """Move over the first map from the wave that it begins at, and choose; the rest stays unchosen.

    The default chooses (0, 2), (0, 4), (2, 2), (2, 0), (2, -2).
    """
    reader.page.locator("nad-guess .map").first.focus()
    for key in keys:
        reader.page.keyboard.press(KEYS[key])


OWN = [(0, 2), (0, 4), (2, 2), (2, 0), (2, -2)]


def failed(tasks, keys):
    return sum((tasks.get(k) or tasks[nb.waves.negative(k)])[1] <= 0.55 for k in keys)


def test_a_bet_by_keyboard_is_blind_and_may_be_changed_with_the_map(reader):
    reader.open("guess.html")
    tasks = {(ky, kx): found for ky, kx, *found in guess_data("resnet18")["tasks"]}
    proceed = reader.page.locator("nad-guess button.main")
    answers = reader.page.locator("nad-guess .map").last  # the map of accuracies
    assert proceed.is_disabled() and not answers.is_visible()
    tiles = reader.see("all waves", "nad-guess")
    assert np.ptp(tiles[..., :3].astype(int), axis=2).max() == 0, "no colour tells anything yet"
    bet(reader)
    bet(reader, "d ")  # five is all
    proceed.press("Enter")
    assert reader.see("energies of waves", "nad-guess").shape == (16, 16, 4)
    assert not answers.is_visible() and "bet." not in reader.page.url
    bet(reader, "u uuuuuuuu ")  # (2, -2) is let go, for (-14, -2)
    proceed.press("Enter")
    darkest = sorted(tasks, key=lambda k: tasks[k][0])[:5]
    items = reader.page.locator("nad-guess .scores li").all()  # a label, and its right bets
    named = [[item.locator(tag).inner_text() for tag in ("span", "strong")] for item in items]
    assert {label: float(score) for label, score in named} == {
        "your blind bet": failed(tasks, OWN),
        "your bet with the map": failed(tasks, [*OWN[:4], (-14, -2)]),
        "chance": round(5 * failed(tasks, tasks) / len(tasks), 1),
        "the 5 finest": 0,
        "the 5 darkest in the map": failed(tasks, darkest),
    }
    reader.button("Bet again").click()
    assert proceed.is_disabled() and not answers.is_visible()


# The atlas


def cards(reader):
    names = "(cards) => cards.map((card) => card.dataset.name)"
    return reader.page.locator("nad-atlas .card").evaluate_all(names)


def test_the_atlas_is_sorted_filtered_and_compared(reader, tables):
    reader.open("atlas.html")
    reader.page.locator("nad-atlas .card").first.wait_for()
    atlas = nb.atlas.load_atlas()
    reader.page.get_by_label("Sort by").select_option(label=gallery.SORTED_BY["high"])
    shown = cards(reader)
    assert len(shown) == len(atlas.entries)
    values = [atlas.measures[name]["high"].value for name in shown]
    assert all(a >= b * 0.98 - 1e-2 for a, b in itertools.pairwise(values))  # rounded
    reader.button("none").click()
    reader.button("padding").click()
    assert {atlas.entries[name].factor for name in cards(reader)} == {"", "padding"}
    card = reader.page.locator("nad-atlas .card[data-name='densenet-circular']")
    card.press("Enter")
    assert card.get_attribute("aria-pressed") == "true"
    for name in ("densenet-circular", "densenet"):
        direction = load_entry_nads(name).directions[1, 0]
        assert_signed(reader.see(f"{name}, NAD 1", "nad-atlas"), direction, tables)
    names = list(atlas.entries)
    cosine = atlas.alignments[names.index("densenet-circular"), names.index("densenet")]
    note = reader.page.locator("nad-atlas .note")
    assert f"a cosine of {cosine:.2f}" in note.inner_text()
    reader.page.get_by_label("Compare with").select_option("mlp")
    reader.page.wait_for_function("location.hash.includes('atlas.beside=mlp')")
    shown = cards(reader)
    reader.open(reader.page.url.removeprefix(f"{reader.site}/"))
    reader.page.locator("nad-atlas .card").first.wait_for()
    assert cards(reader) == shown
    reader.go("atlas.chosen=nothing&atlas.sort=constructor&atlas.off=99,-1,x&atlas.on=?")
    reader.page.wait_for_function(
        "document.querySelector('nad-atlas').atlas.chosen.name === 'cnn-average'"
    )
    assert len(cards(reader)) == len(names)


# Networks that stack up, folding and training


def test_networks_stack_up_by_keyboard(reader, tables):
    reader.open("stack.html")
    slider = reader.page.get_by_role("slider", name="Number of random networks")
    slider.focus()
    assert slider.get_attribute("aria-valuetext") == "3 networks"
    for label in ("1,000 networks", "the library"):
        reader.page.keyboard.press("ArrowRight")
        for index in range(4):
            seen = reader.see(f"direction {index} from {label}", "nad-stack")
            assert_signed(seen, NADS["lenet"][index][0], tables)
    assert "100 %" in reader.page.locator("nad-stack p").inner_text()


def test_directions_of_networks_that_train(reader, tables):
    """The slider shows the stored directions and cosines of its step."""
    reader.open("trained.html")
    training = nb.pages.training
    menus = reader.page.locator("nad-trained select")
    network, data = (menu.input_value() for menu in menus.all())
    steps = training.steps_of(network, data)
    reader.slide("Step", len(steps) - 1)
    cosine = training.cosine(network, data, steps[-1], "G_0", "moment")[0]
    named = f"step {steps[-1]:,}"
    verdict = reader.page.locator("nad-trained .verdict").inner_text()
    assert f"At {named}, the cosine of G with G₀ {cosine:.2f}" in verdict
    drawn = levels(reader.see(f"direction 0 at {named}", "nad-trained"), tables["diverging"])
    expected = training.known()[network, data, steps[-1]]["leading"][0]
    assert abs(np.corrcoef(drawn.flatten(), expected)[0, 1]) > 0.99


# Pictures that a reader changes


def chosen(reader):
    """Return the line of accuracies that belongs to the picture."""
    return reader.page.locator(".accuracies [aria-current=true]").inner_text().replace("\n", " ")


def test_hole_and_number_are_those_of_the_poison(reader):
    reader.open("note.html")
    photo = PHOTOS.images[[4]]
    label = PHOTOS.labels[[4]]
    nads, (stored,) = NADS["lenet"], nb.pages.poison.widget().networks
    first, second, *_ = stored["carriers"]
    number, hole = (reader.page.get_by_role("switch", name=name) for name in ("Number", "Hole"))
    # Class 4 is written with a minus sign in the green channel.
    written = -0.05 * nads.directions[first, 0] * torch.tensor([0, 1, 0])[:, None, None]
    hollow, poisoned = (
        nc.poison(photo, label, nads, first, strength)[0] for strength in (1e-9, 0.05)
    )
    for press, state, expected, key in (
        (lambda: hole.press("Enter"), "hole only", hollow, "hole"),
        (lambda: number.press("Space"), "hole and number", poisoned, "both"),
        (hole.click, "number only", photo[0] + written, "number"),
    ):
        press()
        reader.page.locator(f"nad-note canvas[aria-label^='The picture cat, {state}']").wait_for()
        assert_photo(reader.see(f"The picture cat, {state}", "nad-note"), expected)
        assert f"{100 * stored['accuracies'][0][key]:.1f} %" in chosen(reader)
    reader.page.get_by_role("slider", name="Along NAD").press("ArrowRight")
    reader.page.locator("nad-note").get_by_text(f"Coordinate along NAD {second}").wait_for()


def test_pictures_are_flipped_as_the_library_does(reader, tmp_path):
    reader.open("flip.html")
    reader.page.locator("nad-flip .accuracies li").first.wait_for()
    known = reader.page.locator("nad-flip .accuracies strong").all_inner_texts()
    assert known[1:] == ["?"] * 2, "nothing is given away"
    for stored in nb.pages.flip.widget().networks:
        reader.page.get_by_label("NADs of").select_option(label=stored["label"])
        reader.button("flipped").click()
        reader.page.locator("nad-flip .verdict", has_text=stored["label"]).wait_for()
        assert f"{100 * stored['accuracies']['flipped']:.1f} %" in chosen(reader)
        flipped = 0.5 + nc.flip(PHOTOS.images[[4]] - 0.5, NADS[stored["key"]])[0]
        assert_photo(reader.see("The same picture, flipped", "nad-flip"), flipped, slack=12)
    Image.new("RGB", (40, 60), (200, 0, 0)).save(tmp_path / "red.png")
    reader.page.get_by_label("An image of your own").set_input_files(tmp_path / "red.png")
    picture = reader.page.locator("nad-flip canvas[aria-label='The picture red.png']")
    picture.wait_for(state="attached")
    red = torch.tensor([200 / 255, 0, 0])[:, None, None].expand(3, 32, 32)
    assert_photo(reader.see("The picture red.png", "nad-flip"), red)


def test_without_javascript(browser, site):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{site}/guess.html")
        image = page.locator("nad-guess img")
        assert image.is_visible() and image.get_attribute("src").endswith("_static/maps.png")
