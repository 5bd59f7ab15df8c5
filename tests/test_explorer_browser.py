"""The explorer in a real browser, against the arrays that Python holds, whoever uses it and how."""

import re

import nads_book as nb
import numpy as np
import pytest
import torch
from explorer_pages import (
    FOURIER,
    HOSTILE,
    NADS,
    PHOTOS,
    assert_photo,
    assert_signed,
    levels,
    random_nads,
    write_page,
)
from nads_book.published import waves

import nads_core as nc
from nads_core.directions import Band, Uncertainty

ALERT = ".explorer > [role=alert]"


def assert_direction(reader, tables, name, label, index):
    """The explorer shows this NAD of a network that ships."""
    seen = reader.see(f"NAD {index} of {label}, in pixels")
    assert_signed(seen, NADS[name].directions[index, 0], tables)


# What it shows


def test_a_narrow_screen_shows_all_of_it(tab, site):
    reader = tab(site, viewport={"width": 320, "height": 800}, has_touch=True, is_mobile=True)
    for name in ("all", "trained", "stack", "note", "guess", "atlas", "playground"):
        assert reader.open(f"{name}.html").fits(), name


def test_colours_are_those_of_the_figures(tables):
    from matplotlib import colormaps

    for name, ours in (("RdBu_r", "diverging"), ("magma", "magma"), ("viridis", "viridis")):
        theirs = colormaps[name](np.arange(256), bytes=True)
        assert np.abs(tables[ours].astype(int) - theirs).max() < 16


def test_each_part_shows_what_its_python_computes(reader, tables):
    reader.open("all.html")
    curve = reader.part("curves").locator("svg polyline").first
    assert len(curve.get_attribute("points").split()) == 1024
    slider = reader.slide("NAD", 30)
    assert slider.get_attribute("aria-valuetext") == "NAD 30 of LeNet"
    reader.slide("NADs kept", 64)
    reader.part("fourier").get_by_role("application").first.focus()
    reader.page.keyboard.press("ArrowLeft")
    exec(reader.python(), made := {})  # noqa: S102
    assert_signed(reader.see("NAD 30 of LeNet, in pixels"), made["direction"], tables)
    drawn = levels(reader.see("NAD 30 of LeNet, its energy"), tables["magma"]) / 255
    assert np.abs(drawn - (made["energy"] / made["energy"].max()).numpy()).max() < 0.02
    assert_signed(reader.see("Wave of"), made["wave"], tables)
    assert_photo(reader.see("The image from the first 64"), made["rebuilt"])
    nads = NADS["lenet"]
    reader.slide("NADs kept", 1024)
    assert_photo(reader.see("The image from the first"), PHOTOS.images[0], slack=6)
    text = reader.part("direction").locator("details").first.text_content()
    share = float(nads.eigenvalues[30] / nads.eigenvalues[0])
    assert f"eigenvalue {share:.2f} of the first" in text


