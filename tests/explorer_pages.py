"""Pages with explorers as the book has them, without the book around, and a reader of them in a browser."""

import shutil
from dataclasses import dataclass

import nads_book as nb
import numpy as np
import torch
from conftest import BOOK
from nads_book.explorer import AtlasGallery, Changes, Playground, Stack, bundle, views
from nads_book.explorer.data import compressed
from nads_book.explorer.wave_bet import Guess
from nads_book.studies.trainings import shipped_nads

import nads_core as nc

SCREENSHOTS = BOOK.parent / "screenshots"


class _Shipped(dict):
    """NADs that ship, loaded when they are first asked for: whoever collects the tests imports this file."""

    def __missing__(self, name):
        return self.setdefault(name, shipped_nads(name, None))  # the same as those of the results


NADS = _Shipped()


PHOTOS = nb.explorer.load_pictures()


FOURIER, BY_NAD = nb.load_results("fig1-lenet"), nb.load_results("fig6-lenet")


def own_nads(size=8, count=20):
    basis = torch.linalg.qr(
        torch.randn(size**2, size**2, generator=torch.Generator().manual_seed(0))
    ).Q.T
    directions = basis[:count].reshape(-1, 1, size, size)
    return nc.NADs(
        directions.contiguous(), torch.linspace(1, 0.1, count), {"architecture": "small"}
    )


HOSTILE = "</script><script>window.pwned = 1</script><!--\u2028\nimport os"


# A browser. `site` holds pages as the book has them, without the book around.


def write_page(folder, name, *explorers):
    """Write a page with these explorers, between a link to a section and that section."""
    body = "".join(explorer._repr_html_() for explorer in explorers)
    theme = "<style>html[data-theme=dark] body { background: #121212; color: #ced6dd }"
    theme += "nad-playground { display: block; min-height: 160rem }</style>"  # as the book's style reserves its height
    (folder / name).write_text(
        f'<!doctype html><html lang="en" data-content_root=""><head><meta charset="utf-8"><title>Explorer</title>'
        f'<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">{theme}</head>'
        f'<body><main><h1>Explorer</h1><a href="#end">The end</a>{body}<h2 id="end">End</h2></main></body></html>',
        "utf8",
    )


def changed_pictures():
    """Give the note and the flip, with invented accuracies."""
    known = {"caption": "Accuracies", "accuracies": {"upright": 0.5, "signs": 0.4, "flipped": 0.3}}
    halves = {
        "carriers": [0, 10],
        "accuracies": [{"clean": 0.53, "number": 0.52, "hole": 0.32, "both": 0.31}] * 2,
    }
    flips = [{"key": name, "label": name} | known for name in ("lenet", "resnet18")]
    note = {"key": "lenet", "label": "LeNet", "caption": "Accuracies"} | halves
    return [Changes("note", [note], book=True), Changes("flip", flips, book=True)]


def trained_directions():
    """Return the configuration of a figure with two networks, invented: direction i at step s is wave (0, i + s)."""
    entries = {"lenet|photos": {"steps": [0, 1, 10], "start": [1, 0.5, -0.25], "signal": [None, 0.1, 0.9]},
               "cnn|photos": {"steps": [0, 1], "start": [1, 0.75], "signal": None}}  # fmt: skip
    waves = [nc.fourier_direction((0, 1 + i + step), 32)[0].numpy() for entry in entries.values()
             for step in range(len(entry["steps"])) for i in range(2)]  # fmt: skip
    pixels = np.rint(127 * np.stack(waves) / np.abs(waves).max((1, 2), keepdims=True)).astype(
        np.int8
    )
    names = {"networks": {"lenet": "LeNet", "cnn": "CNN"}, "data": {"photos": "photos"}}
    return compressed((names | {"entries": entries, "shown": 2}, pixels.tobytes()))


