"""The playground in a real browser: what it draws and trains is what the engine computes, whoever uses it and how."""

import json
import re

import numpy as np
import pytest
from explorer_pages import Reader, levels
from nads_book.explorer import Playground
from nads_book.explorer.playground import CHOICES
from test_playground import ARCHITECTURES, DEFAULT, PIXELS, ask, unpack  # noqa: F401  # a fixture

import nads_core as nc

FIGURE = "document.querySelector('nad-playground').figure"
DRAWN = (
    f"() => {FIGURE}.sides[0].config && {FIGURE}.sides.every("
    "(s) => !s.config || s.ensemble?.found?.networks >= 400)"
)
TRAINED = f"() => {FIGURE}.sides.every((s) => [...s.trained.values()].every((t) => !t.job))"
BESIDE = {"average": {}, "stride": {"pooling": "stride"}}


def cell(wave):
    return (wave[0] + 8) * 16 + wave[1] + 8


@pytest.fixture(scope="session")
def energies(ask):  # noqa: F811
    """Give the energies of 400 networks, computed in Node, by architecture."""
    found = {}

    def compute(config):
        key = json.dumps(config)
        if key not in found:
            found[key] = unpack(
                ask("ensemble", config=config, networks=400, seed=1)["energies"], -1
            ).numpy()
        return found[key]

    return compute


def drawn(reader, wait=DRAWN):
    """Wait until all networks are drawn, and return the energies (PIXELS,) of each side."""
    reader.page.wait_for_function(wait)
    reader.page.wait_for_function(f"() => {FIGURE}.frame === null")
    sides = reader.page.evaluate(
        f"() => {FIGURE}.sides.map((s) => (s.energies ? [...s.energies] : null))"
    )
    return [np.array(side) if side else None for side in sides]


def state(reader):
    """Return accuracy and kind of mark of each trained cell of A."""
    reader.page.wait_for_function(TRAINED)
    reader.page.wait_for_function(f"() => {FIGURE}.frame === null")
    marks = f"(side) => {FIGURE}.marksOf(side).map((m) => [m.cell, m.kind, side.trained.get(m.cell).accuracy])"
    return reader.page.evaluate(f"() => ({marks})({FIGURE}.sides[0])")


def map_levels(reader, tables):
    """Return the colours of A's map, as numbers from 0 to 255."""
    canvas = reader.page.locator("nad-playground .side.a canvas").first
    pixels = canvas.evaluate("(c) => [...c.getContext('2d').getImageData(0, 0, 16, 16).data]")
    return levels(np.array(pixels).reshape(16, 16, 4), tables["magma"]).flatten()


def test_the_map_shows_the_engines_energies(reader, energies, tables):
    reader.open("playground.html", wait=False)
    found, nothing = drawn(reader)
    expected = energies(DEFAULT)
    assert nothing is None and np.abs(found - expected).max() < 1e-6 * expected.max()
    shade = 255 * np.clip(np.log10(np.clip(expected / expected.max(), 1e-9, None)) / 3 + 1, 0, 1)
    assert np.abs(map_levels(reader, tables) - shade).max() <= 0.51
    certainties = reader.page.evaluate(
        f"() => {FIGURE}.sides[0].ensemble.found.nads.map((n) => n.agreement)"
    )
    unsure = reader.page.locator("nad-playground .first.a figure").evaluate_all(
        "(all) => all.map((e) => e.classList.contains('unsure'))"
    )
    assert unsure == [agreement <= 0.5 for agreement in certainties] and len(unsure) == 8


@pytest.mark.parametrize("missing", ["workers", "WebAssembly"])
def test_the_same_networks_without(browser, site, energies, missing):
    context = browser.new_context()
    name = {"workers": "Worker", "WebAssembly": "WebAssembly"}[missing]
    context.add_init_script(f"delete globalThis.{name}")
    if missing == "WebAssembly":  # in the workers too
        context.add_init_script(
            "const Old = Blob; globalThis.Blob = class extends Old {"
            " constructor(parts, options) { super(['delete globalThis.WebAssembly;', ...parts], options); } }"
        )
    reader = Reader(context.new_page(), site).open(
        "playground.html#playground.network=1-4-3-stride-relu-flat-false-zeros", wait=False
    )
    expected = energies(DEFAULT | {"blocks": 1, "channels": 4, "pooling": "stride"})
    assert np.abs(drawn(reader)[0] - expected).max() < 1e-5 * expected.max()
    context.close()
    assert not reader.troubles


def test_training_by_keyboard(reader, ask, energies):  # noqa: F811
    reader.open("playground.html", wait=False)
    drawn(reader)
    reader.page.get_by_role("application", name="Energies of all waves, network A").focus()
    for key in (
        "Enter",
        "ArrowUp",
        "ArrowUp",
        "ArrowUp",
        "ArrowUp",
        "Enter",
    ):  # from (4, 4) to (0, 4)
        reader.page.keyboard.press(key)
    marks = {found: (kind, accuracy) for found, kind, accuracy in state(reader)}
    share = energies(DEFAULT) / energies(DEFAULT).max()
    right = 0
    for wave in ((4, 4), (0, 4)):
        expected = ask("training", config=DEFAULT, wave=wave, seed=1, epochs=20)["accuracies"][-1]
        kind, accuracy = marks.pop(cell(wave))
        assert accuracy == pytest.approx(expected, abs=0.01)
        assert kind == ("learned" if expected > 0.75 else "missed")
        right += (expected > 0.75) == (share[cell(wave)] > 0.01)
    assert not marks
    figure = reader.page.locator("nad-playground")
    assert f"{100 * accuracy:.0f} %" in figure.locator(".status").inner_text()
    assert re.findall(r"\d+", figure.locator(".score").inner_text()) == [str(right), "2"]


