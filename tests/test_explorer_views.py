"""Every part of the explorer in a real browser, against the arrays that Python holds."""

import re

import nads_book as nb
import numpy as np
import pytest
import torch
from explorer_pages import FOURIER, NADS, PHOTOS, assert_photo, assert_signed, levels, number
from nads_book.explorer import data

import nads_core as nc


def test_the_module_has_what_anywidget_calls(reader):
    reader.open("empty.html")
    exported = reader.page.evaluate(
        """async () => {
          const module = await import('/module.mjs');
          return [Object.keys(module), Object.keys(module.default), typeof module.default.render];
        }"""
    )
    assert exported == [["default"], ["render"], "function"]


def test_colours_are_those_of_the_figures(tables):
    from matplotlib import colormaps

    for name, ours in (("RdBu_r", "diverging"), ("magma", "magma"), ("viridis", "viridis")):
        theirs = colormaps[name](np.arange(256), bytes=True)
        assert np.abs(tables[ours].astype(int) - theirs).max() < 16
    assert (np.abs(tables["diverging"][127][:3] - 247) < 3).all()


def test_nad_and_its_energy_are_those_of_the_array(reader, tables):
    reader.open("all.html")
    slider = reader.slide("NAD", 41)
    assert slider.get_attribute("aria-valuetext") == "NAD 41 of LeNet"
    nads = NADS["lenet"]
    assert_signed(reader.see("NAD 41 of LeNet, in pixels"), nads.directions[41, 0], tables)
    energy = nc.spectrum(nads.directions[41, 0]).numpy()
    drawn = levels(reader.see("NAD 41 of LeNet, its energy"), tables["magma"]) / 255
    assert np.abs(drawn - energy / energy.max()).max() < 0.02
    share = float(nads.eigenvalues[41] / nads.eigenvalues[0])
    assert (
        f"eigenvalue {share:.2f} of the first"
        in reader.part("direction").locator("details").first.text_content()
    )


def test_networks_side_by_side(reader, tables):
    reader.open("all.html")
    reader.page.get_by_label("Network").select_option("vgg11")
    reader.page.get_by_label("Compare with").select_option("resnet18")
    reader.slide("NAD", 3)
    for name, label in (("vgg11", "VGG-11"), ("resnet18", "ResNet-18")):
        assert_signed(
            reader.see(f"NAD 3 of {label}, in pixels"), NADS[name].directions[3, 0], tables
        )
        assert (f"{label}: accuracies not measured" in reader.part("curves").inner_text()) == (
            nb.load_results(f"fig6-{name}") is None
        )
    reader.page.get_by_label("Compare with").select_option("")
    reader.settle()
    assert not reader.page.locator(".network.b").first.is_visible()


def test_play_and_pause(reader):
    reader.open("all.html")
    reader.page.get_by_role("button", name="Play").click()
    reader.page.wait_for_function("document.querySelector('nad-explorer').model.get('index') > 3")
    reader.page.get_by_role("button", name="Pause").click()
    index = reader.page.evaluate("document.querySelector('nad-explorer').model.get('index')")
    reader.page.wait_for_timeout(300)
    assert (
        reader.page.evaluate("document.querySelector('nad-explorer').model.get('index')") == index
    )


def test_curves_and_their_cursor(reader, tables):
    reader.open("all.html")
    part = reader.part("curves")
    eigenvalues, accuracies = part.locator("svg").all()
    assert len(eigenvalues.locator("polyline").get_attribute("points").split()) == 1024
    measured = data.pack_nads(NADS["lenet"], "LeNet", "lenet")[0][
        "accuracies"
    ]  # placed among the NADs that are shown
    assert accuracies.locator("circle").count() == len(measured)
    box = accuracies.bounding_box()
    reader.page.mouse.click(box["x"] + 46 + 0.5 * (box["width"] - 54), box["y"] + 30)
    reader.settle()
    index = int(reader.page.get_by_role("slider", name="NAD", exact=True).input_value())
    assert abs(index - 512) <= 2
    assert_signed(
        reader.see(f"NAD {index} of LeNet, in pixels"), NADS["lenet"].directions[index, 0], tables
    )
    x = [float(svg.locator(".cursor").get_attribute("x1")) for svg in (eigenvalues, accuracies)]
    assert x[0] == x[1] == pytest.approx(46 + index / 1023 * (box["width"] - 54), abs=1)
    near = [
        row for row in measured if min(row[4:], default=1) >= 0.9
    ]  # along directions of this version, or nearly
    nearest, accuracy, *_ = min(near, key=lambda row: abs(row[0] - index))
    assert f"accuracy at NAD {nearest}: {100 * accuracy:.1f} %" in reader.part(
        "direction"
    ).inner_text().replace("\n", " ")


