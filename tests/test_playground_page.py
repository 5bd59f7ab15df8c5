"""The playground in a real browser: what it draws and trains is what the engine computes."""

import re

import numpy as np
import pytest
from explorer_pages import Reader, levels
from nads_book.explorer.playground import CHOICES
from PIL import Image
from test_playground import ARCHITECTURES, DEFAULT, ask, unpack  # noqa: F401  # a fixture

SMALL = {"blocks": 1, "channels": 4, "pooling": "stride"}  # quickly drawn and trained
LINEAR = {"pooling": "none", "activation": "none"}
FIGURE = "document.querySelector('nad-playground').figure"
DRAWN = (
    f"() => {FIGURE}.sides[0].config && {FIGURE}.frame === null"
    f" && {FIGURE}.sides.every((s) => !s.config || s.ensemble?.found?.networks >= 400)"
)
TRAINED = (
    f"() => {FIGURE}.frame === null"
    f" && {FIGURE}.sides.every((s) => [...s.trained.values()].every((t) => !t.running))"
)


def cell(wave):
    return (wave[0] + 8) * 16 + wave[1] + 8


def spaced(text):
    """Return a text of the page with ordinary spaces and minus signs."""
    return text.replace("\u00a0", " ").replace("−", "-")


def address(**changes):
    config = DEFAULT | changes
    return "-".join(str(config[key]).lower() for key in CHOICES)


def drawn(reader):
    """Wait until all networks are drawn, and return the energies (PIXELS,) of each side."""
    reader.page.wait_for_function(DRAWN)
    energies = "(s) => (s.energies ? [...s.energies] : null)"
    sides = reader.page.evaluate(f"() => {FIGURE}.sides.map({energies})")
    return [np.array(side) if side else None for side in sides]


def state(reader):
    """Return accuracy and kind of mark of each trained cell of A."""
    reader.page.wait_for_function(TRAINED)
    mark = "(m) => [m.cell, m.kind, side.trained.get(m.cell).accuracy]"
    side = f"(side) => {FIGURE}.marksOf(side).map({mark})"
    return reader.page.evaluate(f"() => ({side})({FIGURE}.sides[0])")


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
    reader.open(
        "playground.html#playground.network=convolution-2-8-3-average-relu-none-flat-maybe-zeros"
        "&playground.against=pooling-7&playground.wave=9,x&playground.trained-a=0,99;q",
        wait=False,
    )
    found, nothing = drawn(reader)
    share = assert_energies(found)
    assert nothing is None and state(reader) == []
    shade = 255 * np.clip(np.log10(np.clip(share, 1e-9, None)) / 3 + 1, 0, 1)
    pixels = reader.see("", "nad-playground .side.a")
    assert np.abs(levels(pixels, tables["magma"]).flatten() - shade).max() <= 0.51
    nads = f"() => {FIGURE}.sides[0].ensemble.found.nads.map((n) => n.certainty <= 0.5)"
    unsure = "(all) => all.map((e) => e.classList.contains('unsure'))"
    figures = reader.page.locator("nad-playground .first.a figure")
    assert figures.evaluate_all(unsure) == reader.page.evaluate(nads)
    row, column = divmod(int(found.argmax()), 16)
    words = spaced(reader.page.locator("nad-playground .side.a .sr").inner_text())
    assert f"({row - 8}, {column - 8})" in words and str(int((share > 0.01).sum())) in words


