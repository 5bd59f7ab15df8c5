"""The bet, the atlas, keyboard, touch and themes, in a real browser."""

import itertools

import nads_book as nb
import numpy as np
import pytest
from explorer_pages import Reader, assert_signed
from nads_book.atlas import load_entry_nads
from nads_book.explorer import AtlasGallery, gallery
from nads_book.explorer.wave_bet import guess_data

import nads_core as nc


def test_keyboard_alone_reaches_every_control_and_each_has_a_name(reader):
    reader.open("all.html")
    controls = "button, select, input, summary, [tabindex]"
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
    reader.page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "the library"
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 320
    assert not reader.troubles
    context.close()


def test_narrow_screen_and_touch(browser, site):
    context = browser.new_context(
        viewport={"width": 320, "height": 700}, has_touch=True, is_mobile=True
    )
    reader = Reader(context.new_page(), site).open("all.html")
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 320
    curve = reader.part("curves").locator("svg").first
    curve.scroll_into_view_if_needed()
    box = curve.bounding_box()
    reader.page.touchscreen.tap(box["x"] + 46 + 0.25 * (box["width"] - 54), box["y"] + 40)
    reader.settle()
    assert (
        abs(int(reader.page.get_by_role("slider", name="NAD", exact=True).input_value()) - 256) < 8
    )
    finger = context.new_cdp_session(reader.page)

    def touch(kind, *points):
        points = [{"x": x, "y": y} for x, y in points]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    for name, key, element in (
        ("fourier", "frequency", "[role=application]"),
        ("curves", "index", "svg"),
    ):
        target = reader.part(name).locator(element).first
        target.evaluate("(e) => e.scrollIntoView({ block: 'center' })")
        before, top, box = reader.get(key), reader.page.evaluate("scrollY"), target.bounding_box()
        x, y = box["x"] + 0.7 * box["width"], box["y"] + 0.8 * box["height"]
        touch("touchStart", (x, y))
        for step in range(1, 11):
            touch("touchMove", (x, y - 15 * step))
        reader.page.wait_for_timeout(
            300
        )  # a finger that rests leaves no page that glides on, which a tap would stop
        touch("touchEnd")
        reader.settle()
        assert reader.page.evaluate("scrollY") > top + 80, f"{name}: a swipe scrolls"
        assert reader.get(key) == before, f"{name}: a swipe picks nothing"
    canvas = reader.part("fourier").get_by_role("application").first
    canvas.evaluate("(e) => e.scrollIntoView({ block: 'center' })")
    box = canvas.bounding_box()
    reader.page.touchscreen.tap(
        box["x"] + 25 / 32 * box["width"], box["y"] + 9 / 32 * box["height"]
    )
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


# The bet


def bet(reader, keys):
    """Move over the first map from the wave that it begins at, and choose: keys are letters of u, d, l, r and space."""
    box = reader.page.locator("nad-guess .map").first
    box.focus()
    for key in keys:
        box.press(
            {"u": "ArrowUp", "d": "ArrowDown", "l": "ArrowLeft", "r": "ArrowRight"}.get(
                key, "Space"
            )
        )


def known(name):
    return {(ky, kx): (energy, accuracy) for ky, kx, energy, accuracy in guess_data(name)["tasks"]}


def proceed(reader):
    return reader.page.locator("nad-guess button.main")


def scores(reader):
    """What the verdict compares: label -> right bets."""
    items = reader.page.locator("nad-guess .scores li").all()
    return {
        item.locator("span").inner_text(): float(item.locator("strong").inner_text())
        for item in items
    }


def learned(tasks, keys):
    return sum((tasks.get(k) or tasks[nb.waves.negative(k)])[1] > 0.55 for k in keys)


def failed(tasks, keys):
    return len(list(keys)) - learned(tasks, keys)