def test_small_numbers_are_written_for_people(reader):
    nads = NADS["lenet"]
    present = (PHOTOS.images[0, 0] * nads.directions[:, 0]).sum((1, 2))
    index = int(
        ((present > -0.004) & (present < -0.001)).nonzero()[0]
    )  # of class 0, so in the red channel
    reader.open(f"all.html#explorer.index={index}")
    assert re.search(r"channel: 0\.00 becomes −0\.05", reader.part("poison").inner_text())
    reader.slide("NAD", 1023)
    text = re.search(
        r"eigenvalue (.*) of the first",
        reader.part("direction").locator("details").first.text_content(),
    )[1]
    share = float(nads.eigenvalues[1023] / nads.eigenvalues[0])
    assert share < 1e-3 and " × 10⁻" in text and number(text) == pytest.approx(share, rel=0.05)


def wrapped(frequency):
    return tuple((k + 16) % 32 - 16 for k in frequency)


def test_fourier_map_by_pointer_and_by_keyboard(reader, tables):
    reader.open("all.html")
    part = reader.part("fourier")
    box_of_map, energy_map = part.get_by_role("application").all()[:2]
    box_of_map.scroll_into_view_if_needed()
    measured = {}
    for row in FOURIER.rows:
        for sign in (-1, 1):
            measured.setdefault(wrapped([sign * k for k in row["frequency"]]), []).append(
                row["test_accuracy"]
            )
    # every cell of the map
    pixels = (
        part.locator("canvas")
        .nth(0)
        .evaluate("(c) => [...c.getContext('2d').getImageData(0, 0, 16, 16).data]")
    )
    pixels = np.array(pixels).reshape(16, 16, 4)
    for row in range(16):
        for column in range(16):
            values = measured.get((2 * row - 16, 2 * column - 16))
            if values is None:
                assert len(set(pixels[row, column, :3])) == 1  # grey
            else:
                level = round(255 * min(max((np.mean(values) - 0.5) / 0.5, 0), 1))
                assert np.abs(pixels[row, column] - tables["viridis"][level]).max() <= 5
    # a hover
    box = box_of_map.bounding_box()
    ky, kx = next(k for k in measured if k[0] == -4 and k[1] > 0)
    position = [(k + 16 + 1) / 32 for k in (kx, ky)]
    reader.page.mouse.move(
        box["x"] + position[0] * box["width"], box["y"] + position[1] * box["height"]
    )
    reader.settle()
    text = part.inner_text()
    assert (
        f"{ky} cycles down, {kx} across" in text
        and f"LeNet: {100 * np.mean(measured[ky, kx]):.1f} %" in text
    )
    assert_signed(
        reader.see(f"Wave of vertical frequency {ky}"), nc.fourier_direction((ky, kx))[0], tables
    )
    # keys
    box_of_map.focus()
    for key, (ky, kx) in (("Home", (0, 0)), ("ArrowRight", (0, 2)), ("ArrowUp", (-2, 2))):
        reader.page.keyboard.press(key)
        reader.settle()
        assert f"{ky} cycles down, {kx} across" in part.inner_text()
    energy = NADS["lenet"].energy(nc.fourier_direction((-2, 2))[None])
    grid = [nc.fourier_direction((a, b)) for a in range(-16, 16, 2) for b in range(-16, 16, 2)]
    share = float(energy / NADS["lenet"].energy(torch.stack(grid)).max())
    assert number(re.search(r"energy (.+) of", part.inner_text())[1]) == pytest.approx(
        share, rel=0.02
    )


