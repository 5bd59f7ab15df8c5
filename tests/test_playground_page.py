"""The playground in a real browser: what it draws and trains is what the engine computes."""

import re

import numpy as np
import pytest
from explorer_pages import levels
from nads_book.explorer.playground import CHOICES
from PIL import Image
from test_playground import ARCHITECTURES, DEFAULT, ask, unpack  # noqa: F401  # a fixture

SMALL = {"blocks": 1, "channels": 4, "pooling": "stride"}  # quickly drawn and trained
LINEAR = {"pooling": "none", "activation": "none"}
FIGURE = "document.querySelector('nad-playground').figure"
FOCUS = f"{FIGURE}.host.shadowRoot.activeElement"
DRAWN = (
    f"() => {FIGURE}.sides[0].config && {FIGURE}.frame === null"
    f" && {FIGURE}.sides.every((s) => !s.config || s.ensemble?.found?.networks >= 400)"
)
TRAINED = f"() => {FIGURE}.frame === null && {FIGURE}.fits.every((fit) => !fit.running)"
LOOKED = f"() => {FIGURE}.inside?.found && {FIGURE}.frame === null"


def cell(wave):
    return (wave[0] + 8) * 16 + wave[1] + 8


def text(reader, selector):
    """Return a text of the page with ordinary spaces and minus signs."""
    found = reader.page.locator(f"nad-playground {selector}").first.inner_text()
    return found.replace("\u00a0", " ").replace("−", "-")


def drawn(reader):
    """Wait until all networks are drawn, and return the energies (PIXELS,) of each side."""
    reader.page.wait_for_function(DRAWN)
    energies = "(s) => (s.energies ? [...s.energies] : null)"
    sides = reader.page.evaluate(f"() => {FIGURE}.sides.map({energies})")
    return [np.array(side) if side else None for side in sides]


def opened(reader, options="", **changes):
    """Open the page of a network, and return the energies of A when all networks are drawn."""
    config = DEFAULT | changes
    network = "-".join(str(config[key]).lower() for key in CHOICES)
    reader.open(f"playground.html#playground.network={network}&{options}")
    return drawn(reader)[0]


def state(reader):
    """Return kind of mark and accuracy of each trained cell of A."""
    reader.page.wait_for_function(TRAINED)
    mark = "(m) => [m.cell, m.kind, side.trained.get(m.cell).accuracy]"
    side = f"(side) => {FIGURE}.marksOf(side).map({mark})"
    found = reader.page.evaluate(f"() => ({side})({FIGURE}.sides[0])")
    return {place: (kind, accuracy) for place, kind, accuracy in found}


def shares(reader):
    """Return the shares of the amplitude at all places of the drawing, in per cent."""
    reader.page.wait_for_function(LOOKED)
    texts = reader.page.locator("nad-playground .place .left").all_text_contents()
    return [float(text.replace("\u00a0%", "")) for text in texts]


def bet(reader, answer):
    """Place a bet, and return what came out."""
    reader.page.get_by_role("button", name=re.compile(answer)).first.click()
    reader.page.wait_for_function(f"() => {FIGURE}.outcome")
    return reader.page.evaluate(f"() => {FIGURE}.outcome")


pytestmark = pytest.mark.slow  # tests/test_playground.py asks the engine without a browser


@pytest.fixture(scope="session")
def assert_energies(ask):  # noqa: F811
    """Compare energies with those of 400 networks, computed in Node."""

    def compare(found, **changes):
        answer = ask("ensemble", config=DEFAULT | changes, networks=400, seed=1)
        expected = unpack(answer["energies"], -1).numpy()
        assert np.abs(found - expected).max() < 1e-5 * expected.max()
        return expected / expected.max()

    return compare


