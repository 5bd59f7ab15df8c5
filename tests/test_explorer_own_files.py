"""NADs and images of the reader in the explorer, in a real browser."""

import base64
import re

import nads_book as nb
import numpy as np
import pytest
import torch
from explorer_pages import (
    DEAD,
    HOSTILE,
    NADS,
    PHOTOS,
    assert_photo,
    assert_signed,
    own_nads,
    write_page,
)
from nads_book.explorer import data, views

import nads_core as nc
from nads_core.directions import DegenerateCluster, DirectionUncertainty


def test_an_image_of_your_own_stays_in_the_browser(reader, tmp_path):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "mine.png")
    reader.open("all.html")
    requests = []
    reader.page.on("request", lambda request: requests.append(request.url))
    reader.part("photo").locator("input[type=file]").set_input_files(tmp_path / "mine.png")
    reader.page.wait_for_function(
        "document.querySelector('nad-explorer').model.get('photo') === -1"
    )
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
    reader.page.wait_for_function(
        "document.querySelector('nad-explorer').model.get('photo') === -1"
    )
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
    assert (
        reader.part("photo").get_by_role("button", name=name).get_attribute("aria-pressed")
        == "true"
    )


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
    reader.page.wait_for_function(
        "document.querySelector('nad-explorer').model.get('photo') === -1"
    )
    assert not alert.is_visible()


def test_nads_of_your_own(reader, tables):
    reader.open("own.html")
    reader.slide("NAD", 2)
    assert_signed(reader.see("NAD 2 of small, in pixels"), own_nads().directions[2, 0], tables)


def test_a_label_runs_no_code(reader, site_folder, tmp_path, without_anywidget):
    """NADs from somebody else's file, whose label would end the element that carries it."""
    nads = own_nads()
    nc.NADs(nads.directions, nads.eigenvalues, {"architecture": HOSTILE}).save(
        tmp_path / "poisoned.npz"
    )
    write_page(
        site_folder,
        "poisoned.html",
        nb.explorer.show(nads=nc.NADs.load(tmp_path / "poisoned.npz"), index=2),
    )
    reader.open("poisoned.html", wait=False)
    assert reader.page.evaluate("window.pwned") is None
    reader.settle()
    assert "</script><script>window.pwned = 1</script>" in reader.part("curves").inner_text()
    reader.page.get_by_role("button", name="Show the Python").click()
    code = reader.page.locator(".python code").inner_text()
    exec(code, made := {"nads": nads})  # noqa: S102
    assert "os" not in made and "mixture" in made


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_nads_of_your_own(reader, site_folder, without_anywidget, tables, count):
    nads = own_nads(count=count)
    write_page(
        site_folder,
        f"few-{count}.html",
        nb.explorer.show(nads={"few": nads, "many": own_nads()}, kept=1),
    )
    reader.open(f"few-{count}.html")
    part = reader.part("mixer")
    assert part.locator("input[type=range]:visible").count() == count
    for n, weight in enumerate((0.5, -0.25)[:count]):
        reader.slide(f"Weight of NAD {n}", weight, part)
    reader.part("poison").get_by_role("switch").click()
    reader.page.get_by_role("button", name="Show the Python").click()
    reader.slide("NAD", count - 1)
    assert not reader.page.evaluate(DEAD)
    exec(
        reader.page.locator(".python code").inner_text().split("\n# The poison")[0],
        made := {"nads": nads},
    )  # noqa: S102
    assert_signed(
        reader.see(f"Mixture of the first {count} NADs of few"), made["mixture"], tables, slack=2.5
    )
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


def test_what_is_known_of_a_direction(reader, site_folder, without_anywidget):
    """Its name, its certainty, and a band that is stepped through as one."""
    custom = own_nads()
    types = tuple("+-" if i % 5 else "++" for i in range(len(custom)))
    certainty = torch.linspace(1, 0, len(custom))
    bands = (DegenerateCluster((1, 2, 3, 4), 0.97), DegenerateCluster((5, 10, 15), 0.5))
    known = DirectionUncertainty(
        types, certainty, certainty.square(), custom.eigenvalues / 10, certainty, bands
    )
    certified = nc.NADs(custom.directions, custom.eigenvalues, custom.provenance, known)
    write_page(
        site_folder, "certified.html", nb.explorer.show("direction", nads=certified, index=0)
    )
    reader.open("certified.html")
    part, index = (
        reader.part("direction"),
        "document.querySelector('nad-explorer').model.get('index')",
    )
    assert (
        "certainty 1.00" in part.inner_text() and "symmetry type" not in part.inner_text()
    )  # it is folded
    part.get_by_text("Name and eigenvalue").first.click()
    assert (
        "symmetry type ++, rank 0" in part.inner_text() and "distinguished" not in part.inner_text()
    )
    names = [f"{way} to the next distinguishable direction" for way in ("On", "Back")]
    forward, back = (reader.page.get_by_role("button", name=name) for name in names)
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
    assert "symmetry type +-, rank 2" in text
    assert f"certainty {certainty[3]:.2f}; one of 4" in text and "(together 0.97)" in text
    back.click()
    reader.settle()
    assert reader.page.evaluate(index) == 0  # not 1, which is of the same band
    reader.slide("NAD", 10)
    assert "one of 3 that cannot be distinguished (together 0.50)" in part.inner_text()
    forward.click()
    reader.settle()
    assert reader.page.evaluate(index) == 11