def test_training_by_keyboard(reader, ask, assert_energies):  # noqa: F811
    reader.open(f"playground.html#playground.network={address(**SMALL)}", wait=False)
    share = assert_energies(drawn(reader)[0], **SMALL)
    reader.page.get_by_role("grid", name="Energies of all waves, network A").focus()
    for key in ("Enter", *["ArrowUp"] * 4):  # from (4, 4) to (0, 4)
        reader.page.keyboard.press(key)
    spoken = spaced(reader.page.locator("nad-playground .side-panel > .sr").inner_text())
    assert "(0, 4)" in spoken and "%" in spoken and ("learned" in spoken or "missed" in spoken)
    cursor = reader.page.get_by_role("gridcell").first.get_attribute("aria-label")
    assert "(0, 4)" in spaced(cursor)
    reader.page.keyboard.press("Enter")
    marks = {found: (kind, accuracy) for found, kind, accuracy in state(reader)}
    right = 0
    for wave in ((4, 4), (0, 4)):
        answer = ask("training", config=DEFAULT | SMALL, wave=wave, seed=1, epochs=20)
        expected = answer["accuracies"][-1]
        kind, accuracy = marks.pop(cell(wave))
        assert accuracy == pytest.approx(expected, abs=0.01)
        assert kind == ("learned" if expected > 0.75 else "missed")
        right += (expected > 0.75) == (share[cell(wave)] > 0.01)
    assert not marks
    figure = reader.page.locator("nad-playground")
    assert f"{100 * accuracy:.0f}\u00a0%" in figure.locator(".status").inner_text()
    assert re.findall(r"(\d+) of (\d+)", figure.locator(".score").inner_text()) == [
        (str(right), "2")
    ]


def test_a_click_chooses_a_wave_and_a_button_trains(reader):
    """The buttons stay where they are, whatever the wave and its training."""
    reader.open(f"playground.html#playground.network={address(**SMALL)}", wait=False)
    drawn(reader)
    places = f"""(all) => all.map((e) => e.getBoundingClientRect()).map(({{x, y}}) =>
        [x, y - {FIGURE}.root.getBoundingClientRect().y])"""
    buttons = reader.page.locator("nad-playground .controls button")
    inside(reader)
    before = buttons.evaluate_all(places)
    reader.page.get_by_role("grid").first.click(position={"x": 5, "y": 5})
    assert reader.page.evaluate(f"() => {FIGURE}.held") == cell((-8, -8))
    assert state(reader) == []
    reader.page.get_by_role("button", name="Train on wave").click()
    assert [found for found, *_ in state(reader)] == [cell((-8, -8))]
    assert buttons.evaluate_all(places) == before
    reader.page.wait_for_function("() => location.hash.includes('playground.wave=-8,-8')")


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"pooling": "stride", "head": "global"}, "wave=4,2", "fails below 5 %"),
        (LINEAR | {"head": "global", "padding": "circular"}, "wave=4,2", "No energy"),
        (SMALL, "rate=0.02", "20 epochs, rate 0.5"),
        (LINEAR, "wave=4,4", "all waves have nearly the same"),
        ({}, "wave=4,4", ""),
    ],
)
def test_the_prediction_says_where_it_fails(reader, changes, options, words):
    reader.open(
        f"playground.html#playground.network={address(**changes)}&playground.{options}", False
    )
    drawn(reader)
    about = spaced(reader.page.locator("nad-playground .about").inner_text())
    assert "1 % rule" in about and words in about
    assert words or about == "0.086 % of the largest energy. 1 % rule: missed."


def test_a_sample_of_waves_is_trained_and_can_be_stopped(reader):
    page = f"playground.html#playground.network={address(**SMALL, head='global')}"
    reader.open(page, wait=False)
    energy = drawn(reader)[0]
    # Stopped at once, so that no training is ready before.
    reader.page.evaluate(f"() => {{ {FIGURE}.moreButton.click(); {FIGURE}.stop() }}")
    assert state(reader) == []
    # A reload does not start them again.
    reader.page.wait_for_function("() => !location.hash.includes('trained-a')")
    reader.button("Train six more").click()
    marks = state(reader)
    promising = [energy[found] > 0.01 * energy.max() for found, *_ in marks]
    assert len(marks) >= 6 and 3 <= sum(promising) <= len(marks) - 3