def write_site(folder):
    """Write the pages that the tests visit, and return their folder."""
    views.write_pages_data(folder / "_static" / "explorer")
    (folder / "module.mjs").write_text(bundle.module(), "utf8")
    shutil.copytree(bundle.SOURCES, folder / "sources")
    write_page(folder, "all.html", views.Page(views.View(), views.Source(), book=True))
    two = [
        views.Page(views.View(parts), views.Source(), book=True)
        for parts in (("direction",), ("mixer",))
    ]
    write_page(folder, "two.html", *two)
    write_page(
        folder,
        "own.html",
        views.Page(views.View(("direction",), "small"), views.Source({"small": own_nads()})),
    )
    write_page(folder, "empty.html")
    write_page(folder, "guess.html", Guess(book=True))
    curves = nb.experiments.stored.load_study("two-trainings.json")
    write_page(
        folder, "training.html", Raw(bundle.element("nad-training", curves, "Curves.", book=True))
    )
    write_page(
        folder,
        "trained.html",
        Raw(bundle.element("nad-trained", trained_directions(), "Steps.", book=True)),
    )
    write_page(folder, "fold.html", Raw(bundle.element("nad-fold", {}, "A wave.", book=True)))
    write_page(folder, "atlas.html", AtlasGallery(book=True))
    write_page(folder, "playground.html", Playground(small=False, shared=True, book=True))
    small = Playground(
        {"pooling": "stride"}, ("head", "global"), ["pooling", "head"], (0, 4), book=True
    )
    write_page(folder, "playground-small.html", small)
    few = nc.NADs(-NADS["lenet"].directions.flip(0), NADS["lenet"].eigenvalues)
    rows = {3: few, 1_000: NADS["lenet"], "the library": NADS["lenet"]}
    write_page(folder, "stack.html", Stack(rows, NADS["lenet"], book=True))
    for figure in changed_pictures():
        write_page(folder, f"{figure.kind}.html", figure)
    write_page(folder, "atlas-own.html", AtlasGallery(chosen="vit", sort="effect", book=False))
    return folder


class Reader:
    """Somebody at a page: what they do, and what they see."""

    def __init__(self, page, site):
        self.page, self.site, self.troubles = page, site, []
        page.set_default_timeout(240_000)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on(
            "console",
            lambda message: message.type == "error" and self.troubles.append(message.text),
        )
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
        """Wait until every explorer is drawn, except those that begin when the reader scrolls to them."""
        self.page.wait_for_function(
            """() => [...document.querySelectorAll('nad-explorer')].every((e) => {
                const {top, bottom} = e.getBoundingClientRect(), visible = top < innerHeight && bottom > 0
                return e.app && (e.app.begun ? e.app.root.getAttribute('aria-busy') === 'false' : !visible)
            })"""
        )
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def see(self, label, scope="nad-explorer"):
        """Read the pixels (H, W, 4) of the canvas whose label starts like this."""
        canvas = self.page.locator(scope).locator(f"canvas[aria-label^='{label}']").first
        flat, width = canvas.evaluate(
            "(c) => [[...c.getContext('2d').getImageData(0, 0, c.width, c.height).data], c.width]"
        )
        return np.array(flat).reshape(-1, width, 4)

    def get(self, key):
        """The first explorer's model."""
        return self.page.evaluate(
            "(key) => document.querySelector('nad-explorer').model.get(key)", key
        )

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
        control.evaluate(
            "(e, value) => { e.value = value; e.dispatchEvent(new Event('input')) }", value
        )
        self.settle()
        return control


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


def number(text):
    """Read a number that is written for people."""
    digits, _, exponent = text.partition(" × 10")
    return float(digits) * 10 ** int(
        exponent.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0
    )


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
  const drawn = visible('svg *, canvas').flatMap((e) => [...e.attributes]).map((a) => a.value);
  trouble.push(...drawn.filter((value) => /NaN|undefined/.test(value)));
  return trouble;
}"""


@dataclass
class Raw:
    """HTML between the explorers of a page."""

    text: str

    def _repr_html_(self):
        return self.text