def test_a_bet_is_blind_and_the_finest_waves_lose(reader):
    reader.page.goto(f"{reader.site}/guess.html")
    tasks, maps = known("resnet18"), reader.page.locator("nad-guess .map")
    assert (
        reader.page.get_by_label("Network", exact=True).locator("option:checked").inner_text()
        == "ResNet-18"
    )
    assert proceed(reader).is_disabled() and not maps.last.is_visible()
    assert "nergy" not in reader.page.locator("nad-guess .guess").inner_text(), (
        "the first choice is blind"
    )
    tiles = reader.see("all waves", "nad-guess")
    assert np.ptp(tiles[..., :3].astype(int), axis=2).max() == 0, "no colour tells anything yet"
    assert "cannot learn" in reader.page.locator("nad-guess .question").inner_text()
    bet(reader, " r ")  # (0, 2), (0, 4)
    bet(reader, "dl l l ")  # (2, 2), (2, 0), (2, -2)
    assert not proceed(reader).is_disabled()
    bet(reader, "d ")  # five is all
    assert reader.page.locator("nad-guess figure").nth(3).locator(".guessed").count() == 10
    proceed(reader).press("Enter")
    assert (
        "Energy" in reader.page.locator("nad-guess .guess").inner_text()
        and not maps.last.is_visible()
    )
    assert reader.see("energies of waves", "nad-guess").shape == (16, 16, 4)
    proceed(reader).press("Enter")
    found, own = scores(reader), failed(tasks, [(0, 2), (0, 4), (2, 2), (2, 0), (2, -2)])
    darkest = sorted(tasks, key=lambda k: tasks[k][0])[:5]
    chance = 5 * failed(tasks, tasks) / len(tasks)
    assert found == {
        "your bet": own,
        "chance": round(chance, 1),
        "the 5 finest": 0,
        "the 5 darkest in the map": failed(tasks, darkest),
    }
    assert 0 < chance < own == 2 < failed(tasks, darkest)
    assert reader.see("accuracies of ResNet-18", "nad-guess").shape == (16, 16, 4)
    verdict = reader.page.locator("nad-guess .verdict").inner_text()
    pairs = [a > b for a, x in tasks.values() if x > 0.55 for b, y in tasks.values() if y <= 0.55]
    assert ("in all pairs" in verdict) == all(pairs)
    reader.page.get_by_role("button", name="Bet again").click()
    assert (
        proceed(reader).is_disabled() and not reader.page.locator("nad-guess .verdict").is_visible()
    )
    assert not reader.troubles


def test_both_maps_show_without_a_bet(reader):
    reader.page.goto(f"{reader.site}/guess.html")
    bet(reader, " ")  # one wave is no bet
    reader.page.get_by_role("button", name="Show me without a bet").click()
    tasks, maps = known("resnet18"), reader.page.locator("nad-guess .map")
    assert maps.last.is_visible() and set(scores(reader)) == {
        "chance",
        "the 5 finest",
        "the 5 darkest in the map",
    }
    heading = reader.page.locator("nad-guess .verdict p").first.inner_text()
    assert f"{learned(tasks, tasks)} of {len(tasks)}" in heading
    assert reader.page.locator("nad-guess .guessed").count() == 0 and "bet." not in reader.page.url
    reader.page.get_by_label("Network", exact=True).select_option(label="LeNet")
    assert maps.last.is_visible() and reader.see("accuracies of LeNet", "nad-guess").shape == (
        16,
        16,
        4,
    )
    assert not reader.page.get_by_role("button", name="Save picture").is_visible()
    reader.page.get_by_role("button", name="Make a bet").click()
    assert proceed(reader).is_disabled() and not maps.last.is_visible()
    assert not reader.troubles


def test_a_bet_may_be_changed_with_the_map(reader):
    reader.page.goto(f"{reader.site}/guess.html")
    bet(reader, " r dl l l ")
    proceed(reader).click()
    bet(reader, " uuuuuuuu ")  # (2, -2) is let go, for (-14, -2)
    reader.page.locator("nad-guess .map").first.focus()
    proceed(reader).click()
    tasks, kept = known("resnet18"), [(0, 2), (0, 4), (2, 2), (2, 0)]
    found = scores(reader)
    assert found["your blind bet"] == failed(tasks, [*kept, (2, -2)])
    assert found["your bet with the map"] == failed(tasks, [*kept, (-14, -2)])


def test_of_a_network_that_learns_few_waves_the_bet_is_on_those(reader):
    reader.page.goto(f"{reader.site}/guess.html")
    reader.page.get_by_label("Network", exact=True).select_option(label="DenseNet-121")
    assert "that it learned" in reader.page.locator("nad-guess .question").inner_text()
    reader.page.get_by_role("button", name="Show me without a bet").click()
    tasks, found = known("densenet121"), scores(reader)
    brightest = sorted(tasks, key=lambda k: -tasks[k][0])[:5]
    assert found["the 5 brightest in the map"] == learned(tasks, brightest)
    assert found["chance"] == round(5 * learned(tasks, tasks) / len(tasks), 1)


