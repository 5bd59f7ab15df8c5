"""The explorer: what is packed, the widget, and every control in a real browser, against what Python says."""

import base64
import itertools
import json
import random
import re
import shutil
from dataclasses import dataclass

import nads_book as nb
import numpy as np
import pytest
import torch
from conftest import BOOK
from nads_book.explorer import Guess, Wall, data, guess_data, program, views, wall

import nads_core as nc
from nads_core.directions import DegenerateCluster, DirectionUncertainty

SCREENSHOTS = BOOK.parent / "screenshots"
NADS = {name: nc.load_nads(name) for name in ("lenet", "vgg11", "resnet18")}
PHOTOS = nb.explorer.load_pictures()
FOURIER, BY_NAD = nb.load_results("fig1-lenet"), nb.load_results("fig6-lenet")


def own_nads(size=8, count=20):
    basis = torch.linalg.qr(torch.randn(size**2, size**2, generator=torch.Generator().manual_seed(0))).Q.T
    directions = basis[:count].reshape(-1, 1, size, size)
    return nc.NADs(directions.contiguous(), torch.linspace(1, 0.1, count), {"architecture": "small"})


# What is packed


def unpack_directions(packet):
    """Return the directions (n, H, H) that a browser sees: the inverse of `pack_nads`, up to rounding."""
    header, content = packet
    count, size = header["count"], header["size"]
    scales = np.frombuffer(content, "<f4", count)
    return np.frombuffer(content, np.int8, offset=8 * count).reshape(count, size, size) * scales[:, None, None]


@pytest.mark.stored
def test_packed_directions_are_off_by_half_a_level_at_most():
    nads = NADS["lenet"]
    packet = data.pack_nads(nads, "LeNet", "lenet")
    seen, expected = unpack_directions(packet), nads.directions[:, 0].numpy()
    level = np.abs(expected).max((1, 2), keepdims=True) / data.LEVELS
    assert (np.abs(seen - expected) <= 0.501 * level).all()
    assert len(packet[1]) == 1024 * (4 + 4 + 1024)


@pytest.mark.stored
def test_header_holds_what_was_measured_and_says_what_was_not():
    header, _ = data.pack_nads(NADS["lenet"], "LeNet", "lenet")
    accuracies = {tuple(k): (accuracy, low, high) for k, accuracy, low, high in header["fourier"]}
    rows = [row["test_accuracy"] for row in FOURIER.rows if row["frequency"] == [0, 0]]
    accuracy, low, high = accuracies[0, 0]
    assert accuracy == pytest.approx(np.mean(rows), abs=1e-4) and low < accuracy < high
    assert len(header["accuracies"]) == len({row["index"] for row in BY_NAD.rows})
    assert np.max(header["energies"]) == 1
    vgg11, _ = data.pack_nads(NADS["vgg11"], "VGG-11", "vgg11")
    assert vgg11["published"] == (nb.load_results("fig1-vgg11") is None) and not header["published"]
    assert len(vgg11["fourier"]) == 130 or not vgg11["published"]
    assert "fourier" not in data.pack_nads(own_nads(), "small")[0]


HOSTILE = "</script><script>window.pwned = 1</script><!--\u2028\nimport os"


def test_scripts_hold_no_markup():
    packet = data.pack_nads(own_nads(), HOSTILE)
    script = data.as_script(HOSTILE, packet)
    assert not re.search("[<>&\u2028\u2029]", script) and script.count("\n") == 1
    key, header = re.fullmatch(r".*?\[(\".*?\")\] = (\{.*\});\n", script).groups()
    assert json.loads(key) == json.loads(header)["label"] == HOSTILE


@pytest.mark.stored
def test_scripts_are_small_and_their_numbers_are_json():
    script = data.as_script("lenet", data.pack_nads(NADS["lenet"], "LeNet", "lenet"))
    assert len(script) < 1.2e6
    assert json.loads(script[script.index('] = {"') + 4 : -2])["count"] == 1024


def test_other_images_than_square_grey_ones_are_refused():
    colour = nc.NADs(torch.zeros(2, 3, 8, 8), torch.ones(2))
    with pytest.raises(ValueError, match="single-channel"):
        data.pack_nads(colour, "colour")
    with pytest.raises(ValueError, match="photos must be"):
        data.pack_photos(PHOTOS, size=16)


@pytest.mark.stored
def test_every_picture_has_a_name_and_a_class_of_its_own():
    pytest.importorskip("PIL")
    pytest.importorskip("matplotlib")
    again = nb.explorer.load_pictures()
    assert torch.equal(again.images, PHOTOS.images) and 0 <= again.images.min() and again.images.max() <= 1
    assert again.labels.tolist() == list(range(len(set(again.class_names)))) and len(again) in (8, 9)
    small = nb.explorer.load_pictures(8).images
    assert small.shape == (len(again), 3, 8, 8)  # for NADs of your own
    means = torch.nn.functional.avg_pool2d(again.images, 4)
    assert (small - means).abs().mean() < 0.03 < (small - means.roll(1, 0)).abs().mean()


@pytest.mark.parametrize("missing", ["PIL", "matplotlib.cbook"])
def test_pictures_without_pillow_or_the_photograph(monkeypatch, missing):
    pytest.importorskip("PIL")
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    found = nb.explorer.load_pictures()
    if missing == "PIL":
        assert torch.equal(found.images, nc.load_images("generated", train=False, num_images=10).images)
    else:
        assert "Grace Hopper" not in found.class_names and torch.equal(found.images, PHOTOS.images[:8])
    assert data.pack_photos()[0]["count"] == len(found)


@pytest.mark.parametrize(
    "arguments",
    [(("nothing",), {}), ((), {"index_": 1}), ((), {"architecture": "alexnet"}), ((), {"second": "alexnet"})],
)
def test_show_says_what_can_be_asked_for(arguments):
    parts, view = arguments
    with pytest.raises(ValueError, match="unknown .*(choose|has)"):
        nb.explorer.show(*parts, **view)


# The widget of a live notebook


@pytest.mark.stored
def test_widget_follows_and_sends_what_is_asked_for():
    pytest.importorskip("anywidget")
    explorer = nb.explorer.show("direction", "poison", second="vgg11", index=7)
    assert (explorer.architecture, explorer.second, explorer.index, explorer._packets) == ("lenet", "vgg11", 7, {})
    explorer.index = 12
    state = explorer.get_state()
    assert state["index"] == 12 and state["parts"] == ["direction", "poison"]
    explorer.set_state({"_wanted": ["lenet", "photos", "nonsense"], "index": 30})  # as the browser does
    assert explorer.index == 30 and set(explorer._packets) == {"lenet", "photos"}
    packet = explorer._packets["lenet"]
    assert packet["bytes"] == data.pack_nads(NADS["lenet"], "LeNet", "lenet")[1]
    before = packet
    explorer._wanted = ["lenet", "photos", "vgg11"]
    assert explorer._packets["lenet"] is before and "vgg11" in explorer._packets
    with pytest.raises(Exception, match="unknown architecture"):
        explorer.architecture = "alexnet"