def test_the_map_shows_the_engines_energies(reader, assert_energies, tables):
    """Also where the address makes no sense."""
    nonsense = "playground.against=pooling-7&playground.wave=9,x&playground.trained-a=0,99;q"
    share = assert_energies(opened(reader, nonsense, skip="maybe"))
    assert drawn(reader)[1] is None and not state(reader)
    shade = 255 * np.clip(np.log10(np.clip(share, 1e-9, None)) / 3 + 1, 0, 1)
    pixels = reader.see("", "nad-playground .side.a")
    assert np.abs(levels(pixels, tables["magma"]).flatten() - shade).max() <= 0.51
    nads = f"() => {FIGURE}.sides[0].ensemble.found.nads.map((n) => n.certainty <= 0.5)"
    unsure = "(all) => all.map((e) => e.classList.contains('unsure'))"
    figures = reader.page.locator("nad-playground .first.a figure")
    assert figures.evaluate_all(unsure) == reader.page.evaluate(nads)
    row, column = divmod(int(share.argmax()), 16)
    words = text(reader, ".side.a .sr")
    assert f"({row - 8}, {column - 8})" in words and str(int((share > 0.01).sum())) in words


def test_training_by_keyboard(reader, ask, assert_energies):  # noqa: F811
    share = assert_energies(opened(reader, **SMALL), **SMALL)
    reader.page.evaluate(
        f"""() => {{
          window.spoken = [];
          const note = () => window.spoken.push({FIGURE}.spoken.textContent);
          new MutationObserver(note).observe({FIGURE}.spoken, {{ childList: true }});
        }}"""
    )
    reader.page.get_by_role("grid", name="Energies of all waves, network A").focus()
    right = 0
    for keys, wave in (("", (4, 4)), (["ArrowUp"] * 4, (0, 4))):
        for key in (*keys, "Enter"):
            reader.page.keyboard.press(key)
        kind, accuracy = state(reader)[cell(wave)]
        answer = ask("training", config=DEFAULT | SMALL, wave=wave, seed=1, epochs=20)
        expected = answer["accuracies"][-1]
        assert accuracy == pytest.approx(expected, abs=0.01)
        assert kind == ("learned" if expected > 0.75 else "missed")
        right += (expected > 0.75) == (share[cell(wave)] > 0.01)
    spoken = reader.page.evaluate("window.spoken")
    assert len(spoken) == 8, "a wave, the start and the end of a training; not each epoch"
    assert "(0,\u00a04)" in spoken[-3] and re.search("learned|missed", spoken[-3])
    assert f"{100 * accuracy:.0f}\u00a0%" in spoken[-1] and f"{right} of 2" in spoken[-1]
    assert text(reader, ".status") in spoken[-1].replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"pooling": "stride", "head": "global"}, "wave=4,2", "fails below 5 %"),
        (LINEAR | {"head": "global", "padding": "circular"}, "wave=4,2", "No energy"),
        (SMALL, "rate=0.02", "20 epochs, rate 0.5"),
        ({}, "wave=4,4", "0.086 % of the largest energy. 1 % rule: missed."),
    ],
)
def test_the_prediction_says_where_it_fails(reader, changes, options, words):
    opened(reader, f"playground.{options}", **changes)
    about = text(reader, ".about")
    assert "1 % rule" in about and words in about


def test_two_networks_side_by_side_and_their_address(reader, assert_energies, tab, site):
    before = {"blocks": 1, "pooling": "average"}
    opened(reader, **before)
    reader.page.get_by_role("radio", name="4", exact=True).check()
    reader.page.get_by_role("combobox", name="Compare with").select_option("pooling=stride")
    for side, wave in ((0, (1, -3)), (1, (1, -2))):
        drawn(reader)
        reader.page.evaluate(f"() => {FIGURE}.train({FIGURE}.sides[{side}], {cell(wave)})")
        marks = state(reader)
    reader.page.wait_for_function("() => location.hash.includes('trained-b')")
    other = tab(site).open(reader.page.url.removeprefix(f"{site}/"))
    for found, config in zip(drawn(other), [before | {"channels": 4}, SMALL], strict=True):
        assert_energies(found, **config)
    assert state(other) == marks and [*marks] == [cell((1, -3))]
    for part in (".about", ".status", ".score"):
        assert text(other, part) == text(reader, part)