def test_two_networks_side_by_side_and_their_address(reader, assert_energies, browser, site):
    before = {"blocks": 1, "pooling": "average"}
    reader.open(f"playground.html#playground.network={address(**before)}", wait=False)
    reader.page.get_by_role("radio", name="4", exact=True).check()
    reader.page.get_by_role("combobox", name="Compare with").select_option("pooling=stride")
    both = [before | {"channels": 4}, SMALL]
    for found, config in zip(drawn(reader), both, strict=True):
        assert_energies(found, **config)
    for side, wave in ((0, (1, -3)), (1, (1, -2))):
        reader.page.evaluate(f"() => {FIGURE}.train({FIGURE}.sides[{side}], {cell(wave)})")
        marks = state(reader)
    assert [found for found, *_ in marks] == [cell((1, -3))]
    reader.page.wait_for_function("() => location.hash.includes('trained-b')")
    texts = reader.page.locator("nad-playground").locator(".about, .status, .score")
    texts = texts.all_inner_texts()
    with browser.new_context() as context:
        other = Reader(context.new_page(), site)
        other.open(reader.page.url.removeprefix(f"{site}/"), wait=False)
        for found, config in zip(drawn(other), both, strict=True):
            assert_energies(found, **config)
        assert state(other) == marks and not other.troubles
        read = other.page.locator("nad-playground").locator(".about, .status, .score")
        assert read.all_inner_texts() == texts


@pytest.mark.slow
def test_the_python_of_a_comparison_draws_both_networks(reader, capsys):
    config = ARCHITECTURES["none, circular"]
    page = f"playground.html#playground.network={address(**config)}&playground.against=skip-true"
    reader.open(page, wait=False)
    reader.button("Show the Python").click()
    exec(reader.page.locator("nad-playground code").inner_text(), names := {})  # noqa: S102
    layers = [[type(layer).__name__ for layer in names[f"build_{x}"]()] for x in "ab"]
    assert "SkipConv2d" not in layers[0] and "SkipConv2d" in layers[1]
    assert capsys.readouterr().out.count("tensor") == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["comb", "skip", "none, circular"])
def test_the_python_runs_and_gives_the_map(reader, name, capsys):
    page = f"playground.html#playground.network={address(**ARCHITECTURES[name])}"
    reader.open(page, wait=False)
    reader.button("Show the Python").click()
    exec(reader.page.locator("nad-playground code").inner_text(), names := {})  # noqa: S102
    found = names["energies"].flatten().numpy()
    expected = drawn(reader)[0]
    found, expected = found / found.sum(), expected / expected.sum()
    bright = expected > 0.03 * expected.max()
    alike = np.std(expected[bright]) < 0.2 * expected.mean()
    assert alike or np.corrcoef(found, expected)[0, 1] > 0.99
    assert np.median(np.abs(np.log(found[bright] / expected[bright]))) < 0.15


@pytest.mark.slow
def test_the_five_bets(reader):
    """Bet on what the book says: all are won, by numbers of the maps and trainings."""
    reader.open("playground.html", wait=False)
    reader.button("Guided: five bets").click()
    numbers = []
    for answer in ("50 %: it guesses", "About 100 %", "A regular grid", "Neither", "None"):
        reader.page.get_by_role("button", name=re.compile(answer)).click()
        reader.page.wait_for_function(f"() => {FIGURE}.outcome")
        result = reader.page.evaluate(f"() => {FIGURE}.outcome")
        assert result.startswith("You win.")
        numbers.append([float(x) for x in re.findall(r"([\d.]+)\s%", result)])
        if answer != "None":
            reader.button("Next bet").click()
    assert numbers[0][0] < 55 and numbers[0][1] < 1
    assert numbers[1][0] > 95 and numbers[1][1] > 40
    assert numbers[2][0] > 70
    assert numbers[3][0] > 15 and numbers[3][1] < 10
    assert numbers[4][-1] > 95