def test_widget_refuses_what_it_cannot_show():
    traitlets = pytest.importorskip("traitlets")
    pytest.importorskip("anywidget")
    nads = {"many": own_nads(), "few": own_nads(count=5)}
    explorer = nb.explorer.show(nads=nads, index=19)
    impossible = {
        "index": 20,
        "kept": 21,
        "photo": 99,
        "strength": float("nan"),
        "mix": [0.5],
        "frequency": [1, 2, 3],
        "parts": ["direction"],
        "second": "toString",
    }
    for key, value in impossible.items():
        before = getattr(explorer, key)
        with pytest.raises(traitlets.TraitError):
            setattr(explorer, key, value)
        assert getattr(explorer, key) == before
    explorer.photo = -1  # as the browser does
    explorer.architecture = "few"
    assert (explorer.index, explorer.kept) == (4, 5)
    explorer.second = "many"
    explorer.index = 19


def test_widget_of_own_nads_and_a_linked_slider():
    widgets = pytest.importorskip("ipywidgets")
    pytest.importorskip("anywidget")
    explorer = nb.explorer.show("direction", nads=own_nads())
    assert explorer.labels == {"small": "small"} and explorer.architecture == "small"
    slider = widgets.IntSlider(max=19)
    widgets.link((slider, "value"), (explorer, "index"))
    slider.value = 5
    assert explorer.index == 5


def test_without_anywidget_the_html_carries_its_arrays(monkeypatch, without_anywidget):
    page = nb.explorer.show("direction", second="vgg11")._repr_html_()
    assert '["lenet-' in page and '["vgg11-' in page and '["resnet18' not in page and '["photos' not in page
    monkeypatch.setenv("NADS_BOOK", "1")
    assert len(nb.explorer.show()._repr_html_()) < 2e3  # the pages of a book share the arrays and the program


def test_a_notebook_carries_the_program_packed(without_anywidget):
    """Bytes of the program in an output, beside the 59,000 that it has."""
    arrays = data.as_script("small", data.pack_nads(own_nads(), "small"))
    page = nb.explorer.show("direction", nads=own_nads())._repr_html_()
    assert 0 < len(page) - len(arrays) < 0.5 * len(program.script())
    widget = pytest.importorskip("anywidget") and program.packed_module()
    assert len(widget) < 0.5 * len(program.module())


def test_accuracies_along_another_version_stand_where_this_one_has_them():
    measured, names = BY_NAD.experiment().nads, ("label", "lenet")
    same, _ = data.pack_nads(measured, *names)
    assert {len(row) for row in same["accuracies"]} == {4}  # of the very directions
    turned = measured.directions[:, 0].clone()
    turned[2:4] = measured.directions[2:4, 0].flip(0)  # two have changed places
    mixed = (turned[891] + turned[892]) / 2**0.5, (turned[891] - turned[892]) / 2**0.5  # and two are others
    turned[891], turned[892] = mixed
    other = nc.NADs(turned[:, None], measured.eigenvalues, measured.provenance)
    moved = data.pack_nads(other, *names)[0]["accuracies"]
    known = {row[0]: row[1:4] for row in same["accuracies"]}
    for place, *values, closeness in moved:
        assert closeness == 1 or place in (890, 891, 892, 893)
        assert closeness < 0.9 or values == known[{2: 3, 3: 2}.get(place, place)]
    assert [row[0] for row in moved] == sorted(row[0] for row in moved)
    poisoned = data.pack_nads(other, *names)[0]["poison"]
    assert poisoned[0][0] is None and len(poisoned[0]) == 4 and len(poisoned[1]) == 5


def test_what_the_source_does_not_have_is_refused(without_anywidget):
    def refuses(match, *parts, **arguments):
        with pytest.raises(ValueError, match=match):
            nb.explorer.show(*parts, **arguments)

    refuses("index is 1024, expected 0 to 1023", index=1024)
    refuses("index is 20, expected 0 to 19", nads=own_nads(), index=20)
    refuses("index is 2.5, expected a whole number", index=2.5)
    refuses("kept is -1", kept=-1)
    refuses("photo is 99, expected 0 to", photo=99)
    refuses("strength is nan", strength=float("nan"))
    refuses("strength is 3", strength=3)
    refuses("mix is 2.0, expected -1 to 1", mix=(2, *[0] * 11))
    refuses("frequency is 0.5, expected a whole number", frequency=(0.5, 2))
    refuses("frequency is .*ky, kx", frequency=(1, 2, 3))
    refuses("one image size", nads={"a": own_nads(), "b": own_nads(12)})
    refuses("not empty", nads={"": own_nads()})
    refuses("photos must be", nads=own_nads(), images=PHOTOS)
    refuses("single-channel", nads=nc.NADs(torch.zeros(2, 3, 8, 8), torch.ones(2)))
    page = nb.explorer.show(nads=own_nads(count=5), index=np.int64(3))  # 32 NADs are kept where there are as many
    assert page.view.kept == 5 and json.dumps(vars(page.view))
    assert {nc.load_nads(name).directions.shape for name in data.LABELS} == {(views.Source().count(""), 1, 32, 32)}


# The program's sources

PATHS = sorted(program.SOURCES.rglob("*.js"))
SOURCES = {path.relative_to(program.SOURCES).as_posix(): path.read_text("utf8") for path in PATHS}


def declared(source):
    """Name what a source has in its outermost scope."""
    return set(re.findall(r"^(?:export )?(?:async )?(?:const|class|function) (\w+)", source, re.MULTILINE))


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_imports_what_it_uses_and_nothing_else(name):
    """As far as calls and constants show: joined, the sources share one scope, and would not miss an import."""
    source = SOURCES[name]
    imported = set(", ".join(re.findall(r"^import \{ (.*) \}", source, re.MULTILINE)).split(", ")) - {""}
    body = program.IMPORT.sub("", source)
    used = set(re.findall(r"(?<![\w.$])(\w+)\(|\b([A-Z][A-Z_]+)\b", body))
    elsewhere = set().union(*map(declared, SOURCES.values())) - declared(source)
    assert {name for pair in used for name in pair} & elsewhere <= imported
    assert all(re.search(rf"\b{name}\b", body) for name in imported)


def test_every_source_is_joined_once():
    joined = re.findall(r"^(?:async )?(?:const|class|function) (\w+)", program.module(), re.MULTILINE)
    assert sorted(joined) == sorted(["STYLE", *(name for source in SOURCES.values() for name in declared(source))])
    assert not re.search(r"^(import|export)\b", program.script(), re.MULTILINE)


# A browser. `site` holds pages as the book has them, without the book around.