def test_the_python_of_images_given_to_show(reader, site_folder, without_anywidget):
    images = nc.load_images("generated", train=False, num_images=10, size=8)
    write_page(
        site_folder,
        "images.html",
        nb.explorer.show("photo", "poison", nads=own_nads(), images=images, photo=4),
    )
    reader.open("images.html")
    reader.page.get_by_role("button", name="Show the Python").click()
    code = reader.page.locator(".python code").inner_text()
    assert "load_pictures" not in code and "# photos: your own images" in code
    exec(code, made := {"photos": images, "nads": own_nads()})  # noqa: S102
    assert_photo(reader.see("The image from the first 20"), made["rebuilt"])


def test_every_output_of_a_notebook_stands_alone(reader, site_folder, without_anywidget, tables):
    """The first may be deleted, or shown in a frame of its own."""
    shows = [
        nb.explorer.show("direction", nads={f"network {i}": own_nads()}, index=i) for i in (1, 2)
    ]
    write_page(site_folder, "both.html", *shows)
    write_page(site_folder, "second.html", shows[1])
    for page, indices in (("both.html", (1, 2)), ("second.html", (2,))):
        reader.open(page)
        for i in indices:
            seen = reader.see(
                f"NAD {i} of network {i}, in pixels",
                f"nad-explorer >> nth={i - 1 if indices[1:] else 0}",
            )
            assert_signed(seen, own_nads().directions[i, 0], tables)


def test_poison_says_which_photos_its_networks_learned(reader, site_folder):
    class Learned(views.Source):
        def packet(self, name):
            header, content = super().packet(name)
            return header | {
                "photos": "CIFAR-10 <JPEG copy>",
                "poison": [[None, 0.6, 0.5, 0.7], [3, 0.4, 0.3, 0.5]],
            }, content

    write_page(
        site_folder,
        "learned.html",
        views.Page(views.View(("poison",), "small"), Learned({"small": own_nads()})),
    )
    reader.open("learned.html")
    expected = "small, trained on CIFAR-10 <JPEG copy>: without poison 60.0 %"
    assert expected in reader.part("poison").inner_text()
    reader.open("own.html")


def test_the_module_as_an_anywidget(reader, site_folder, tables):
    """Import the module and render it with a model like that of a notebook, fed by the Python class."""
    pytest.importorskip("anywidget")
    explorer = nb.explorer.show("direction", index=2)
    first = explorer._packets  # of the first view
    explorer._wanted = ["vgg11"]
    packets = {"vgg11": explorer._packets["vgg11"]}
    packets = {n: p | {"bytes": base64.b64encode(p["bytes"]).decode()} for n, p in packets.items()}
    state = {k: v for k, v in explorer.get_state().items() if k in explorer.trait_names(sync=True)}
    state = {
        k: v
        for k, v in state.items()
        if isinstance(v, (str, int, float, list, dict, bool)) and k[0] != "_"
    }
    (site_folder / "widget.mjs").write_text(explorer._esm, "utf8")
    reader.open("empty.html")
    reader.page.evaluate(
        """async ([state, packets, first]) => {
          const { default: widget } = await import('/widget.mjs');
          const listeners = new Set();
          const values = { ...state, _wanted: [], _packets: first };
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
              if (sent.length) put('_packets', { ...first, ...Object.fromEntries(sent) });
            }, 10),
          };
          const el = document.createElement('div');
          window.cleanup = await widget.render({ model: window.model, el });
          document.querySelector('main').append(el); // afterwards, as in JupyterLab
          window.listeners = listeners;
        }""",
        [state, packets, first],
    )
    reader.page.locator("canvas[aria-label^='NAD 2 of LeNet, in pixels']").wait_for()
    assert reader.page.evaluate("model.get('_wanted')") == []  # nothing was asked of the kernel
    assert_signed(reader.see("NAD 2 of LeNet, in", "main"), NADS["lenet"].directions[2, 0], tables)
    reader.page.evaluate("model.set('index', 6); model.set('architecture', 'vgg11')")  # from Python
    reader.page.locator("canvas[aria-label^='NAD 6 of VGG-11, in pixels']").wait_for()
    assert_signed(reader.see("NAD 6 of VGG-11, in", "main"), NADS["vgg11"].directions[6, 0], tables)
    reader.slide("NAD", 8)
    assert reader.page.evaluate("model.get('index')") == 8
    assert "explorer" not in reader.page.url.split("#")[-1]  # the address of a notebook is not ours
    reader.page.evaluate("cleanup()")
    assert reader.page.evaluate("listeners.size") == 0


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
    shown = reader.page.evaluate(
        "() => document.querySelector('nad-explorer').app.shown[0].energies"
    )
    assert np.allclose(shown, energies, rtol=0.02, atol=1e-4)
    assert reader.get("second") == "" and "own-file" not in reader.page.url
    reader.page.get_by_role("button", name="Show the Python").click()
    assert 'nc.NADs.load("my net.npz")' in reader.page.locator("pre").inner_text()
    mine.save(tmp_path / "my net.npz")  # chosen again: the name is in the menu once
    assert offer(reader, tmp_path / "my net.npz") == ""
    assert (
        reader.page.get_by_label("Network", exact=True).locator("option[value=own-file]").count()
        == 1
    )