def test_a_click_holds_a_frequency(reader):
    reader.open("all.html")
    part = reader.part("fourier")
    canvas = part.get_by_role("application").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()

    def at(ky, kx):
        return [
            box[side] + (k + 17) / 32 * box[length]
            for k, side, length in ((kx, "x", "width"), (ky, "y", "height"))
        ]

    def shown():
        reader.settle()
        return tuple(
            map(int, re.search(r"(-?\d+) cycles down, (-?\d+) across", part.inner_text()).groups())
        )

    mouse = reader.page.mouse
    mouse.move(*at(-8, 6))
    assert shown() == (-8, 6) and reader.get("frequency") == [4, 2]
    mouse.move(box["x"] + box["width"] / 2, box["y"] - 20)  # away: the chosen direction comes back
    assert shown() == (4, 2)
    mouse.click(*at(-8, 6))
    mouse.move(*at(2, 2), steps=3)
    assert shown() == (-8, 6) and "Held" in part.inner_text()
    mouse.click(*at(0, 4))  # another one
    mouse.move(*at(2, 2), steps=3)
    assert shown() == (0, 4)
    mouse.click(*at(0, 4))  # the same: lets go
    mouse.move(*at(2, 2), steps=3)
    assert (
        shown() == (2, 2) and "Held" not in part.inner_text() and reader.get("frequency") == [0, 4]
    )
    mouse.click(*at(2, 2))
    reader.page.keyboard.press("Escape")
    mouse.move(*at(6, 6), steps=3)
    assert shown() == (6, 6)
    reader.page.keyboard.press("ArrowLeft")  # from the chosen one, and holds
    mouse.move(*at(8, 8), steps=3)
    assert shown() == (2, 0) == tuple(reader.get("frequency"))