def write_page(folder, name, *explorers):
    """Write a page with these explorers, between a link to a section and that section."""
    body = "".join(explorer._repr_html_() for explorer in explorers)
    theme = "<style>html[data-theme=dark] body { background: #121212; color: #ced6dd }</style>"
    (folder / name).write_text(
        f'<!doctype html><html lang="en" data-content_root=""><head><meta charset="utf-8"><title>Explorer</title>'
        f'<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">{theme}</head>'
        f'<body><main><h1>Explorer</h1><a href="#end">The end</a>{body}<h2 id="end">End</h2></main></body></html>',
        "utf8",
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    views.write_pages_data(folder / "_static" / "explorer")
    (folder / "module.mjs").write_text(program.module(), "utf8")
    shutil.copytree(program.SOURCES, folder / "sources")
    write_page(folder, "all.html", views.Page(views.View(), views.Source(), book=True))
    two = [views.Page(views.View(parts), views.Source(), book=True) for parts in (("direction",), ("mixer",))]
    write_page(folder, "two.html", *two)
    write_page(folder, "own.html", views.Page(views.View(("direction",), "small"), views.Source({"small": own_nads()})))
    write_page(folder, "empty.html")
    write_page(folder, "guess.html", Guess(book=True))
    write_page(folder, "atlas.html", Wall(book=True))
    write_page(folder, "atlas-own.html", Wall(chosen="vit", sort="effect", book=False))
    return folder


@pytest.fixture(scope="module")
def site(folder, serve):
    return serve(folder)


@pytest.fixture
def without_anywidget(monkeypatch):
    """As where anywidget is not installed: `show` gives a page."""
    monkeypatch.setitem(__import__("sys").modules, "nads_book.explorer.widget", None)


class Reader:
    """Somebody at a page: what they do, and what they see."""

    def __init__(self, page, site):
        self.page, self.site, self.troubles = page, site, []
        page.set_default_timeout(240_000)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("console", lambda message: message.type == "error" and self.troubles.append(message.text))
        page.on("request", lambda request: self._check(request.url))

    def _check(self, url):
        if not url.startswith((self.site, "data:", "blob:")):
            self.troubles.append(f"asks another host: {url}")

    def open(self, name, wait=True):
        self.page.goto(f"{self.site}/{name}")
        if wait:
            self.settle()
        return self

    def settle(self):
        """Wait until every explorer is drawn."""
        self.page.wait_for_function(
            """() => [...document.querySelectorAll('nad-explorer')].every(
                (e) => e.app && (!e.app.begun || e.app.root.getAttribute('aria-busy') === 'false'))"""
        )
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def see(self, label, scope="nad-explorer"):
        """Read the pixels (H, W, 4) of the canvas whose label starts like this."""
        canvas = self.page.locator(scope).locator(f"canvas[aria-label^='{label}']").first
        flat, width = canvas.evaluate(
            "(c) => [[...c.getContext('2d').getImageData(0, 0, c.width, c.height).data], c.width]"
        )
        return np.array(flat).reshape(-1, width, 4)

    def get(self, key):
        """What the first explorer's model says."""
        return self.page.evaluate("(key) => document.querySelector('nad-explorer').model.get(key)", key)

    def go(self, hash):
        """Follow a link to a view."""
        self.page.evaluate("(hash) => (location.hash = hash)", hash)
        self.settle()

    def top(self, name):
        """Where a part begins, in pixels below the top of the window."""
        return self.part(name).evaluate("(e) => e.getBoundingClientRect().top")

    def part(self, name):
        return self.page.locator(f"section[data-part={name}]")

    def slide(self, label, value, scope=None):
        control = (scope or self.page).get_by_role("slider", name=label, exact=True).first
        reach = "([slider, value]) => Number(slider.max) >= value"  # of a network chosen just now, once it has arrived
        self.page.wait_for_function(reach, arg=[control.element_handle(), value])
        control.evaluate("(e, value) => { e.value = value; e.dispatchEvent(new Event('input')) }", value)
        self.settle()
        return control


@pytest.fixture
def reader(browser, site):
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    reader = Reader(context.new_page(), site)
    yield reader
    context.close()
    assert not reader.troubles


@pytest.fixture(scope="module")
def tables(browser, site):
    """The colour maps of the program, each (256, 4)."""
    page = browser.new_page()
    page.goto(f"{site}/empty.html")
    found = page.evaluate("async () => (await import('/sources/colours.js')).COLOURS")
    page.close()
    return {name: np.array(table) for name, table in found.items()}


def levels(pixels, table):
    """Turn colours back into 0 ... 255."""
    assert pixels.shape[2] == 4
    distance = np.abs(pixels[:, :, None] - table[None, None]).sum(-1)
    assert (distance.min(-1) == 0).all(), "a colour that is not of the map"
    return distance.argmin(-1)


def assert_signed(pixels, expected, tables, slack=1.6):
    """The picture is this signed image, within rounding to 255 colours and to the 255 levels of the page."""
    expected = np.asarray(expected, float)
    drawn = (levels(pixels, tables["diverging"]) - 127.5) / 127.5
    assert np.abs(drawn - expected / np.abs(expected).max()).max() < slack / 127.5


def assert_photo(pixels, expected, slack=4):
    """The picture is this photo (3, H, W), clipped to [0, 1], within a few of 255 levels."""
    expected = 255 * torch.as_tensor(expected).clamp(0, 1).permute(1, 2, 0).numpy()
    assert np.abs(pixels[..., :3] - expected).max() < slack


def test_the_sources_work_unjoined(reader, folder, monkeypatch):
    """A browser finds every name that a source imports."""
    monkeypatch.setattr(views, "link", lambda: "globalThis.STYLE = ''; import('/sources/explorer.js')")
    write_page(folder, "unjoined.html", views.Page(views.View(), views.Source(), book=True))
    reader.open("unjoined.html")
    reader.page.get_by_role("button", name="Show the Python").click()
    reader.slide("NAD", 3)
    assert not reader.page.evaluate(DEAD)


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
    assert f"eigenvalue {share:.2f} of the first" in reader.part("direction").inner_text()


def test_networks_side_by_side(reader, tables):
    reader.open("all.html")
    reader.page.get_by_label("Network").select_option("vgg11")
    reader.page.get_by_label("Compare with").select_option("resnet18")
    reader.slide("NAD", 3)
    for name, label in (("vgg11", "VGG-11"), ("resnet18", "ResNet-18")):
        assert_signed(reader.see(f"NAD 3 of {label}, in pixels"), NADS[name].directions[3, 0], tables)
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
    assert reader.page.evaluate("document.querySelector('nad-explorer').model.get('index')") == index


def test_curves_and_their_cursor(reader, tables):
    reader.open("all.html")
    part = reader.part("curves")
    eigenvalues, accuracies = part.locator("svg").all()
    assert len(eigenvalues.locator("polyline").get_attribute("points").split()) == 1024
    measured = data.pack_nads(NADS["lenet"], "LeNet", "lenet")[0]["accuracies"]  # placed among the NADs that are shown
    assert accuracies.locator("circle").count() == len(measured)
    box = accuracies.bounding_box()
    reader.page.mouse.click(box["x"] + 46 + 0.5 * (box["width"] - 54), box["y"] + 30)
    reader.settle()
    index = int(reader.page.get_by_role("slider", name="NAD", exact=True).input_value())
    assert abs(index - 512) <= 2
    assert_signed(reader.see(f"NAD {index} of LeNet, in pixels"), NADS["lenet"].directions[index, 0], tables)
    x = [float(svg.locator(".cursor").get_attribute("x1")) for svg in (eigenvalues, accuracies)]
    assert x[0] == x[1] == pytest.approx(46 + index / 1023 * (box["width"] - 54), abs=1)
    nearest, accuracy, *_ = min(measured, key=lambda row: abs(row[0] - index))
    assert f"accuracy at NAD {nearest}: {100 * accuracy:.1f} %" in reader.part("direction").inner_text().replace(
        "\n", " "
    )


def number(text):
    """Read a number that is written for people."""
    digits, _, exponent = text.partition(" × 10")
    return float(digits) * 10 ** int(exponent.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


def test_small_numbers_are_written_for_people(reader):
    nads = NADS["lenet"]
    present = (PHOTOS.images[0, 0] * nads.directions[:, 0]).sum((1, 2))
    index = int(((present > -0.004) & (present < -0.001)).nonzero()[0])  # of class 0, so in the red channel
    reader.open(f"all.html#explorer.index={index}")
    assert re.search(r"channel: 0\.00 becomes −0\.05", reader.part("poison").inner_text())
    reader.slide("NAD", 1023)
    found = re.search(r"eigenvalue (.*) of the first", reader.part("direction").inner_text())[1]
    share = float(nads.eigenvalues[1023] / nads.eigenvalues[0])
    assert share < 1e-3 and " × 10⁻" in found and number(found) == pytest.approx(share, rel=0.05)


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
            measured.setdefault(wrapped([sign * k for k in row["frequency"]]), []).append(row["test_accuracy"])
    # every cell of the map
    pixels = part.locator("canvas").nth(0).evaluate("(c) => [...c.getContext('2d').getImageData(0, 0, 16, 16).data]")
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
    reader.page.mouse.move(box["x"] + position[0] * box["width"], box["y"] + position[1] * box["height"])
    reader.settle()
    text = part.inner_text()
    assert f"{ky} cycles down, {kx} across" in text and f"LeNet: {100 * np.mean(measured[ky, kx]):.1f} %" in text
    assert_signed(reader.see(f"Wave of vertical frequency {ky}"), nc.fourier_direction((ky, kx))[0], tables)
    # keys
    box_of_map.focus()
    for key, (ky, kx) in (("Home", (0, 0)), ("ArrowRight", (0, 2)), ("ArrowUp", (-2, 2))):
        reader.page.keyboard.press(key)
        reader.settle()
        assert f"{ky} cycles down, {kx} across" in part.inner_text()
    energy = NADS["lenet"].energy(nc.fourier_direction((-2, 2))[None])
    grid = [nc.fourier_direction((a, b)) for a in range(-16, 16, 2) for b in range(-16, 16, 2)]
    share = float(energy / NADS["lenet"].energy(torch.stack(grid)).max())
    assert number(re.search(r"energy (.+) of", part.inner_text())[1]) == pytest.approx(share, rel=0.02)


def test_a_click_holds_a_frequency(reader):
    reader.open("all.html")
    part = reader.part("fourier")
    canvas = part.get_by_role("application").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()

    def at(ky, kx):
        return [
            box[side] + (k + 17) / 32 * box[length] for k, side, length in ((kx, "x", "width"), (ky, "y", "height"))
        ]

    def shown():
        reader.settle()
        return tuple(map(int, re.search(r"(-?\d+) cycles down, (-?\d+) across", part.inner_text()).groups()))

    mouse = reader.page.mouse
    mouse.move(*at(-8, 6))
    assert shown() == (-8, 6) and reader.get("frequency") == [4, 2]
    mouse.move(box["x"] + box["width"] / 2, box["y"] - 20)  # away: what was chosen comes back
    assert shown() == (4, 2)
    mouse.click(*at(-8, 6))
    mouse.move(*at(2, 2), steps=3)
    assert shown() == (-8, 6) and "Held" in part.inner_text()
    mouse.click(*at(0, 4))  # another one
    mouse.move(*at(2, 2), steps=3)
    assert shown() == (0, 4)
    mouse.click(*at(0, 4))  # the same: lets go
    mouse.move(*at(2, 2), steps=3)
    assert shown() == (2, 2) and "Held" not in part.inner_text() and reader.get("frequency") == [0, 4]
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
    grid = torch.stack([nc.fourier_direction((a, b)) for a in range(-16, 16, 2) for b in range(-16, 16, 2)])
    share = float(NADS["lenet"].energy(wave) / NADS["lenet"].energy(grid).max())
    assert number(re.search(r"energy (.+) of", part.inner_text())[1]) == pytest.approx(share, rel=0.03)
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
        assert_photo(reader.see("The image from the first", where), expected, slack=6)  # 1,024 roundings add up
        assert_photo(reader.see("What is missing", where), rest, slack=6)
    assert "1024 of 1024 NADs" in part.inner_text() and "hold 100.0 %" in part.inner_text()


def test_an_image_of_your_own_stays_in_the_browser(reader, tmp_path):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "mine.png")
    reader.open("all.html")
    requests = []
    reader.page.on("request", lambda request: requests.append(request.url))
    reader.part("photo").locator("input[type=file]").set_input_files(tmp_path / "mine.png")
    reader.page.wait_for_function("document.querySelector('nad-explorer').model.get('photo') === -1")
    reader.settle()
    expected = torch.from_numpy(pixels).permute(2, 0, 1) / 255
    assert_photo(reader.see("The image: mine.png"), expected, slack=2)
    assert not [url for url in requests if not url.startswith("blob:")]


def test_after_a_reload_an_image_of_your_own_is_gone(reader, tmp_path):
    from PIL import Image

    Image.fromarray(np.full((40, 40, 3), 200, np.uint8)).save(tmp_path / 'my "best".png')
    reader.open("all.html#explorer.photo=3")
    reader.page.get_by_role("button", name="Show the Python").click()
    reader.part("photo").locator("input[type=file]").set_input_files(tmp_path / 'my "best".png')
    reader.page.wait_for_function("document.querySelector('nad-explorer').model.get('photo') === -1")
    reader.settle()
    code = reader.page.locator(".python code").inner_text()
    assert repr('my "best".png') in code.replace('"my \\"best\\".png"', repr('my "best".png'))
    exec(code.replace('"my \\"', f'"{tmp_path}/my \\"'), made := {})  # noqa: S102
    assert made["photo"].shape == (3, 32, 32) and (made["photo"] * 255 - 200).abs().max() < 1
    reader.slide("NADs kept", 50)
    reader.page.wait_for_function("location.hash.includes('kept=50')")
    assert "photo" not in reader.page.url.split("#")[1].replace("part=photo", "")
    reader.page.reload()
    reader.settle()
    name = PHOTOS.class_names[PHOTOS.labels[0]]
    assert_photo(reader.see(f"The image: {name}"), PHOTOS.images[0], slack=2)
    assert reader.part("photo").get_by_role("button", name=name).get_attribute("aria-pressed") == "true"


def test_a_file_that_is_no_image_changes_nothing(reader, tmp_path):
    from PIL import Image

    (tmp_path / "notes.png").write_text("no image")
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "black.png")
    reader.open("all.html#explorer.photo=2")
    part = reader.part("photo")
    part.locator("input[type=file]").set_input_files(tmp_path / "notes.png")
    alert = part.get_by_role("alert")
    alert.filter(has_text="notes.png is no image").wait_for()
    reader.settle()
    assert reader.get("photo") == 2
    name = PHOTOS.class_names[PHOTOS.labels[2]]
    assert_photo(reader.see(f"The image: {name}"), PHOTOS.images[2], slack=2)
    part.locator("input[type=file]").set_input_files(tmp_path / "black.png")
    reader.page.wait_for_function("document.querySelector('nad-explorer').model.get('photo') === -1")
    assert not alert.is_visible()


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
    found = re.search(r"([−\d.]+) becomes ([+−]0\.80)", part.inner_text())
    assert float(found[1].replace("−", "-")) == pytest.approx(present, abs=0.02) and found[2][0] == (
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


def test_the_view_is_in_the_address(reader, tables):
    reader.open("two.html")
    first, second = reader.page.locator("nad-explorer").all()
    reader.slide("NAD", 9, first)
    reader.slide("Weight of NAD 5", 0.7, second)
    second.get_by_label("Network").select_option("vgg11")
    reader.settle()
    reader.page.wait_for_function("location.hash.includes('explorer-2.architecture')")
    address = reader.page.url
    assert "explorer.index=9" in address and "explorer-2.mix=[1,0,0,1,0,0.7" in address

    reader.open("empty.html", wait=False)
    reader.page.goto(address)
    reader.settle()
    assert_signed(reader.see("NAD 9 of LeNet, in pixels"), NADS["lenet"].directions[9, 0], tables)
    assert second.get_by_label("Network").input_value() == "vgg11"
    weights = torch.tensor([1, 0, 0, 1, 0, 0.7, *[0] * 6])
    expected = (weights[:, None, None] * NADS["vgg11"].directions[:12, 0]).sum(0)
    assert_signed(reader.see("Mixture of", "#explorer-2"), expected, tables, slack=2.5)

    reader.page.evaluate("location.hash = 'explorer.index=4'")  # a link to another view
    reader.settle()
    assert_signed(reader.see("NAD 4 of LeNet, in pixels"), NADS["lenet"].directions[4, 0], tables)


def test_an_address_that_makes_no_sense_is_left_out(reader, tables):
    junk = "explorer.index=99999&explorer.architecture=alexnet&explorer.frequency=[1]&explorer.mix=x&explorer.kept=-4"
    reader.open(f"all.html#{junk}&explorer.strength=NaN&explorer.photo=77&explorer.poisoned=3")
    assert_signed(reader.see("NAD 1023 of LeNet, in pixels"), NADS["lenet"].directions[1023, 0], tables)


def random_addresses(count, seed=0):
    """Addresses that mean something, nothing, or harm."""
    rng = random.Random(seed)
    keys = [*views.View.__dataclass_fields__, "part", "toString", "__proto__", "constructor", ""]
    names = [*data.LABELS, "toString", "__proto__", "constructor", "hasOwnProperty", "", "alexnet", "null"]
    numbers = "0 -0 -1 2.5 1e3 1023 1024 99999 1e21 1e308 1e999 -1e308 5e-324".split()
    others = ["NaN", "Infinity", "0x10", "007", "", "+", "true", "null", '"3"', "{}", "[]", "%", "%00", "é", "9" * 400]
    whole = lambda: str(rng.randint(-40, 1100))  # noqa: E731
    listed = lambda count: f"[{','.join(rng.choice(numbers) for _ in range(count))}]"  # noqa: E731
    pairs = lambda: f"[{rng.uniform(-40, 40)},{rng.randint(-40, 40)}]"  # noqa: E731
    fitting = {
        "architecture": lambda: rng.choice(names),
        "second": lambda: rng.choice(names),
        "frequency": lambda: rng.choice((pairs(), listed(2))),
        "mix": lambda: listed(12),
        "strength": lambda: str(rng.uniform(-1, 3)),
        "poisoned": lambda: rng.choice(("true", "false")),
        "part": lambda: rng.choice(views.PARTS),
    }
    anything = [*fitting.values(), whole, lambda: listed(rng.randint(1, 3)), lambda: rng.choice(numbers + others)]

    def pair():
        key = rng.choice(keys)
        value = rng.choice((fitting.get(key, whole), fitting.get(key, whole), rng.choice(anything)))()
        return f"explorer{rng.choice(('', '', '', '-2', '-0'))}.{key}={value}"

    return ["&".join(pair() for _ in range(rng.randint(1, 6))) for _ in range(count)]


DEAD = """() => {
  const root = document.querySelector('nad-explorer').shadowRoot.querySelector('.explorer'), trouble = [];
  const visible = (selector) => [...root.querySelectorAll(selector)].filter((e) => e.checkVisibility());
  if (root.getAttribute('aria-busy') !== 'false') trouble.push('busy');
  trouble.push(...visible('[role=alert]').map((e) => e.textContent).filter(Boolean));
  for (const canvas of visible('canvas')) {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    if (canvas.width < 2 || data.some((x, i) => i % 4 === 3 && x === 0))
      trouble.push(`not painted: ${canvas.getAttribute('aria-label')}`);
  }
  trouble.push(...(root.textContent.match(/.{0,20}(NaN|undefined|Infinity|null).{0,20}/) ?? []));
  const drawn = visible('svg *').flatMap((e) => [...e.attributes]).map((a) => a.value);
  trouble.push(...drawn.filter((value) => /NaN|undefined/.test(value)));
  return trouble;
}"""


def test_a_thousand_random_addresses_leave_every_panel_alive(reader):
    """One page lives through all of them; fresh pages open at some of them."""
    addresses = random_addresses(1_000)
    reader.open("all.html")
    shown = reader.page.evaluate(
        f"""async (addresses) => {{
          const dead = {DEAD}, found = [], seen = new Set();
          const busy = () => document.querySelector('nad-explorer').shadowRoot.querySelector('[aria-busy=true]');
          for (const address of addresses) {{
            location.hash = address;
            await new Promise((done) => addEventListener('hashchange', done, {{ once: true }}));
            do await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); while (busy());
            const trouble = dead();
            if (trouble.length) found.push([address, trouble]);
            seen.add(document.querySelector('nad-explorer').shadowRoot.textContent);
          }}
          return {{ found, seen: seen.size }};
        }}""",
        addresses,
    )
    assert not shown["found"], shown["found"][:5]
    assert shown["seen"] > 300  # they do lead to different views
    for address in random_addresses(25, seed=1):
        reader.open("empty.html", wait=False)
        reader.open(f"all.html#{address}")
        assert not reader.page.evaluate(DEAD), address


def test_a_link_to_a_section_moves_no_explorer(reader):
    reader.open("two.html#explorer.index=9&explorer-2.mix=[0,1,0,0,0,0,0,0,0,0,0,0]")
    before = reader.page.locator("nad-explorer").all_inner_texts()
    reader.page.get_by_role("link", name="The end").click()
    reader.settle()
    assert reader.page.url.endswith("#end") and reader.get("index") == 9
    assert reader.page.locator("nad-explorer").all_inner_texts() == before
    reader.go("explorer-2.second=vgg11")  # a link to one of them
    assert reader.get("index") == 9
    reader.slide("Weight of NAD 5", 0.7)
    reader.page.wait_for_function("location.hash.includes('0.7')")
    assert "explorer.index=9" in reader.page.url  # and the address goes on saying what both show


def test_a_link_leads_to_the_part_that_it_names(reader):
    reader.page.set_viewport_size({"width": 1000, "height": 500})
    reader.open("all.html#explorer.part=poison&explorer.index=1000")
    assert 0 <= reader.top("poison") < 200 and reader.get("index") == 1000
    reader.go("explorer.part=fourier&explorer.frequency=[0,8]")
    assert 0 <= reader.top("fourier") < 200
    reader.go("explorer.index=5")
    assert -50 < reader.page.locator("nad-explorer").evaluate("(e) => e.getBoundingClientRect().top") < 200
    reader.go("explorer.part=toString")
    reader.slide("Weight of NAD 5", 0.7)
    reader.page.wait_for_function("location.hash.includes('0.7')")
    assert "explorer.part=mixer" in reader.page.url


def test_a_network_that_cannot_be_loaded_leaves_the_view_as_it_was(reader, tables):
    reader.open("all.html#explorer.index=7")
    reader.page.route("**/vgg11.js", lambda route: route.abort())
    reader.page.get_by_label("Compare with").select_option("vgg11")
    again = reader.page.get_by_role("button", name="Try again")
    again.wait_for()
    reader.settle()
    assert "VGG-11 cannot be shown" in reader.page.locator(".explorer > [role=alert]").inner_text()
    assert reader.page.get_by_label("Compare with").input_value() == ""
    reader.slide("NAD", 8)
    assert_signed(reader.see("NAD 8 of LeNet, in pixels"), NADS["lenet"].directions[8, 0], tables)
    again.click()
    again.wait_for()
    reader.page.unroute("**/vgg11.js")
    again.click()
    reader.settle()
    reader.page.locator("canvas[aria-label^='NAD 8 of VGG-11, in pixels']").wait_for()
    assert not again.is_visible() and reader.get("second") == "vgg11"
    failures = [trouble for trouble in reader.troubles if "ERR_FAILED" in trouble]
    assert len(failures) == 2 and reader.troubles == failures
    reader.troubles.clear()


def test_a_first_network_that_cannot_be_loaded_can_be_tried_again(reader, tables):
    reader.page.route("**/lenet.js", lambda route: route.abort())
    reader.open("all.html#explorer.index=7")
    alert = reader.page.locator(".explorer > [role=alert]")
    assert "cannot be shown" in alert.inner_text()
    reader.page.unroute("**/lenet.js")
    reader.page.get_by_role("button", name="Try again").click()
    reader.page.locator("canvas[aria-label^='NAD 7 of LeNet, in pixels']").wait_for()
    assert not alert.is_visible()
    reader.troubles[:] = [trouble for trouble in reader.troubles if "ERR_FAILED" not in trouble]


def test_nads_of_your_own(reader, tables):
    reader.open("own.html")
    reader.slide("NAD", 2)
    assert_signed(reader.see("NAD 2 of small, in pixels"), own_nads().directions[2, 0], tables)


def test_a_label_runs_no_code(reader, folder, tmp_path, without_anywidget):
    """NADs from somebody else's file, whose label would end the element that carries it."""
    nads = own_nads()
    nc.NADs(nads.directions, nads.eigenvalues, {"architecture": HOSTILE}).save(tmp_path / "poisoned.npz")
    write_page(folder, "poisoned.html", nb.explorer.show(nads=nc.NADs.load(tmp_path / "poisoned.npz"), index=2))
    reader.open("poisoned.html", wait=False)
    assert reader.page.evaluate("window.pwned") is None
    reader.settle()
    assert "</script><script>window.pwned = 1</script>" in reader.part("curves").inner_text()
    reader.page.get_by_role("button", name="Show the Python").click()
    code = reader.page.locator(".python code").inner_text()
    exec(code, made := {"nads": nads})  # noqa: S102
    assert "os" not in made and "mixture" in made


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_nads_of_your_own(reader, folder, without_anywidget, tables, count):
    nads = own_nads(count=count)
    write_page(folder, f"few-{count}.html", nb.explorer.show(nads={"few": nads, "many": own_nads()}, kept=1))
    reader.open(f"few-{count}.html")
    part = reader.part("mixer")
    assert part.locator("input[type=range]:visible").count() == count
    for n, weight in enumerate((0.5, -0.25)[:count]):
        reader.slide(f"Weight of NAD {n}", weight, part)
    reader.part("poison").get_by_role("switch").click()
    reader.page.get_by_role("button", name="Show the Python").click()
    reader.slide("NAD", count - 1)
    assert not reader.page.evaluate(DEAD)
    exec(reader.page.locator(".python code").inner_text().split("\n# The poison")[0], made := {"nads": nads})  # noqa: S102
    assert_signed(reader.see(f"Mixture of the first {count} NADs of few"), made["mixture"], tables, slack=2.5)
    reader.page.get_by_label("Compare with").select_option("many")
    reader.slide("NAD", 19)
    assert part.locator("input[type=range]:visible").count() == 12
    assert_signed(reader.see("NAD 19 of many, in pixels"), own_nads().directions[19, 0], tables)
    assert f"NAD {count - 1}\n" in reader.part("direction").inner_text()
    assert not reader.page.evaluate(DEAD)
    last = reader.part("photo").get_by_role("button").nth(7)  # of class 7, which takes the next NAD
    last.click()
    reader.settle()
    assert ("would need a later NAD" in reader.part("poison").inner_text()) == (count == 1)


def test_what_is_known_of_a_direction(reader, folder, without_anywidget):
    """Its name, its certainty, and a band that is stepped through as one."""
    own = own_nads()
    types = tuple("+-" if i % 5 else "++" for i in range(len(own)))
    certainty = torch.linspace(1, 0, len(own))
    bands = (DegenerateCluster((1, 2, 3, 4), 0.97), DegenerateCluster((5, 10, 15), 0.5))
    known = DirectionUncertainty(types, certainty, certainty.square(), own.eigenvalues / 10, certainty, bands)
    certified = nc.NADs(own.directions, own.eigenvalues, own.provenance, known)
    write_page(folder, "certified.html", nb.explorer.show("direction", nads=certified, index=0))
    reader.open("certified.html")
    part, index = reader.part("direction"), "document.querySelector('nad-explorer').model.get('index')"
    assert "symmetry type ++, rank 0\ncertainty 1.00" in part.inner_text() and "told apart" not in part.inner_text()
    forward, back = (reader.page.get_by_role("button", name=f"{way} to the next direction") for way in ("On", "Back"))
    seen = []
    for _ in range(4):
        forward.click()
        reader.settle()
        seen.append(reader.page.evaluate(index))
    assert seen == [1, 5, 6, 7]  # 1 to 4 is one band, 5 is the first of another
    back.click(), back.click(), back.click()
    reader.settle()
    assert reader.page.evaluate(index) == 1
    reader.slide("NAD", 3)
    text = part.inner_text()
    assert f"symmetry type +-, rank 2\ncertainty {certainty[3]:.2f}; one of 4" in text and "(together 0.97)" in text
    back.click()
    reader.settle()
    assert reader.page.evaluate(index) == 0  # not 1, which is of the same band
    reader.slide("NAD", 10)
    assert "one of 3 that cannot be told apart (together 0.50)" in part.inner_text()
    forward.click()
    reader.settle()
    assert reader.page.evaluate(index) == 11


def test_the_python_of_images_given_to_show(reader, folder, without_anywidget):
    images = nc.load_images("generated", train=False, num_images=10, size=8)
    write_page(folder, "images.html", nb.explorer.show("photo", "poison", nads=own_nads(), images=images, photo=4))
    reader.open("images.html")
    reader.page.get_by_role("button", name="Show the Python").click()
    code = reader.page.locator(".python code").inner_text()
    assert "load_pictures" not in code and "# photos: your own images" in code
    exec(code, made := {"photos": images, "nads": own_nads()})  # noqa: S102
    assert_photo(reader.see("The image from the first 20"), made["rebuilt"])


def test_every_output_of_a_notebook_stands_alone(reader, folder, without_anywidget, tables):
    """The first may be deleted, or shown in a frame of its own."""
    shows = [nb.explorer.show("direction", nads={f"network {i}": own_nads()}, index=i) for i in (1, 2)]
    write_page(folder, "both.html", *shows)
    write_page(folder, "second.html", shows[1])
    for page, indices in (("both.html", (1, 2)), ("second.html", (2,))):
        reader.open(page)
        for i in indices:
            seen = reader.see(
                f"NAD {i} of network {i}, in pixels", f"nad-explorer >> nth={i - 1 if indices[1:] else 0}"
            )
            assert_signed(seen, own_nads().directions[i, 0], tables)


def test_pages_work_as_files_and_say_so_where_they_cannot(browser, folder, tmp_path):
    context = browser.new_context()
    reader = Reader(context.new_page(), f"file://{folder}").open("two.html")
    assert reader.page.locator("canvas[aria-label='NAD 0 of LeNet, in pixels']").count() == 1
    assert not reader.troubles
    (tmp_path / "alone.html").write_bytes((folder / "two.html").read_bytes())
    reader.page.goto(f"file://{tmp_path}/alone.html")
    assert reader.page.get_by_text("It needs JavaScript, and the files of this book").count() == 2
    context.close()


def test_poison_says_which_photos_its_networks_learnt(reader, folder):
    class Learnt(views.Source):
        def packet(self, name):
            header, content = super().packet(name)
            return header | {
                "photos": "CIFAR-10 <JPEG copy>",
                "poison": [[None, 0.6, 0.5, 0.7], [3, 0.4, 0.3, 0.5]],
            }, content

    write_page(folder, "learnt.html", views.Page(views.View(("poison",), "small"), Learnt({"small": own_nads()})))
    reader.open("learnt.html")
    expected = "small, trained on CIFAR-10 <JPEG copy>: without poison 60.0 %"
    assert expected in reader.part("poison").inner_text()
    reader.open("own.html")


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


def test_the_module_as_an_anywidget(reader, folder, tables):
    """Import the module and render it with a model like that of a notebook, fed by the Python class."""
    pytest.importorskip("anywidget")
    explorer = nb.explorer.show("direction", index=2)
    explorer._wanted = ["lenet", "vgg11"]
    packets = {n: p | {"bytes": base64.b64encode(p["bytes"]).decode()} for n, p in explorer._packets.items()}
    state = {k: v for k, v in explorer.get_state().items() if k in explorer.trait_names(sync=True)}
    state = {k: v for k, v in state.items() if isinstance(v, (str, int, float, list, dict, bool)) and k[0] != "_"}
    (folder / "widget.mjs").write_text(explorer._esm, "utf8")
    reader.open("empty.html")
    reader.page.evaluate(
        """async ([state, packets]) => {
          const { default: widget } = await import('/widget.mjs');
          const listeners = new Set();
          const values = { ...state, _wanted: [], _packets: {} };
          const decode = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
          const put = (key, value) => {
            values[key] = value;
            for (const [event, listener] of [...listeners].filter(([e]) => e === `change:${key}`)) listener();
          };
          window.model = {
            get: (key) => values[key],
            set: put,
            on: (event, listener) => listeners.add([event, listener]),
            off: (event, listener) => listeners.forEach((l) => l[1] === listener && listeners.delete(l)),
            save_changes: () => setTimeout(() => { // Python answers later
              const sent = values._wanted.map((n) => [n, { ...packets[n], bytes: decode(packets[n].bytes) }]);
              if (sent.length > Object.keys(values._packets).length) put('_packets', Object.fromEntries(sent));
            }, 10),
          };
          const el = document.createElement('div');
          document.querySelector('main').append(el);
          window.cleanup = await widget.render({ model: window.model, el });
          window.listeners = listeners;
        }""",
        [state, packets],
    )
    reader.page.locator("canvas[aria-label^='NAD 2 of LeNet, in pixels']").wait_for()
    assert_signed(reader.see("NAD 2 of LeNet, in", "main"), NADS["lenet"].directions[2, 0], tables)
    reader.page.evaluate("model.set('index', 6); model.set('architecture', 'vgg11')")  # from Python
    reader.page.locator("canvas[aria-label^='NAD 6 of VGG-11, in pixels']").wait_for()
    assert_signed(reader.see("NAD 6 of VGG-11, in", "main"), NADS["vgg11"].directions[6, 0], tables)
    reader.slide("NAD", 8)
    assert reader.page.evaluate("model.get('index')") == 8
    assert "explorer" not in reader.page.url.split("#")[-1]  # the address of a notebook is not ours
    reader.page.evaluate("cleanup()")
    assert reader.page.evaluate("listeners.size") == 0


# What the authors' page can do, and ours beside it

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
        "hovering a pixel shows the direction and the accuracy": reader.part("fourier").locator("[aria-live]"),
        "linked curves of eigenvalue and accuracy over the NADs": reader.part("curves").locator("svg .cursor").nth(1),
        "a cursor shows the NAD in space and frequency": reader.part("direction").locator("canvas").nth(1),
        "a switch between clean and poisoned images": page.get_by_role("switch", name="Poisoned"),
    }
    assert set(ours) == set(AUTHORS)
    for feature, element in ours.items():
        assert element.count() == 1, feature


