"""Pages with explorers as the book has them, without the book around, and a reader of them."""

import shutil
from dataclasses import replace

import convergence
import nads_book as nb
import numpy as np
import torch
from nads_book.experiments.stored import load_nads
from nads_book.explorer import AtlasGallery, Playground, Stack, bundle, views
from nads_book.explorer.wave_bet import Guess

import nads_core as nc


class _Shipped(dict):
    """NADs that ship, loaded when they are first asked for: collection imports this file."""

    def __missing__(self, name):
        return self.setdefault(name, load_nads(name))  # the same as those of the results


NADS = _Shipped()
PHOTOS = nb.explorer.load_pictures()
FOURIER = nb.load_results("fig1-lenet")
BY_NAD = nb.load_results("fig6-lenet")
HOSTILE = "</script><script>window.pwned = 1</script><!--\u2028\nimport os"


def random_nads(size=8, count=20, uncertainty=None, seed=0):
    """Return orthonormal directions of a network called small."""
    nads = convergence.random_nads(1, size, size, count=count, seed=seed)
    return replace(nads, provenance={"architecture": "small"}, uncertainty=uncertainty)


def write_page(folder, name, *explorers):
    """Write a page with these explorers, between a link to a section and that section."""
    body = "".join(explorer._repr_html_() for explorer in explorers)
    style = "html[data-theme=dark] body { background: #121212; color: #ced6dd }"
    style += "nad-playground { display: block; min-height: 160rem }"  # as the book reserves it
    page = f"""<!doctype html><html lang="en" data-content_root=""><head><meta charset="utf-8">
<title>Explorer</title><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"><style>{style}</style></head><body><main><h1>Explorer</h1>
<a href="#end">The end</a>{body}<h2 id="end">End</h2></main></body></html>"""
    (folder / name).write_text(page, "utf8")


def write_site(folder):
    """Write the pages that the tests visit, and return their folder."""
    views.write_pages_data(folder / "_static" / "explorer")
    shutil.copytree(bundle.SOURCES, folder / "sources")
    few = nc.NADs(-NADS["lenet"].directions.flip(0), NADS["lenet"].eigenvalues)
    rows = {3: few, 1_000: NADS["lenet"], "the library": NADS["lenet"]}
    pages = {
        "empty": (),
        "all": (views.Page(book=True),),
        "two": [views.Page((part,), book=True) for part in ("direction", "photo")],
        "guess": (Guess(),),
        "trained": (nb.pages.training.widget(),),
        "atlas": (AtlasGallery(book=True),),
        "playground": (Playground(small=False, shared=True, book=True),),
        "stack": (Stack(rows, NADS["lenet"], book=True),),
        "note": (replace(nb.pages.poison.widget(), book=True),),
        "flip": (replace(nb.pages.flip.widget(), book=True),),
    }
    for name, explorers in pages.items():
        write_page(folder, f"{name}.html", *explorers)
    return folder


MODEL = "document.querySelector('nad-explorer').model"


class Reader:
    """Somebody at a page: what they do, and what they see."""

    def __init__(self, page, site):
        self.page = page
        self.site = site
        self.troubles = []
        page.set_default_timeout(240_000)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("console", lambda text: text.type == "error" and self.troubles.append(text.text))
        page.on("request", lambda request: self._check(request.url))

    def _check(self, url):
        if not url.startswith((self.site, "data:", "blob:")):
            self.troubles.append(f"asks another host: {url}")

    def open(self, name):
        self.page.goto("about:blank")  # another address of the same page loads it again
        self.page.goto(f"{self.site}/{name}")
        self.settle()
        return self

    def settle(self):
        """Wait until every explorer is drawn, except those that no reader has come to."""
        self.page.wait_for_function(
            """() => [...document.querySelectorAll('nad-explorer')].every((e) => {
                const {top, bottom} = e.getBoundingClientRect()
                const visible = top < innerHeight && bottom > 0
                const drawn = () => e.app.root.getAttribute('aria-busy') === 'false'
                return e.app && (e.app.begun ? drawn() : !visible)
            })"""
        )
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def see(self, label, scope="nad-explorer"):
        """Read the pixels (H, W, 4) of the first canvas whose label starts like this."""
        named = f"canvas[aria-label^='{label}']" if label else "canvas"
        canvas = self.page.locator(scope).locator(named).first
        flat, width = canvas.evaluate(
            "(c) => [[...c.getContext('2d').getImageData(0, 0, c.width, c.height).data], c.width]"
        )
        return np.array(flat).reshape(-1, width, 4)

    def get(self, key):
        """The first explorer's model."""
        return self.page.evaluate(f"(key) => {MODEL}.get(key)", key)

    def wait_for(self, key, value):
        self.page.wait_for_function(f"([k, v]) => {MODEL}.get(k) === v", arg=[key, value])
        self.settle()

    def go(self, hash):
        """Follow a link to a view."""
        self.page.evaluate("(hash) => (location.hash = hash)", hash)
        self.settle()

    def part(self, name):
        return self.page.locator(f"section[data-part={name}]")

    def button(self, name):
        return self.page.get_by_role("button", name=name, exact=True).first

    def python(self):
        """Return the code that the page shows for this view."""
        self.button("Show the Python").click()
        self.settle()
        return self.page.locator(".python code").inner_text()

    def slide(self, label, value, scope=None):
        control = (scope or self.page).get_by_role("slider", name=label, exact=True).first
        reach = "([slider, value]) => Number(slider.max) >= value"  # once a network has arrived
        self.page.wait_for_function(reach, arg=[control.element_handle(), value])
        control.evaluate(
            "(e, value) => { e.value = value; e.dispatchEvent(new Event('input')) }", value
        )
        self.settle()
        return control

    def fits(self):
        """Whether nothing is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def levels(pixels, table):
    """Turn colours back into 0 ... 255."""
    assert pixels.shape[2] == 4
    distance = np.abs(pixels[:, :, None] - table[None, None]).sum(-1)
    assert (distance.min(-1) == 0).all(), "a colour that is not of the map"
    return distance.argmin(-1)


def assert_signed(pixels, expected, tables, slack=1.6):
    """The picture is this signed image, within rounding to 255 colours and 255 levels."""
    expected = np.asarray(expected, float)
    drawn = (levels(pixels, tables["diverging"]) - 127.5) / 127.5
    assert np.abs(drawn - expected / np.abs(expected).max()).max() < slack / 127.5


def assert_photo(pixels, expected, slack=4):
    """The picture is this photo (3, H, W), clipped to [0, 1], within a few of 255 levels."""
    expected = 255 * torch.as_tensor(expected).clamp(0, 1).permute(1, 2, 0).numpy()
    assert np.abs(pixels[..., :3] - expected).max() < slack