def test_a_sample_of_waves_is_trained_and_can_be_stopped(reader):
    reader.open(
        "playground.html#playground.network=2-4-3-stride-relu-global-false-zeros", wait=False
    )
    energy = drawn(reader)[0]
    reader.page.get_by_role("button", name="Train six more").click()
    reader.page.wait_for_function(f"() => {FIGURE}.sides[0].trained.size === 6")
    reader.page.get_by_role("button", name="Stop").click()
    reader.page.wait_for_function(TRAINED)
    left = state(reader)
    assert len(left) < 6
    reader.page.wait_for_timeout(300)  # until the address is written
    trained = re.search(r"trained-a=([^&]*)", reader.page.url)
    assert len(trained[1].split(";") if trained else []) == len(
        left
    )  # a reload does not start them again
    reader.page.get_by_role("button", name="Train six more").click()
    marks = state(reader)
    promising = [energy[found] > 0.01 * energy.max() for found, *_ in marks]
    assert len(marks) >= 6 and 3 <= sum(promising) <= len(marks) - 3
    learned = [kind == "learned" for _, kind, _ in marks]
    right = sum(a == b for a, b in zip(promising, learned, strict=True))
    score = reader.page.locator("nad-playground .score").inner_text()
    assert re.findall(r"\d+", score) == [str(right), str(len(marks))] and right > len(marks) / 2


def test_two_networks_side_by_side_and_their_address(reader, energies, browser, site):
    reader.open("playground.html", wait=False)
    reader.page.get_by_role("radio", name="4", exact=True).check()
    reader.page.get_by_role("combobox", name="Compare with").select_option("pooling=stride")
    both = [DEFAULT | {"channels": 4}, DEFAULT | {"channels": 4, "pooling": "stride"}]
    for found, config in zip(drawn(reader), both, strict=True):
        assert np.abs(found - energies(config)).max() < 1e-6 * found.max()
    reader.page.evaluate(f"() => {FIGURE}.train({FIGURE}.sides[0], {cell((1, -3))})")
    marks = state(reader)
    reader.page.evaluate(f"() => {FIGURE}.train({FIGURE}.sides[1], {cell((1, -2))})")
    state(reader)
    reader.page.wait_for_function("() => location.hash.includes('trained-b')")
    texts = (
        reader.page.locator("nad-playground").locator(".about, .status, .score").all_inner_texts()
    )
    assert "Energy in B" in texts[0]
    address = reader.page.url.removeprefix(f"{site}/")

    context = browser.new_context()
    other = Reader(context.new_page(), site).open(address, wait=False)
    for found, config in zip(drawn(other), both, strict=True):
        assert np.abs(found - energies(config)).max() < 1e-6 * found.max()
    assert state(other) == marks and marks[0][0] == cell((1, -3))
    assert (
        other.page.locator("nad-playground").locator(".about, .status, .score").all_inner_texts()
        == texts
    )
    context.close()
    assert not other.troubles


def test_an_address_that_makes_no_sense_is_left_out(reader, energies):
    nonsense = (
        "network=2-8-3-average-relu-flat-maybe-zeros&playground.against=pooling-7"
        "&playground.wave=9,x&playground.bet=9"
    )
    reader.open(f"playground.html#playground.{nonsense}&playground.trained-a=0,99;q", wait=False)
    found, second = drawn(reader)
    assert second is None and np.abs(found - energies(DEFAULT)).max() < 1e-6 * found.max()
    assert state(reader) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["default", "comb", "skip", "none, circular"])
def test_the_python_runs_and_gives_the_map(reader, energies, name, capsys):
    config = DEFAULT | ARCHITECTURES[name]
    text = "-".join(str(config[key]).lower() for key in CHOICES)
    reader.open(f"playground.html#playground.network={text}", wait=False)
    reader.page.get_by_role("button", name="Show the Python").click()
    names = {}
    exec(compile(reader.page.locator("nad-playground code").inner_text(), "page", "exec"), names)
    capsys.readouterr()
    found, expected = names["energies"].flatten().numpy(), drawn(reader)[0]
    found, expected = found / found.sum(), expected / expected.sum()
    bright = expected > 0.03 * expected.max()
    assert (
        np.corrcoef(found, expected)[0, 1] > 0.99
        or np.std(expected[bright]) < 0.2 * expected.mean()
    )
    assert np.median(np.abs(np.log(found[bright] / expected[bright]))) < 0.15