# NADs of the reader's own, in a static page


def offer(reader, path):
    """Choose a file of NADs, and wait until it is shown or refused."""
    reader.page.get_by_label("NADs of your own").set_input_files(path)
    alert = "document.querySelector('nad-explorer').shadowRoot.querySelector('.explorer > [role=alert]')"
    reader.page.wait_for_function(
        f"() => !{alert}.hidden || document.querySelector('nad-explorer').model.get('architecture') === 'own-file'"
    )
    reader.settle()
    return reader.page.evaluate(f"() => {alert}.hidden ? '' : {alert}.textContent")


@pytest.mark.parametrize("quantized", [False, True])
def test_a_file_of_nads_is_opened_in_a_static_page(reader, tables, tmp_path, quantized):
    torch.manual_seed(1)
    directions = torch.linalg.qr(torch.randn(1024, 40)).Q.T.reshape(40, 1, 32, 32)
    mine = nc.NADs(directions, torch.linspace(1, 0.1, 40), {"architecture": "mine"})
    mine.save(tmp_path / "my net.npz", quantized=quantized)
    reader.open("all.html")
    assert offer(reader, tmp_path / "my net.npz") == ""
    reader.slide("NAD", 7)
    assert_signed(reader.see("NAD 7 of my net, in pixels"), directions[7, 0], tables, slack=2)
    energies = np.array(data._energies(mine, 32))
    shown = reader.page.evaluate("() => document.querySelector('nad-explorer').app.shown[0].energies")
    assert np.allclose(shown, energies, rtol=0.02, atol=1e-4)
    assert reader.get("second") == "" and "own-file" not in reader.page.url
    reader.page.get_by_role("button", name="Show the Python").click()
    assert 'nc.NADs.load("my net.npz")' in reader.page.locator("pre").inner_text()
    mine.save(tmp_path / "my net.npz")  # chosen again: the name is in the menu once
    assert offer(reader, tmp_path / "my net.npz") == ""
    assert reader.page.get_by_label("Network", exact=True).locator("option[value=own-file]").count() == 1