def test_a_bet_by_keyboard(reader):
    """The focus stays in the tour, although its buttons are replaced."""
    reader.open("playground.html", wait=False)
    page = reader.page
    focus = f"{FIGURE}.host.shadowRoot.activeElement"
    reader.button("Guided: five bets").focus()
    for key in ("Enter", *["Tab"] * 3, "Enter"):  # start, leave, skip, then the first answer
        page.keyboard.press(key)
        assert page.evaluate(f"() => {FIGURE}.tour.contains({focus})"), key
    page.wait_for_function(f"() => {FIGURE}.outcome")
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.evaluate(f"() => {focus}.textContent") == "Next bet"


def inside(reader):
    """Return the shares of the amplitude at all places of the drawing, in per cent."""
    reader.page.wait_for_function(f"() => {FIGURE}.inside?.found && {FIGURE}.frame === null")
    texts = reader.page.locator("nad-playground .place .left").all_text_contents()
    return [float(text.replace("\u00a0%", "")) for text in texts]


def test_the_tours_words_show_where_a_wave_is_lost(reader):
    """The second average removes the wave (4, 4), and strides do not, also as pictures."""
    reader.open("playground.html#playground.bet=1", wait=False)
    drawn(reader)
    assert inside_is_hidden(reader), "the numbers would answer the bet"
    reader.page.get_by_role("button", name=re.compile("About 75 %")).click()
    reader.page.wait_for_function(f"() => {FIGURE}.outcome")
    reader.button("second average").click()
    drawn(reader)
    shares = inside(reader)
    assert shares[0] == 100 and shares[1] > 20 and shares[2] < 5 and shares[3] < 5
    steps = reader.page.locator("nad-playground .layer-panel .maps-row")
    contrast = [
        row.locator("canvas").evaluate_all(
            "(all) => Math.max(...all.flatMap((c) => [...c.getContext('2d')"
            ".getImageData(0, 0, c.width, c.height).data].map((x) => 247 - x)))"
        )
        for row in steps.all()
    ]
    assert len(contrast) == 3 and contrast[2] < 0.5 * contrast[0], contrast
    last = reader.page.locator("nad-playground .layer-panel .maps-row p").last.inner_text()
    assert f"{shares[2]:g}\u00a0%" in last, "the panel and the drawing show one number"
    assert "cancels" in reader.page.locator("nad-playground .layer-panel .sum").inner_text()
    reader.button("Next bet").click()
    reader.page.get_by_role("button", name=re.compile("About 100 %")).click()
    reader.page.wait_for_function(f"() => {FIGURE}.outcome")
    reader.button("second stride").click()
    drawn(reader)
    assert min(inside(reader)) > 50
    assert reader.page.locator("nad-playground .layer-panel .sum").count() == 0


def inside_is_hidden(reader):
    return reader.page.locator("nad-playground .place .left").count() == 0


def test_a_photo_passes_the_layers(reader, tmp_path):
    """The cat and a photo of the reader's are directions like waves: drawn, and trained on."""
    reader.open(f"playground.html#playground.network={address(**SMALL)}", wait=False)
    drawn(reader)
    inside(reader)
    place = reader.page.locator("nad-playground .place").nth(1)
    place.focus()
    reader.page.keyboard.press("Enter")
    reader.button("The cat").click()
    drawn(reader)
    assert inside(reader)[-1] > 5
    image = np.zeros((32, 32, 3), np.uint8)
    image[16:] = 255
    Image.fromarray(image).save(tmp_path / "half.png")
    reader.page.get_by_label("A photo of your own").set_input_files(tmp_path / "half.png")
    reader.page.wait_for_function(f"() => {FIGURE}.picture.name === 'your photo'")
    direction = reader.page.evaluate(f"() => [...{FIGURE}.picture.direction]")
    expected = np.repeat([-1, 1], 128) / 16
    assert np.allclose(direction, expected, atol=0.01)
    inside(reader)
    assert reader.page.locator("nad-playground .layer-panel .maps-row").count() == 3
    reader.button("Close").click()
    assert reader.page.evaluate(f"() => {FIGURE}.held") == cell((4, 4))
    place.click()
    reader.button("The cat").click()
    reader.button("Train on the cat").click()
    reader.page.wait_for_function(TRAINED)
    status = reader.page.locator("nad-playground .status").inner_text()
    assert "The cat" in status and "learned" in status


