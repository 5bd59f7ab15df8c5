"""The guess, the atlas, keyboard, touch and themes, in a real browser."""

import itertools
import re

import nads_book as nb
import numpy as np
import pytest
from explorer_pages import Reader, assert_signed
from guess import guess_data
from nads_book.explorer import AtlasGallery, gallery

import nads_core as nc


def test_keyboard_alone_reaches_every_control_and_each_has_a_name(reader):
    reader.open("all.html")
    controls = "button, select, input, [tabindex]"
    count = (
        reader.page.locator("nad-explorer")
        .locator(controls)
        .evaluate_all("(all) => all.filter((e) => e.checkVisibility()).length")
    )
    reached = []
    for _ in range(count + 2):
        reader.page.keyboard.press("Tab")
        reached.append(
            reader.page.evaluate(
                """() => {
                  const e = document.activeElement.shadowRoot?.activeElement;
                  if (!e) return null;
                  e.dataset.reached ??= Math.random();
                  return [e.dataset.reached, e.getAttribute('aria-label') ?? e.innerText.trim()
                    ?? e.querySelector('canvas')?.getAttribute('aria-label'),
                    e.querySelector('canvas')?.getAttribute('aria-label')];
                }"""
            )
        )
    reached = [item for item in reached if item]
    assert len({item[0] for item in reached}) == count
    assert all(name or canvas for _, name, canvas in reached)
    slider = reader.page.get_by_role("slider", name="NAD", exact=True)
    slider.focus()
    for _ in range(3):
        reader.page.keyboard.press("ArrowRight")
    reader.settle()
    assert reader.see("NAD 3 of LeNet, in pixels").shape == (32, 32, 4)


def test_networks_stack_up_by_keyboard_on_a_narrow_screen(browser, site, tables):
    context = browser.new_context(viewport={"width": 320, "height": 700})
    reader = Reader(context.new_page(), site).open("stack.html")
    slider = reader.page.get_by_role("slider", name="Number of random networks")
    slider.focus()
    assert slider.get_attribute("aria-valuetext") == "3 networks"
    reader.page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "1,000 networks"
    for index in range(4):
        seen = reader.see(f"direction {index} from 1,000 networks", "nad-stack")
        assert_signed(seen, nc.load_nads("lenet")[index][0], tables)
    assert "100 %" in reader.page.locator("nad-stack p").inner_text()
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert not reader.troubles
    context.close()


def test_narrow_screen_and_touch(browser, site):
    context = browser.new_context(viewport={"width": 320, "height": 700}, has_touch=True, is_mobile=True)
    reader = Reader(context.new_page(), site).open("all.html")
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 320
    curve = reader.part("curves").locator("svg").first
    curve.scroll_into_view_if_needed()
    box = curve.bounding_box()
    reader.page.touchscreen.tap(box["x"] + 46 + 0.25 * (box["width"] - 54), box["y"] + 40)
    reader.settle()
    assert abs(int(reader.page.get_by_role("slider", name="NAD", exact=True).input_value()) - 256) < 8
    finger = context.new_cdp_session(reader.page)

    def touch(kind, *points):
        points = [{"x": x, "y": y} for x, y in points]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    for name, key, element in (("fourier", "frequency", "[role=application]"), ("curves", "index", "svg")):
        target = reader.part(name).locator(element).first
        target.evaluate("(e) => e.scrollIntoView({ block: 'center' })")
        before, top, box = reader.get(key), reader.page.evaluate("scrollY"), target.bounding_box()
        x, y = box["x"] + 0.7 * box["width"], box["y"] + 0.8 * box["height"]
        touch("touchStart", (x, y))
        for step in range(1, 11):
            touch("touchMove", (x, y - 15 * step))
        reader.page.wait_for_timeout(300)  # a finger that rests leaves no page that glides on, which a tap would stop
        touch("touchEnd")
        reader.settle()
        assert reader.page.evaluate("scrollY") > top + 80, f"{name}: a swipe scrolls"
        assert reader.get(key) == before, f"{name}: a swipe picks nothing"
    canvas = reader.part("fourier").get_by_role("application").first
    canvas.evaluate("(e) => e.scrollIntoView({ block: 'center' })")
    box = canvas.bounding_box()
    reader.page.touchscreen.tap(box["x"] + 25 / 32 * box["width"], box["y"] + 9 / 32 * box["height"])
    reader.settle()
    assert reader.get("frequency") == [-8, 8]
    context.close()
    assert not reader.troubles