@pytest.mark.parametrize("frequency", [(3, 2), (-5, 15), (4, 1)])
def test_odd_frequencies_are_not_their_neighbours(reader, tables, frequency):
    reader.open(f"all.html#explorer.frequency=[{frequency[0]},{frequency[1]}]")
    part = reader.part("fourier")
    wave = nc.fourier_direction(frequency)
    assert_signed(reader.see("Wave of"), wave[0], tables)
    assert "LeNet: accuracy not measured at odd frequencies" in part.inner_text()
    grid = torch.stack(
        [nc.fourier_direction((a, b)) for a in range(-16, 16, 2) for b in range(-16, 16, 2)]
    )
    share = float(NADS["lenet"].energy(wave) / NADS["lenet"].energy(grid).max())
    assert number(re.search(r"energy (.+) of", part.inner_text())[1]) == pytest.approx(
        share, rel=0.03
    )
    part.get_by_role("application").first.focus()
    reader.page.keyboard.press("ArrowUp")
    reader.settle()
    assert reader.get("frequency")[0] == 2 * ((frequency[0] - 1) // 2)


def test_mixer(reader, tables):
    reader.open("all.html")
    part = reader.part("mixer")
    reader.page.get_by_role("button", name="Clear").click()
    for n, weight in ((0, 0.5), (7, -1), (11, 0.25)):
        reader.slide(f"Weight of NAD {n}", weight, part)
    directions = NADS["lenet"].directions[:, 0]
    expected = 0.5 * directions[0] - directions[7] + 0.25 * directions[11]
    assert_signed(reader.see("Mixture of the first"), expected, tables, slack=2.5)
    reader.page.get_by_role("button", name="Surprise me").click()
    reader.settle()
    with pytest.raises(AssertionError):
        assert_signed(reader.see("Mixture of the first"), expected, tables, slack=2.5)


def test_photo_from_its_first_nads(reader):
    reader.open("all.html")
    part = reader.part("photo")
    part.get_by_role("button", name=PHOTOS.class_names[PHOTOS.labels[4]]).click()
    for kept in (0, 100, 1024):
        reader.slide("NADs kept", kept, part)
        basis = NADS["lenet"].basis[:, :kept]
        expected = 0.5 + ((PHOTOS.images[4].flatten(1) - 0.5) @ basis @ basis.T).view(3, 32, 32)
        rest, where = 0.5 + PHOTOS.images[4] - expected, "section[data-part=photo]"
        assert_photo(
            reader.see("The image from the first", where), expected, slack=6
        )  # 1,024 roundings add up
        assert_photo(reader.see("The remainder", where), rest, slack=6)
    assert "1024 of 1024 NADs" in part.inner_text() and "hold 100.0 %" in part.inner_text()


@pytest.mark.parametrize("photo", [0, 3, len(PHOTOS) - 1])
def test_poison_is_that_of_the_library(reader, tables, photo):
    reader.open("all.html")
    part = reader.part("poison")
    label = int(PHOTOS.labels[photo])
    name = PHOTOS.class_names[label]
    part.get_by_role("button", name=name).click()
    reader.slide("Carrier's NAD", 5, part)
    reader.slide("Strength ε", 0.8, part)
    image, labels = PHOTOS.images[photo : photo + 1], PHOTOS.labels[photo : photo + 1]
    expected = nc.poison(image, labels, NADS["lenet"], 5, 0.8)[0]
    where = "section[data-part=poison]"
    assert_photo(reader.see(f"The image {name}, clean", where), image[0], slack=2)
    part.get_by_role("switch").click()
    reader.settle()
    assert_photo(reader.see(f"The image {name}, poisoned", where), expected)
    assert_photo(reader.see(name, where), expected)  # in the contact sheet too
    nad, channel, sign = nc.carriers(10, 5)[label]
    change = expected - image[0]
    assert_signed(reader.see("What the poison changes", where), change[channel], tables)
    present = float((image[0, channel] * NADS["lenet"].directions[nad, 0]).sum())
    text = re.search(r"([−\d.]+) becomes ([+−]0\.80)", part.inner_text())
    assert float(text[1].replace("−", "-")) == pytest.approx(present, abs=0.02) and text[2][0] == (
        "+" if sign > 0 else "−"
    )


def test_python_makes_what_is_seen(reader, tables):
    reader.open("all.html")
    reader.slide("NAD", 30)
    reader.slide("Weight of NAD 2", -0.5)
    reader.slide("NADs kept", 64)
    reader.slide("Strength ε", 0.5)
    reader.part("poison").get_by_role("switch").click()
    reader.part("fourier").get_by_role("application").first.focus()
    reader.page.keyboard.press("ArrowLeft")
    reader.page.get_by_role("button", name="Show the Python").click()
    reader.settle()
    made = {}
    exec(reader.page.locator(".python code").inner_text(), made)  # noqa: S102
    assert_signed(reader.see("NAD 30 of LeNet, in pixels"), made["direction"], tables)
    drawn = levels(reader.see("NAD 30 of LeNet, its energy"), tables["magma"]) / 255
    assert np.abs(drawn - (made["energy"] / made["energy"].max()).numpy()).max() < 0.02
    assert_signed(reader.see("Wave of"), made["wave"], tables)
    assert_signed(reader.see("Mixture of"), made["mixture"], tables, slack=2.5)
    assert_photo(reader.see("The image from the first 64"), made["rebuilt"])
    assert_photo(reader.see("The image", "section[data-part=poison]"), made["poisoned"])
    assert made["accuracies"] and made["by_frequency"]


# Features of the authors' page, and ours


AUTHORS = {
    "16 x 16 Fourier accuracy map": test_fourier_map_by_pointer_and_by_keyboard,
    "with a network menu": test_networks_side_by_side,
    "hovering a pixel shows the direction and the accuracy": test_fourier_map_by_pointer_and_by_keyboard,
    "linked curves of eigenvalue and accuracy over the NADs": test_curves_and_their_cursor,
    "a cursor shows the NAD in space and frequency": test_nad_and_its_energy_are_those_of_the_array,
    "a switch between clean and poisoned images": test_poison_is_that_of_the_library,
}


def test_everything_that_the_authors_page_does(reader):
    reader.open("all.html")
    page = reader.page
    ours = {
        "16 x 16 Fourier accuracy map": reader.part("fourier").locator("canvas[width='16']").first,
        "with a network menu": page.get_by_label("Network"),
        "hovering a pixel shows the direction and the accuracy": reader.part("fourier").locator(
            "[aria-live]"
        ),
        "linked curves of eigenvalue and accuracy over the NADs": reader.part("curves")
        .locator("svg .cursor")
        .nth(1),
        "a cursor shows the NAD in space and frequency": reader.part("direction")
        .locator("canvas")
        .nth(1),
        "a switch between clean and poisoned images": page.get_by_role("switch", name="Poisoned"),
    }
    assert set(ours) == set(AUTHORS)
    for feature, element in ours.items():
        assert element.count() == 1, feature