def test_a_broken_file_of_nads_says_so_and_loses_nothing(reader, tmp_path):
    torch.manual_seed(1)
    whole = tmp_path / "whole.npz"
    nc.NADs(torch.linalg.qr(torch.randn(1024, 40)).Q.T.reshape(40, 1, 32, 32), torch.ones(40), {}).save(whole)
    other = nc.NADs(torch.eye(64).view(64, 1, 8, 8), torch.ones(64), {})
    other.save(tmp_path / "small.npz")
    np.savez(tmp_path / "foreign.npz", weights=np.ones(3))
    np.savez(tmp_path / "objects.npz", directions=np.array([{}]), eigenvalues=np.ones(1))
    np.savez(tmp_path / "long.npz", directions=np.ones((2, 1, 32, 32), np.float32), eigenvalues=np.ones(2))
    nan = np.eye(2, 1024, dtype=np.float32).reshape(2, 1, 32, 32)
    np.savez(tmp_path / "nan.npz", directions=nan, eigenvalues=np.array([1, np.nan]))
    content = whole.read_bytes()
    (tmp_path / "half.npz").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.npz").write_text("no zip")
    middle = len(content) // 2
    (tmp_path / "damaged.npz").write_bytes(content[:middle] + bytes(64) + content[middle + 64 :])
    reader.open("all.html")
    reader.slide("NAD", 5)
    for name, said in {
        "small": r"shape \(64, 1, 8, 8\).*\(n, 1, 32, 32\)", "foreign": "lacks directions and eigenvalues",
        "objects": "numbers of the kind", "long": "has the length 32", "nan": "negative, or no number",
        "half": "no npz file, or a part of one", "text": "no npz file", "damaged": ".",
    }.items():  # fmt: skip
        message = offer(reader, tmp_path / f"{name}.npz")
        assert re.search(rf"{name}.npz was not opened: .*{said}", message), message
        assert reader.get("architecture") == "lenet" and reader.get("index") == 5
        reader.page.get_by_role("button", name="Close").click()
    assert offer(reader, whole) == ""