def test_theme_follows_the_page(reader):
    reader.open("all.html")
    line = reader.part("curves").locator("polyline").first
    colour = "(e) => getComputedStyle(e).stroke"
    light = line.evaluate(colour)
    reader.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    reader.page.wait_for_function(
        "document.querySelector('nad-explorer').shadowRoot.querySelector('.explorer').classList.contains('dark')"
    )
    assert line.evaluate(colour) != light


def test_every_move_of_the_slider_is_drawn_once(reader):
    reader.open("all.html")
    reader.page.locator("nad-explorer .along input").first.wait_for(state="attached")
    frames = reader.page.evaluate(
        """async () => {
          const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
          const root = document.querySelector('nad-explorer').shadowRoot;
          const slider = root.querySelector('.along input');
          await frame();
          performance.clearMeasures();
          for (let i = 0; i < 60; i++) {
            slider.value = 17 * i;
            slider.dispatchEvent(new Event('input'));
            await frame();
          }
          return performance.getEntriesByName('nad-explorer:frame', 'measure').map((m) => m.duration);
        }"""
    )
    assert 55 <= len(frames) <= 60


# The guess


def guess(reader, keys):
    """Move over the first map from the wave that it begins at, and choose: keys are letters of u, d, l, r and space."""
    box = reader.page.locator("nad-guess .map").first
    box.focus()
    for key in keys:
        box.press({"u": "ArrowUp", "d": "ArrowDown", "l": "ArrowLeft", "r": "ArrowRight"}.get(key, "Space"))


def known(name):
    return {(ky, kx): (energy, accuracy) for ky, kx, energy, accuracy in guess_data(name)["tasks"]}


def test_a_guess_by_keyboard_is_scored(reader):
    reader.page.goto(f"{reader.site}/guess.html")
    tasks = known("lenet")
    reveal = reader.page.get_by_role("button", name="Reveal")
    assert reveal.is_disabled() and "hidden" in reader.page.locator("nad-guess .map").last.get_attribute("aria-label")
    guess(reader, " rr " + "r" * 5 + "uuuuu ")  # (0, 2), (0, 6), and one far out
    assert reveal.inner_text() == "Reveal (3 of 5 chosen)"
    guess(reader, " ")  # it is let go again
    assert reveal.inner_text() == "Reveal (2 of 5 chosen)"
    guess(reader, "l l l ")
    assert reveal.inner_text() == "Reveal"  # five is all
    right = [accuracy > 0.55 for _, accuracy in tasks.values()]
    reveal.press("Enter")
    verdict = reader.page.locator("nad-guess .verdict").inner_text()
    assert re.match(r"[2-5] of your 5 waves were learned", verdict)
    assert (
        f"Chance would find {5 * sum(right) / len(right):.1f}, since LeNet learned {sum(right)} of {len(right)}"
        in verdict
    )
    pairs = [a > b for a, x in tasks.values() if x > 0.55 for b, y in tasks.values() if y <= 0.55]
    share = float(re.search(r"in ([\d.]+) % of these pairs", verdict)[1])
    assert share == pytest.approx(100 * np.mean(pairs), abs=0.1)
    brightest = sorted(tasks.values(), reverse=True)[:5]
    assert f"the brightest find {sum(accuracy > 0.55 for _, accuracy in brightest)} of 5" in verdict
    marks = reader.page.locator("nad-guess figure").first.locator(".guessed")
    assert marks.count() == reader.page.locator("nad-guess figure").first.locator(".right, .wrong").count() >= 9
    reader.page.get_by_role("button", name="Guess again").click()
    assert reveal.is_disabled() and not reader.page.locator("nad-guess .verdict").is_visible()


@pytest.mark.parametrize("width", [320, 1000])
def test_a_guess_by_touch(browser, site, width):
    with browser.new_context(
        viewport={"width": width, "height": 800}, has_touch=True, is_mobile=width < 500
    ) as context:
        reader = Reader(context.new_page(), site)
        reader.page.goto(f"{site}/guess.html")
        reader.page.get_by_label("Network", exact=True).select_option(label="DenseNet-121")
        box = reader.page.locator("nad-guess .map").first.bounding_box()
        chosen = [(8, 9), (8, 12), (3, 8), (2, 3), (15, 15)]  # rows and columns of cells
        for row, column in chosen:
            x, y = (box[side] + (i + 0.5) * box["width"] / 16 for side, i in (("x", column), ("y", row)))
            reader.page.touchscreen.tap(x, y)
        reader.page.get_by_role("button", name="Reveal").tap()
        tasks = known("densenet121")
        keys = [(2 * row - 16, 2 * column - 16) for row, column in chosen]
        right = sum((tasks.get(k) or tasks[nb.waves.negative(k)])[1] > 0.55 for k in keys)
        verdict = reader.page.locator("nad-guess .verdict").inner_text()
        assert verdict.startswith(f"{right} of your 5 waves were learned")
        assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not reader.troubles