def test_the_python_runs_and_gives_the_maps(reader, capsys):
    """Of both networks that are compared; `energies` are those of the second."""
    opened(reader, "playground.against=skip-true", **ARCHITECTURES["comb"])
    reader.button("Show the Python").click()
    exec(reader.page.locator("nad-playground code").inner_text(), names := {})  # noqa: S102
    layers = [[type(layer).__name__ for layer in names[f"build_{x}"]()] for x in "ab"]
    assert "SkipConv2d" not in layers[0] and "SkipConv2d" in layers[1]
    assert capsys.readouterr().out.count("tensor") == 2
    found, expected = names["energies"].flatten().numpy(), drawn(reader)[1]
    found, expected = found / found.sum(), expected / expected.sum()
    bright = expected > 0.03 * expected.max()
    assert np.corrcoef(found, expected)[0, 1] > 0.99
    assert np.median(np.abs(np.log(found[bright] / expected[bright]))) < 0.15


def test_a_bet_by_keyboard(reader):
    """The focus stays in the tour, although its buttons are replaced, and says the question."""
    reader.open("playground.html")
    page = reader.page
    reader.button("Guided: five bets").focus()
    for key in ("Enter", *["Tab"] * 3, "Enter"):  # start, leave, skip, then the first answer
        page.keyboard.press(key)
        if key == "Enter":
            focus = page.evaluate(f"() => {FOCUS}.getAttribute('aria-label')")
            assert focus.startswith("Bet 1 of 5") and page.get_by_role("region", name=focus)
            assert ("Which accuracy" in focus) == (page.evaluate(f"() => {FIGURE}.bet") is None)
    page.wait_for_function(f"() => {FIGURE}.outcome")
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.evaluate(f"() => {FOCUS}.textContent") == "Next bet"


def test_the_tours_words_show_where_a_wave_is_lost(reader):
    """The second average removes the wave (4, 4), and strides do not."""
    reader.open("playground.html#playground.bet=1")
    energies = drawn(reader)[0]
    assert not reader.page.locator("nad-playground .place .left").count(), "it would be the answer"
    bet(reader, "About 75 %")
    reader.button("second average").click()
    before = shares(reader)
    assert before[0] == 100 and before[1] > 20 and before[2] < 5 and before[3] < 5
    steps = reader.page.locator("nad-playground .layer-panel .maps-row")
    assert steps.count() == 3
    last = steps.locator("p").last.inner_text()
    assert f"{before[2]:g}\u00a0%" in last, "the panel and the drawing show one number"
    assert "cancels" in text(reader, ".layer-panel .sum")
    reader.button("Next bet").click()
    bet(reader, "About 100 %")
    reader.button("second stride").click()
    drawn(reader)
    assert min(strides := shares(reader)) > 50
    assert "survives" in text(reader, ".layer-panel .sum")
    # Networks that were looked into are drawn again as they were.
    reader.button("second average").click()
    assert np.array_equal(drawn(reader)[0], energies) and shares(reader) == before
    reader.page.keyboard.press("Escape")
    assert reader.page.evaluate(f"() => {FOCUS}.textContent") == "second average"
    drawn(reader)
    assert shares(reader) == strides, "the networks of this bet"


def test_a_photo_passes_the_layers(reader, tmp_path):
    """The cat and a photo of the reader's are directions like waves: drawn, and trained on."""
    opened(reader, **SMALL)
    shares(reader)
    place = reader.page.locator("nad-playground .place").nth(1)
    place.focus()
    reader.page.keyboard.press("Enter")
    reader.button("The cat").click()
    assert shares(reader)[-1] > 5
    image = np.zeros((32, 32, 3), np.uint8)
    image[16:] = 255
    Image.fromarray(image).save(tmp_path / "half.png")
    reader.page.get_by_label("A photo of your own").set_input_files(tmp_path / "half.png")
    reader.page.wait_for_function(f"() => {FIGURE}.picture.name === 'your photo'")
    direction = reader.page.evaluate(f"() => [...{FIGURE}.picture.direction]")
    assert np.allclose(direction, np.repeat([-1, 1], 128) / 16, atol=0.01)
    shares(reader)
    reader.button("Close").press("Enter")
    shares(reader)
    place.click()
    reader.button("The cat").click()
    reader.button("Train on the cat").click()
    reader.page.wait_for_function(TRAINED)
    assert re.search("The cat.*learned", text(reader, ".status"))