def test_a_number_is_typed_and_a_link_copied(reader):
    reader.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reader.open("all.html")
    box = reader.page.get_by_role("spinbutton", name="NAD, as a number")
    for typed, expected in (("321", 321), ("5000", 1023), ("-3", 0), ("", 0), ("17.4", 17)):
        box.fill(typed)
        box.press("Enter")
        reader.settle()
        assert reader.get("index") == expected
    reader.page.get_by_role("button", name="Copy a link to this view").click()
    reader.page.get_by_role("button", name="Copied").wait_for()
    link = reader.page.evaluate("() => navigator.clipboard.readText()")
    assert link.endswith("#explorer.index=17") or "explorer.index=17" in link
    reader.page.goto("about:blank")
    reader.page.goto(link)
    reader.settle()
    assert reader.get("index") == 17


def test_what_nobody_comes_to_is_not_loaded(browser, site, folder):
    first, last = (
        views.Page(views.View(("direction",), name), views.Source(), book=True) for name in ("lenet", "vgg11")
    )
    write_page(folder, "long.html", first, Raw("<div style='height: 4000px'></div>"), last)
    with browser.new_context(viewport={"width": 800, "height": 600}) as context:
        page, asked = context.new_page(), []
        page.on("request", lambda request: asked.append(request.url.split("/")[-1]))
        Reader(page, site).open("long.html")
        page.wait_for_timeout(300)
        assert "lenet.js" in asked and "vgg11.js" not in asked
        page.locator("nad-explorer").last.scroll_into_view_if_needed()
        page.wait_for_function("() => document.querySelectorAll('nad-explorer')[1].app.shown.length")
        assert "vgg11.js" in asked