# The atlas


def cards(reader):
    return reader.page.locator("nad-atlas .card").evaluate_all("(cards) => cards.map((card) => card.dataset.name)")


def test_the_atlas_is_sorted_filtered_and_compared(reader, tables):
    reader.page.goto(f"{reader.site}/atlas.html")
    reader.page.locator("nad-atlas .card").first.wait_for()
    atlas = nb.atlas.load_atlas()
    for key, title in gallery.SORTED_BY.items():
        reader.page.get_by_label("Sort by").select_option(label=title)
        shown = cards(reader)
        assert len(shown) == len(atlas.entries)
        of = atlas.effect if key == "effect" else lambda name, key=key: atlas.measures[name][key]
        values = [of(name).value for name in shown if key != "effect" and key in atlas.measures[name] or
                  key == "effect" and atlas.entries[name].base]  # fmt: skip
        assert all(a >= b * 0.98 - 1e-2 for a, b in itertools.pairwise(values)), key  # sorted as they are rounded
    reader.page.get_by_role("button", name="none", exact=True).click()
    assert {atlas.entries[name].factor for name in cards(reader)} == {""}
    reader.page.get_by_role("button", name="padding", exact=True).click()
    assert {atlas.entries[name].factor for name in cards(reader)} == {"", "padding"}
    card = reader.page.locator("nad-atlas .card[data-name='densenet-circular']")
    card.focus()
    card.press("Enter")
    assert card.get_attribute("aria-pressed") == "true"
    assert card.evaluate("(element) => element.getRootNode().activeElement === element")  # the keyboard stays there
    for name in ("densenet-circular", "densenet"):
        assert_signed(reader.see(f"{name}, NAD 1", "nad-atlas"), nc.load_nads(f"atlas/{name}").directions[1, 0], tables)
    names = list(atlas.entries)
    cosine = atlas.alignments[names.index("densenet-circular"), names.index("densenet")]
    assert f"a cosine of {cosine:.2f}" in reader.page.locator("nad-atlas .note").inner_text()
    switch = reader.page.get_by_role("switch")
    switch.click()
    assert switch.get_attribute("aria-checked") == "false" and "switched off" in switch.inner_text()
    assert reader.page.locator("nad-atlas .row").first.inner_text().startswith("a small DenseNet (densenet)")
    assert not reader.page.locator("nad-atlas .row").last.is_visible()
    reader.page.get_by_label("Compare with").select_option("mlp")
    assert reader.page.locator("nad-atlas .row").last.is_visible()
    border = atlas.measures["densenet"]["border"]
    assert f"{border.value:.2f} (" in reader.page.locator("nad-atlas table").inner_text()
    assert not reader.troubles


@pytest.mark.parametrize("width", [320, 1000])
def test_the_atlas_by_touch(browser, site, width):
    with browser.new_context(
        viewport={"width": width, "height": 800}, has_touch=True, is_mobile=width < 500
    ) as context:
        reader = Reader(context.new_page(), site)
        reader.page.goto(f"{site}/atlas-own.html")  # brings its arrays along
        card = reader.page.locator("nad-atlas .card[data-name='vit-patch8']")
        card.tap()
        assert reader.page.locator("nad-atlas .row").first.inner_text().startswith("patches of 8 (vit-patch8)")
        assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        cut = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.className)"
        assert reader.page.locator("nad-atlas .toolbar, nad-atlas section").evaluate_all(cut) == []
        assert not reader.troubles


def test_an_atlas_that_is_missing_says_so(reader):
    reader.page.route("**/atlas.js", lambda route: route.abort())
    reader.page.goto(f"{reader.site}/atlas.html")
    message = reader.page.locator("nad-atlas [role=alert]").inner_text()
    assert "could not be shown" in message and "atlas.js is missing" in message
    reader.page.unroute("**/atlas.js")
    reader.troubles.clear()


def test_a_wall_refuses_what_it_has_not():
    with pytest.raises(ValueError, match="sort must be one of"):
        AtlasGallery(sort="beauty")
    with pytest.raises(ValueError, match="the atlas has no 'lenet'"):
        AtlasGallery(chosen="lenet")