def test_a_training_steps_pauses_stops_and_has_several_networks(reader):
    opened(reader, "playground.networks=5", **SMALL)
    epoch = f"() => {FIGURE}.sides[0].trained.get({FIGURE}.held)?.epoch"
    for number in (1, 2):
        reader.button("Step").click()
        reader.page.wait_for_function(f"{epoch} === {number}")
        reader.page.wait_for_timeout(300)
        assert reader.page.evaluate(epoch) == number, "it waits"
    lines = reader.page.locator("nad-playground .curve polyline")
    reader.button("Stop").click()
    assert not state(reader) and text(reader, ".score") == "", "no verdict"
    assert lines.count() == 5 and "stopped" in text(reader, ".status"), "but its curve"
    reader.page.get_by_role("button", name="Train on wave").click()
    marks = state(reader)
    verdicts = reader.page.evaluate(f"() => {FIGURE}.sides[0].trained.get({FIGURE}.held).verdicts")
    count = f"{sum(verdicts)} of 5"
    assert lines.count() == 5 and f"{count} networks learned" in text(reader, ".status")
    assert reader.page.locator("nad-playground .curve .end").text_content() == count
    kinds = {0: "missed", 5: "learned"}
    assert [kind for kind, _ in marks.values()] == [kinds.get(sum(verdicts), "mixed")]


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (375, 812)])
def test_each_step_of_the_tour_fits_one_screen(tab, site, width, height):
    """All bets on what the book says are won. On a phone a tap selects, a button trains."""
    phone = width < 500
    screen = {"width": width, "height": height}
    reader = tab(site, viewport=screen, has_touch=phone)
    opened(reader)
    small = """(all) => all.filter((e) => e.checkVisibility()
        && e.getBoundingClientRect().height < 43).map((e) => e.textContent)"""
    targets = reader.page.locator("nad-playground :is(button, .option):visible")
    if phone:
        reader.page.get_by_role("grid").first.tap(position={"x": 30, "y": 30})
        assert not state(reader)
        assert reader.page.evaluate(f"() => {FIGURE}.held") != cell((4, 4))
        assert targets.evaluate_all(small) == []
    numbers = []
    reader.button("Guided: five bets").click()
    for answer in ("50 %: it guesses", "About 100 %", "A regular grid", "Neither", "None"):
        assert reader.page.locator("nad-playground .task figure").first.is_visible()
        result = bet(reader, answer)
        assert result.startswith("You win.")
        numbers.append([float(x) for x in re.findall(r"([\d.]+)\s%", result)])
        assert reader.page.locator("nad-playground .axis-across .title").first.is_visible()
        boxes = reader.page.evaluate(
            f"""() => [{FIGURE}.tour, {FIGURE}.sides[0].map.box, {FIGURE}.drawing,
                {FIGURE}.chart, {FIGURE}.status].map((e) => e.getBoundingClientRect())
                .map(({{top, bottom}}) => [top, bottom])"""
        )
        assert boxes[0][0] >= 0 and max(bottom for _, bottom in boxes) <= height, boxes
        assert not phone or targets.evaluate_all(small) == []
        if answer != "None":
            reader.button("Next bet").click()
    assert reader.fits()
    low, strides, grid, padding, linear = numbers
    assert low[0] < 55 and low[1] < 1 and strides[0] > 95 and strides[1] > 40 and grid[0] > 70
    assert padding[0] > 15 and padding[1] < 10 and linear[-1] > 95


def test_it_pauses_out_of_sight(reader):
    large = "convolution-3-16-5-none-relu-none-flat-false-zeros"
    reader.open(f"playground.html#playground.network={large}")
    networks = f"() => {FIGURE}.sides[0].ensemble.networks"
    reader.page.wait_for_function(f"() => {FIGURE}.sides[0].ensemble?.networks > 0")
    reader.page.evaluate("document.body.style.paddingBottom = '9000px'; scrollTo(0, 8000)")
    reader.page.wait_for_function(f"() => {FIGURE}.pool.paused")
    before = None
    now = reader.page.evaluate(networks)
    while before != now:  # messages may be on their way
        reader.page.wait_for_timeout(500)
        before, now = now, reader.page.evaluate(networks)
    assert now < 400
    reader.page.evaluate("scrollTo(0, 0)")
    reader.page.wait_for_function(f"() => {FIGURE}.sides[0].ensemble.networks > {before}")