@pytest.mark.parametrize("width, height", [(1280, 560), (375, 560)])
def test_the_button_is_in_sight_while_waves_are_chosen(browser, site, width, height):
    """The page above the bet takes some 240 pixels of a screen of 800."""
    with browser.new_context(viewport={"width": width, "height": height}) as context:
        reader = Reader(context.new_page(), site)
        reader.page.goto(f"{site}/guess.html")
        bet(reader, " r dl l l ")
        reader.page.evaluate("scrollTo(0, 0)")
        button = proceed(reader).bounding_box()
        assert 0 <= button["y"] and button["y"] + button["height"] <= height


def test_the_images_of_a_task_differ_along_its_wave_only(reader):
    """Classes are noise plus and minus the wave, of the strength of the paper, or a hundred times it."""
    reader.page.goto(f"{reader.site}/guess.html")
    wave = nc.fourier_direction((0, 2), 32)[0].double().numpy()

    def size(label):
        return float(((reader.see(label, "nad-guess")[..., 0] - 128.0) * wave).sum()) * 3 / 42  # noqa: E731

    assert (
        abs(size("Noise plus")) < 4 and abs(size("Noise minus")) < 4
    )  # 1, next to rounding and clipping of noise
    reader.page.get_by_role("button", name="100 times stronger").click()
    assert size("Noise plus") > 50 and size("Noise minus") < -50


def test_a_result_has_an_address_and_a_picture(reader):
    reader.page.goto(f"{reader.site}/guess.html")
    bet(reader, " r dl l l ")
    proceed(reader).click()
    assert "bet." not in reader.page.url
    proceed(reader).click()
    found = scores(reader)
    reader.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reader.page.get_by_role("button", name="Copy link").click()
    address = reader.page.evaluate("navigator.clipboard.readText()")
    assert address.endswith("#bet.network=resnet18&bet.waves=[[0,2],[0,4],[2,2],[2,0],[2,-2]]")
    with reader.page.expect_download() as download:
        reader.page.get_by_role("button", name="Save picture").click()
    from PIL import Image

    with Image.open(download.value.path()) as picture:
        assert picture.size == (1200, 630) and len(picture.convert("RGB").getcolors(1_000_000)) > 20
    reader.page.goto("about:blank")
    reader.page.goto(address)
    question = reader.page.locator("nad-guess .question").inner_text()
    assert question.startswith(f"Somebody scored {found['your bet']:.0f}. Beat it.")
    assert proceed(reader).is_disabled() and not reader.page.locator("nad-guess .guessed").count()
    assert not reader.page.locator("nad-guess .map").last.is_visible(), "a link gives no answer"
    bet(reader, " r dl l l ")
    proceed(reader).click()
    proceed(reader).click()
    assert scores(reader) == found | {"somebody's bet": found["your bet"]}


@pytest.mark.parametrize(
    "hash",
    [
        "bet.network=alexnet&bet.waves=[[0,2],[0,4],[2,2],[2,0],[2,-2]]",
        "bet.network=lenet&bet.waves=[[0,2],[0,2],[2,2],[2,0],[2,-2]]",
        "bet.network=lenet&bet.waves=[[0,1],[0,4],[2,2],[2,0],[2,-2]]",
        "bet.network=lenet&bet.waves=[1,2",
        "bet.network=constructor&bet.waves=null",
    ],
)
def test_an_address_that_is_no_bet_begins_one(reader, hash):
    reader.page.goto("about:blank")
    reader.page.goto(f"{reader.site}/guess.html#{hash}")
    assert proceed(reader).is_disabled()
    bet(reader, " ")
    assert "4" in proceed(reader).inner_text() and not reader.troubles


def test_without_javascript_the_bet_is_a_picture_with_its_meaning(browser, site):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{site}/guess.html")
        image = page.locator("nad-guess img")
        assert image.is_visible() and image.get_attribute("src").endswith("_static/maps.png")
        assert len(page.locator("nad-guess").inner_text()) > 200


@pytest.mark.parametrize("width", [320, 1000])
def test_a_bet_by_touch(browser, site, width):
    with browser.new_context(
        viewport={"width": width, "height": 800}, has_touch=True, is_mobile=width < 500
    ) as context:
        reader = Reader(context.new_page(), site)
        reader.page.goto(f"{site}/guess.html")
        reader.page.get_by_label("Network", exact=True).select_option(label="DenseNet-121")
        box = reader.page.locator("nad-guess .map").first.bounding_box()
        chosen = [(8, 9), (8, 12), (3, 8), (2, 3), (15, 15)]  # rows and columns of cells
        for row, column in chosen:
            x, y = (
                box[side] + (i + 0.5) * box["width"] / 16 for side, i in (("x", column), ("y", row))
            )
            reader.page.touchscreen.tap(x, y)
        proceed(reader).tap()
        proceed(reader).tap()
        keys = [(2 * row - 16, 2 * column - 16) for row, column in chosen]
        assert scores(reader)["your bet"] == learned(known("densenet121"), keys)
        assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not reader.troubles