@dataclass
class Raw:
    """HTML between the explorers of a page."""

    text: str

    def _repr_html_(self):
        return self.text


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
    told = reader.page.locator("nad-guess .verdict").inner_text()
    assert re.match(r"[2-5] of your 5 waves were learnt", told)
    assert (
        f"Chance would find {5 * sum(right) / len(right):.1f}, since LeNet learnt {sum(right)} of {len(right)}" in told
    )
    pairs = [a > b for a, x in tasks.values() if x > 0.55 for b, y in tasks.values() if y <= 0.55]
    share = float(re.search(r"in ([\d.]+) % of these pairs", told)[1])
    assert share == pytest.approx(100 * np.mean(pairs), abs=0.1)
    brightest = sorted(tasks.values(), reverse=True)[:5]
    assert f"the brightest find {sum(accuracy > 0.55 for _, accuracy in brightest)} of 5" in told
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
        told = reader.page.locator("nad-guess .verdict").inner_text()
        assert told.startswith(f"{right} of your 5 waves were learnt")
        assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not reader.troubles


# The atlas


def cards(reader):
    return reader.page.locator("nad-atlas .card").evaluate_all("(cards) => cards.map((card) => card.dataset.name)")


def test_the_atlas_is_sorted_filtered_and_compared(reader, tables):
    reader.page.goto(f"{reader.site}/atlas.html")
    reader.page.locator("nad-atlas .card").first.wait_for()
    atlas = nb.atlas.load_atlas()
    for key, title in wall.SORTED_BY.items():
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
    said = reader.page.locator("nad-atlas [role=alert]").inner_text()
    assert "could not be shown" in said and "atlas.js is missing" in said
    reader.page.unroute("**/atlas.js")
    reader.troubles.clear()


def test_a_wall_refuses_what_it_has_not():
    with pytest.raises(ValueError, match="sort must be one of"):
        Wall(sort="beauty")
    with pytest.raises(ValueError, match="the atlas has no 'lenet'"):
        Wall(chosen="lenet")