def test_the_map_of_frequencies_by_pointer_and_keyboard(reader, tables):
    reader.open("all.html")
    part = reader.part("fourier")
    measured = waves.by_wave(FOURIER).mean(axis=1).to_dict()
    measured |= {waves.negative(k): accuracy for k, accuracy in measured.items()}
    pixels = reader.see("", "section[data-part=fourier]")
    for (ky, kx), accuracy in measured.items():
        level = round(255 * np.clip(2 * accuracy - 1, 0, 1))
        drawn = pixels[8 + ky // 2, 8 + kx // 2]
        assert np.abs(drawn - tables["viridis"][level]).max() <= 5
    part.get_by_role("application").first.click(position={"x": 10, "y": 10})
    ky, kx = reader.get("frequency")
    assert (ky, kx) in measured and ky < -8 and kx < -8
    reader.page.keyboard.press("ArrowRight")
    reader.page.keyboard.press("ArrowDown")
    reader.settle()
    ky, kx = ky + 2, kx + 2
    assert f"{ky} cycles down, {kx} across" in part.inner_text()
    assert f"LeNet: {100 * measured[ky, kx]:.1f} %" in part.inner_text()
    assert_signed(reader.see("Wave of"), nc.fourier_direction((ky, kx))[0], tables)
    reader.go("explorer.frequency=[3,2]")
    assert "accuracy not measured at odd frequencies" in part.inner_text()


def test_what_is_known_of_a_direction(reader, site_folder):
    """Its name, its certainty, and that of its band."""
    types = tuple("+-" if i % 5 else "++" for i in range(20))
    certainty = torch.linspace(1, 0, 20)
    bands = (Band((1, 2, 3, 4), 0.97),)
    nads = random_nads(uncertainty=Uncertainty(types, certainty, certainty, certainty, bands))
    write_page(site_folder, "known.html", nb.explorer.show("direction", nads=nads, index=0))
    reader.open("known.html")
    part = reader.part("direction")
    part.get_by_text("Name and eigenvalue").first.click()
    assert "certainty 1.00" in part.inner_text() and "symmetry type ++, rank 0" in part.inner_text()
    reader.slide("NAD", 3)
    assert "symmetry type +-, rank 2" in part.inner_text()
    assert f"certainty {certainty[3]:.2f}; one of 4" in part.inner_text()
    assert "(together 0.97)" in part.inner_text()


# Whoever uses it


def test_the_keyboard_reaches_every_control_and_each_has_a_name(reader):
    reader.open("all.html")
    controls = reader.page.locator("nad-explorer").locator(
        "button, select, input, summary, [tabindex]"
    )
    count = controls.evaluate_all("(all) => all.filter((e) => e.checkVisibility()).length")
    reached = {}
    for _ in range(count + 2):
        reader.page.keyboard.press("Tab")
        found = reader.page.evaluate(
            """() => {
              const e = document.activeElement.shadowRoot?.activeElement;
              if (!e) return null;
              const inside = e.querySelector('canvas')?.getAttribute('aria-label');
              return [e.dataset.reached ??= Math.random(),
                e.getAttribute('aria-label') || e.innerText.trim() || e.labels?.length || inside];
            }"""
        )
        reached.update([found] if found else [])
    assert len(reached) == count and all(reached.values())


# Addresses


@pytest.mark.slow
def test_the_view_is_in_the_address(reader, tables):
    reader.open("two.html")
    first, second = reader.page.locator("nad-explorer").all()
    reader.slide("NAD", 9, first)
    reader.slide("NADs kept", 70, second)
    second.get_by_label("Network").select_option("vgg11")
    reader.page.wait_for_function("location.hash.includes('explorer-2.architecture')")
    reader.open(reader.page.url.removeprefix(f"{reader.site}/"))
    assert_direction(reader, tables, "lenet", "LeNet", 9)
    assert second.get_by_label("Network").input_value() == "vgg11"
    assert second.get_by_role("slider", name="NADs kept", exact=True).input_value() == "70"

    reader.page.get_by_role("link", name="The end").click()  # a link to a section
    reader.settle()
    assert_direction(reader, tables, "lenet", "LeNet", 9)
    reader.go("explorer-2.second=vgg11")  # a link to one of them
    assert reader.get("index") == 9
    reader.go("explorer.index=4")
    assert_direction(reader, tables, "lenet", "LeNet", 4)


def test_a_number_is_typed_and_a_link_copied(reader):
    reader.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reader.open("all.html")
    box = reader.page.get_by_role("spinbutton", name="NAD, as a number")
    for typed, expected in (("5000", 1023), ("-3", 0), ("", 0), ("17.4", 17)):
        box.fill(typed)
        box.press("Enter")
        reader.settle()
        assert reader.get("index") == expected
    reader.button("Copy a link to this view").click()
    reader.button("Copied").wait_for()
    assert "index=17" in reader.page.evaluate("() => navigator.clipboard.readText()")


# Each means something, nothing, or harm.
ADDRESSES = """
index=NaN&frequency=[40,2]
architecture=toString&second=__proto__
second=vgg11&index=1100&kept=300
kept=constructor&index=1e999&frequency=[0,8]
architecture=vgg11&kept=[]&photo=7
photo=-1e308&kept=null&index=0.1
frequency={}&kept=0x10&parts=photo
part=toString&toString=vgg11&index=7
second=resnet18&frequency=[-3,5]&kept=1.5
architecture=resnet18&second=Infinity&photo=300
kept=%00&index=é&frequency=[0]
kept=true&photo=true&part=mixer
architecture=&second=lenet&index=[]
index=-1e308&frequency=null&part=fourier
index=99999&architecture=alexnet&kept=x&photo=77
"""


@pytest.mark.slow
def test_hostile_addresses_leave_the_explorer_alive(reader, tables):
    """One page lives through all of them; a fresh page opens at the last."""
    reader.open("all.html")
    shown = set()
    for line in ADDRESSES.split():
        address = "&".join(f"explorer.{pair}" for pair in line.split("&"))
        reader.go(address)
        text = reader.page.locator("nad-explorer .explorer").inner_text()
        assert not re.search("NaN|undefined|Infinity|null", text), address
        shown.add(text)
    assert len(shown) > 5  # they do lead to different views
    reader.open(f"all.html#{address}")
    assert_direction(reader, tables, "lenet", "LeNet", 1023)


# Files that are missing, and pages without a server


@pytest.mark.slow
def test_a_network_that_cannot_be_loaded_can_be_tried_again(reader, tables):
    reader.page.route("**/vgg11.js", lambda route: route.abort())
    reader.open("all.html#explorer.index=7")
    reader.page.get_by_label("Compare with").select_option("vgg11")
    reader.button("Try again").wait_for()
    reader.settle()
    assert reader.page.get_by_label("Compare with").input_value() == ""
    assert_direction(reader, tables, "lenet", "LeNet", 7)  # the view stays as it was
    assert "cannot be shown" in reader.page.locator(ALERT).inner_text()
    reader.page.unroute("**/vgg11.js")
    reader.button("Try again").click()
    reader.page.locator("canvas[aria-label^='NAD 7 of VGG-11, in pixels']").wait_for()
    assert_direction(reader, tables, "vgg11", "VGG-11", 7)
    assert not reader.page.locator(ALERT).is_visible()
    assert all("ERR_FAILED" in trouble for trouble in reader.troubles)
    reader.troubles.clear()


# Images and NADs of the reader


@pytest.mark.slow
def test_an_image_of_your_own_stays_in_the_browser_until_a_reload(reader, tmp_path):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / 'my "best".png')
    (tmp_path / "notes.png").write_text("no image")
    reader.open("all.html#explorer.photo=2")
    part = reader.part("photo")
    files, alert = part.locator("input[type=file]"), part.get_by_role("alert")
    files.set_input_files(tmp_path / "notes.png")
    alert.filter(has_text="notes.png is no image").wait_for()
    assert reader.get("photo") == 2
    files.set_input_files(tmp_path / 'my "best".png')
    reader.wait_for("photo", -1)
    expected = torch.from_numpy(pixels).permute(2, 0, 1) / 255
    assert_photo(reader.see("The image: my"), expected, slack=2)
    assert not alert.is_visible()
    assert 'my \\"best' in reader.python()
    reader.slide("NADs kept", 50)
    reader.page.wait_for_function("location.hash.includes('kept=50')")
    assert "photo=" not in reader.page.url


def test_a_single_nad_of_somebody_else_beside_many(reader, site_folder, tables):
    """A label that would end its element runs no code, on the page and in Python."""
    one = random_nads(count=1)
    many = random_nads()
    show = nb.explorer.show(nads={HOSTILE: one, "many": many}, photo=4, kept=1)
    write_page(site_folder, "one.html", show)
    reader.open("one.html")
    assert reader.page.evaluate("window.pwned") is None
    assert "</script><script>window.pwned = 1</script>" in reader.part("curves").inner_text()
    exec(reader.python(), made := {"nads": one})  # noqa: S102
    assert "os" not in made
    assert_photo(reader.see("The image from the first 1 "), made["rebuilt"])
    reader.page.get_by_label("Compare with").select_option("many")
    reader.slide("NAD", 19)
    assert_signed(reader.see("NAD 19 of many, in pixels"), many.directions[19, 0], tables)