# The atlas


def cards(reader):
    return reader.page.locator("nad-atlas .card").evaluate_all(
        "(cards) => cards.map((card) => card.dataset.name)"
    )


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
        assert all(a >= b * 0.98 - 1e-2 for a, b in itertools.pairwise(values)), (
            key
        )  # sorted as they are rounded
    reader.page.get_by_role("button", name="none", exact=True).click()
    assert {atlas.entries[name].factor for name in cards(reader)} == {""}
    reader.page.get_by_role("button", name="padding", exact=True).click()
    assert {atlas.entries[name].factor for name in cards(reader)} == {"", "padding"}
    card = reader.page.locator("nad-atlas .card[data-name='densenet-circular']")
    card.focus()
    card.press("Enter")
    assert card.get_attribute("aria-pressed") == "true"
    assert card.evaluate(
        "(element) => element.getRootNode().activeElement === element"
    )  # the keyboard stays there
    for name in ("densenet-circular", "densenet"):
        assert_signed(
            reader.see(f"{name}, NAD 1", "nad-atlas"),
            load_entry_nads(name).directions[1, 0],
            tables,
        )
    names = list(atlas.entries)
    cosine = atlas.alignments[names.index("densenet-circular"), names.index("densenet")]
    assert f"a cosine of {cosine:.2f}" in reader.page.locator("nad-atlas .note").inner_text()
    switch = reader.page.get_by_role("switch")
    switch.click()
    assert switch.get_attribute("aria-checked") == "false" and "switched off" in switch.inner_text()
    assert (
        reader.page.locator("nad-atlas .row")
        .first.inner_text()
        .startswith("a small DenseNet (densenet)")
    )
    assert not reader.page.locator("nad-atlas .row").last.is_visible()
    reader.page.get_by_label("Compare with").select_option("mlp")
    assert reader.page.locator("nad-atlas .row").last.is_visible()
    border = atlas.measures["densenet"]["border"]
    assert f"{border.value:.2f} (" in reader.page.locator("nad-atlas table").inner_text()
    assert not reader.troubles


def test_the_atlas_is_in_its_address(reader):
    reader.page.goto(f"{reader.site}/atlas.html")
    reader.page.get_by_label("Sort by").select_option(index=1)
    reader.page.get_by_role("button", name="padding", exact=True).click()
    reader.page.locator("nad-atlas .card[data-name='densenet-circular']").first.wait_for(
        state="detached"
    )
    reader.page.locator("nad-atlas .card[data-name='vit-patch8']").click()
    reader.page.get_by_label("Compare with").select_option("mlp")
    reader.page.wait_for_function("location.hash.includes('atlas.beside=mlp')")
    address, shown, text = (
        reader.page.url,
        cards(reader),
        reader.page.locator("nad-atlas .note").inner_text(),
    )
    reader.page.goto("about:blank")
    reader.page.goto(address)
    reader.page.locator("nad-atlas .card").first.wait_for()
    assert cards(reader) == shown and reader.page.locator("nad-atlas .note").inner_text() == text
    chosen = reader.page.locator("nad-atlas .card[aria-pressed=true]")
    assert chosen.get_attribute("data-name") == "vit-patch8"
    reader.page.evaluate(
        "location.hash = 'atlas.chosen=nothing&atlas.sort=constructor&atlas.off=99,-1,x&atlas.on=?'"
    )
    reader.page.wait_for_function(
        "document.querySelector('nad-atlas').atlas.chosen.name === 'cnn-average'"
    )
    assert len(cards(reader)) == len(nb.atlas.load_atlas().entries) and not reader.troubles


@pytest.mark.parametrize("width", [320, 1000])
def test_the_atlas_by_touch(browser, site, width):
    with browser.new_context(
        viewport={"width": width, "height": 800}, has_touch=True, is_mobile=width < 500
    ) as context:
        reader = Reader(context.new_page(), site)
        reader.page.goto(f"{site}/atlas-own.html")  # brings its arrays along
        card = reader.page.locator("nad-atlas .card[data-name='vit-patch8']")
        card.tap()
        assert (
            reader.page.locator("nad-atlas .row")
            .first.inner_text()
            .startswith("patches of 8 (vit-patch8)")
        )
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