def test_a_broken_file_of_nads_says_so_and_loses_nothing(reader, tmp_path):
    torch.manual_seed(1)
    whole = tmp_path / "whole.npz"
    nc.NADs(
        torch.linalg.qr(torch.randn(1024, 40)).Q.T.reshape(40, 1, 32, 32), torch.ones(40), {}
    ).save(whole)
    other = nc.NADs(torch.eye(64).view(64, 1, 8, 8), torch.ones(64), {})
    other.save(tmp_path / "small.npz")
    np.savez(tmp_path / "foreign.npz", weights=np.ones(3))
    np.savez(tmp_path / "objects.npz", directions=np.array([{}]), eigenvalues=np.ones(1))
    np.savez(
        tmp_path / "long.npz",
        directions=np.ones((2, 1, 32, 32), np.float32),
        eigenvalues=np.ones(2),
    )
    nan = np.eye(2, 1024, dtype=np.float32).reshape(2, 1, 32, 32)
    np.savez(tmp_path / "nan.npz", directions=nan, eigenvalues=np.array([1, np.nan]))
    content = whole.read_bytes()
    (tmp_path / "half.npz").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.npz").write_text("no zip")
    middle = len(content) // 2
    (tmp_path / "damaged.npz").write_bytes(content[:middle] + bytes(64) + content[middle + 64 :])
    reader.open("all.html")
    reader.slide("NAD", 5)
    for name, reason in {
        "small": r"shape \(64, 1, 8, 8\).*\(n, 1, 32, 32\)", "foreign": "lacks directions and eigenvalues",
        "objects": "numbers of the kind", "long": "has the length 32", "nan": "negative, or no number",
        "half": "no npz file, or a part of one", "text": "no npz file", "damaged": ".",
    }.items():  # fmt: skip
        message = offer(reader, tmp_path / f"{name}.npz")
        assert re.search(rf"{name}.npz was not opened: .*{reason}", message), message
        assert reader.get("architecture") == "lenet" and reader.get("index") == 5
        reader.page.get_by_role("button", name="Close").click()
    assert offer(reader, whole) == ""


def test_nads_are_downloaded_as_npz_and_as_a_table(reader, tmp_path):
    """The file is what `NADs.load` reads, within the 8 bits of the page; the table has the same numbers."""
    reader.open("all.html")
    reader.page.get_by_label("Network", exact=True).first.select_option("vgg11")
    reader.settle()
    for kind in ("npz", "csv"):
        with reader.page.expect_download() as download:
            reader.page.get_by_role("button", name=f"Download NADs (.{kind})").click()
        assert download.value.suggested_filename == f"nads-vgg11.{kind}"
        download.value.save_as(tmp_path / f"nads.{kind}")
    nads, shipped = nc.NADs.load(tmp_path / "nads.npz"), NADS["vgg11"]
    assert nads.name == "vgg11" and nads.directions.shape == shipped.directions.shape
    assert torch.equal(nads.eigenvalues, shipped.eigenvalues.float())
    cosines = (nads.directions.flatten(1) * shipped.directions.flatten(1)).sum(1)
    assert cosines.min() > 0.999
    with np.load(tmp_path / "nads.npz", allow_pickle=False) as file:
        raw = file["directions"]
    names, *rows = (tmp_path / "nads.csv").read_text().splitlines()
    table = np.array([row.split(",") for row in rows[:50]], float)
    assert names.split(",")[:4] == ["nad", "eigenvalue", "pixel_0_0", "pixel_0_1"] and len(
        rows
    ) == len(nads)
    assert table.shape == (50, 2 + 32 * 32) and (table[:, 0] == np.arange(50)).all()
    assert np.allclose(table[:, 1], nads.eigenvalues[:50], rtol=1e-4)
    assert np.allclose(table[:, 2:], raw[:50].reshape(50, -1), rtol=1e-3, atol=1e-7)
    offer(reader, tmp_path / "nads.npz")  # and the page reads it again
    reader.page.wait_for_function(
        "document.querySelector('nad-explorer').model.get('architecture') === 'own-file'"
    )