def test_a_training_steps_pauses_and_has_several_networks(reader):
    reader.open(
        f"playground.html#playground.network={address(**SMALL)}&playground.networks=5", wait=False
    )
    drawn(reader)
    epoch = f"() => {FIGURE}.sides[0].trained.get({FIGURE}.held)?.epoch"
    reader.button("Step").click()
    reader.page.wait_for_function(f"{epoch} === 1")
    reader.page.wait_for_timeout(300)
    assert reader.page.evaluate(epoch) == 1, "it waits"
    reader.button("Step").click()
    reader.page.wait_for_function(f"{epoch} === 2")
    reader.button("Go on").click()
    reader.page.wait_for_function(TRAINED)
    figure = reader.page.locator("nad-playground")
    assert figure.locator(".curve polyline").count() == 5
    verdicts = reader.page.evaluate(f"() => {FIGURE}.sides[0].trained.get({FIGURE}.held).verdicts")
    count = f"{sum(verdicts)} of 5"
    assert f"{count} networks learned" in figure.locator(".status").inner_text()
    assert figure.locator(".curve .end").text_content() == count
    kinds = {0: "missed", 5: "learned"}
    assert [kind for _, kind, _ in state(reader)] == [kinds.get(sum(verdicts), "mixed")]
    reader.page.get_by_text("Epochs, learning rate").click()
    reader.page.get_by_role("combobox", name="Noise").select_option("1.4")
    assert reader.page.evaluate(epoch) is None, "what was trained had other noise"
    reader.page.wait_for_function("() => location.hash.includes('playground.noise=1.4')")


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (375, 812)])
def test_each_step_of_the_tour_fits_one_screen(browser, site, width, height):
    """Question or verdict, map, network and curve; on a phone a tap selects, a button trains."""
    with browser.new_context(
        viewport={"width": width, "height": height}, has_touch=width < 500
    ) as context:
        reader = Reader(context.new_page(), site)
        reader.open("playground.html", wait=False)
        drawn(reader)
        if width < 500:
            reader.page.get_by_role("grid").first.tap(position={"x": 30, "y": 30})
            assert state(reader) == []
            chosen = reader.page.evaluate(f"() => {FIGURE}.held")
            assert chosen != cell((4, 4))
            small = """(all) => all.filter((e) => e.checkVisibility()
                && e.getBoundingClientRect().height < 43).map((e) => e.textContent)"""
            targets = reader.page.locator("nad-playground :is(button, .option):visible")
            assert targets.evaluate_all(small) == []
            title = reader.page.locator("nad-playground .axis-across .title").first
            assert title.is_visible()
        reader.button("Guided: five bets").click()
        for step in range(5):
            assert reader.page.locator("nad-playground .task figure").first.is_visible()
            bet = reader.page.locator("nad-playground .tour .chip").first
            bet.click()
            reader.page.wait_for_function(f"() => {FIGURE}.outcome")
            boxes = reader.page.evaluate(
                f"() => [{FIGURE}.tour, {FIGURE}.sides[0].map.box, {FIGURE}.drawing, {FIGURE}.chart]"
                ".map((e) => e.getBoundingClientRect()).map(({top, bottom}) => [top, bottom])"
            )
            assert boxes[0][0] >= 0 and max(bottom for _, bottom in boxes) <= height, boxes
            if width < 500:
                assert targets.evaluate_all(small) == []
            if step < 4:
                reader.button("Next bet").click()
        assert reader.fits() and not reader.troubles


def test_it_pauses_out_of_sight(reader):
    large = address(blocks=3, channels=16, kernel=5, pooling="none")
    reader.open(f"playground.html#playground.network={large}", wait=False)
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