@pytest.mark.slow
def test_the_five_bets(reader):
    """Bet on what the book says: all are won, by numbers of the maps and trainings."""
    reader.open("playground.html", wait=False)
    reader.page.get_by_role("button", name="Guided: five bets").click()
    save = reader.page.locator("nad-playground .save")
    assert not save.is_visible(), "the picture would show the map before the bet"
    results = []
    for answer in ("About 50 %", "About 100 %", "A regular grid", "Neither", "None"):
        reader.page.get_by_role("button", name=re.compile(answer)).click()
        reader.page.wait_for_function(f"() => {FIGURE}.outcome")
        results.append(reader.page.evaluate(f"() => {FIGURE}.outcome"))
        if answer != "None":
            reader.page.get_by_role("button", name="Next bet").click()
    assert save.is_visible()
    assert all("win" in result for result in results)
    numbers = [[float(x) for x in re.findall(r"([\d.]+)\s%", result)] for result in results]
    assert numbers[0][0] < 55 and numbers[0][1] < 1
    assert numbers[1][0] > 95 and numbers[1][1] > 40
    assert numbers[2][0] > 70
    assert numbers[3][0] > 15 and numbers[3][1] < 10
    assert numbers[4][-1] > 95


def test_a_bet_by_keyboard(reader):
    """The focus stays in the tour, although its buttons are replaced."""
    reader.open("playground.html", wait=False)
    page = reader.page
    focus = f"() => {FIGURE}.host.shadowRoot.activeElement"
    in_tour = f"() => {FIGURE}.tour.contains({FIGURE}.host.shadowRoot.activeElement)"
    page.get_by_role("button", name="Guided: five bets").focus()
    for key in ("Enter", "Tab", "Enter"):  # start, then the first answer
        page.keyboard.press(key)
        assert page.evaluate(in_tour), key
    page.wait_for_function(f"() => {FIGURE}.outcome")
    assert page.evaluate(in_tour)
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focus}.textContent") == "Next bet"


def test_it_pauses_out_of_sight(reader):
    reader.open("playground.html#playground.network=3-16-5-none-tanh-flat-false-zeros", wait=False)
    networks = f"() => {FIGURE}.sides[0].ensemble.networks"
    reader.page.wait_for_function(f"() => {FIGURE}.sides[0].ensemble?.networks > 0")
    reader.page.evaluate(
        "() => { document.body.style.paddingBottom = '9000px'; scrollTo(0, 8000) }"
    )
    reader.page.wait_for_function(f"() => {FIGURE}.pool.paused")
    reader.page.wait_for_timeout(300)  # for a message that is on its way
    before = reader.page.evaluate(networks)
    reader.page.wait_for_timeout(2_500)
    assert reader.page.evaluate(networks) == before
    reader.page.evaluate("() => scrollTo(0, 0)")
    reader.page.wait_for_function(f"() => {FIGURE}.sides[0].ensemble.networks > {before}")


@pytest.mark.parametrize(
    "page",
    ["playground.html", "playground-small.html", "playground.html#playground.against=head-global"],
)
def test_narrow_dark_and_still(browser, site, page):
    """At 320 pixels in the dark nothing overflows or moves by itself, and the map is described."""
    context = browser.new_context(
        viewport={"width": 320, "height": 700}, color_scheme="dark", reduced_motion="reduce"
    )
    context.add_init_script(
        "globalThis.shifts = []; new PerformanceObserver((list) => shifts.push(...list.getEntries()"
        ".filter((e) => !e.hadRecentInput).map((e) => e.value))).observe({ type: 'layout-shift', buffered: true })"
    )
    reader = Reader(context.new_page(), site).open(page, wait=False)
    drawn(reader)
    reader.page.evaluate(f"() => void {FIGURE}.train({FIGURE}.sides[0], {cell((0, 1))})")
    state(reader)
    assert reader.page.evaluate("() => document.documentElement.scrollWidth") <= 320
    assert (
        sum(reader.page.evaluate("() => shifts")) < 0.05
    )  # what readers without JavaScript see makes room
    assert (
        reader.page.evaluate(
            "() => document.querySelector('nad-playground').shadowRoot.getAnimations().length"
        )
        == 0
    )
    energy = drawn(reader)[0]
    first = divmod(int(energy.argmax()), 16)
    words = reader.page.locator("nad-playground .side.a .sr").inner_text().replace("−", "-")
    assert (
        f"({first[0] - 8}, {first[1] - 8})" in words
        and str(int((energy > 0.01 * energy.max()).sum())) in words
    )
    context.close()
    assert not reader.troubles


def test_networks_that_do_not_exist_are_rejected():
    with pytest.raises(ValueError, match="pooling is 'mean'"):
        Playground({"pooling": "mean"})
    with pytest.raises(ValueError, match="unknown chip 'depth'"):
        Playground(second=("depth", 3))
    with pytest.raises(ValueError, match=r"unknown chips \['depth'\]"):
        Playground(chips=["depth"])
    with pytest.raises(ValueError, match="-8 to 7"):
        Playground(wave=(8, 0))
    assert {len(values) for values in CHOICES.values()} == {2, 3, 4} and PIXELS == len(
        nc.fourier_basis(16)[1]
    )
