"""Links to views of the explorer, and networks that cannot be loaded, in a real browser."""

import random

import pytest
import torch
from explorer_pages import (
    DEAD,
    NADS,
    Raw,
    Reader,
    assert_signed,
    write_page,
)
from nads_book.explorer import data, views


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
    assert_signed(
        reader.see("NAD 1023 of LeNet, in pixels"), NADS["lenet"].directions[1023, 0], tables
    )


def random_addresses(count, seed=0):
    """Addresses that mean something, nothing, or harm."""
    rng = random.Random(seed)
    keys = [*views.View.__dataclass_fields__, "part", "toString", "__proto__", "constructor", ""]
    names = [
        *data.LABELS,
        "toString",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "",
        "alexnet",
        "null",
    ]
    numbers = "0 -0 -1 2.5 1e3 1023 1024 99999 1e21 1e308 1e999 -1e308 5e-324".split()
    others = [
        "NaN",
        "Infinity",
        "0x10",
        "007",
        "",
        "+",
        "true",
        "null",
        '"3"',
        "{}",
        "[]",
        "%",
        "%00",
        "é",
        "9" * 400,
    ]
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
    anything = [
        *fitting.values(),
        whole,
        lambda: listed(rng.randint(1, 3)),
        lambda: rng.choice(numbers + others),
    ]

    def pair():
        key = rng.choice(keys)
        value = rng.choice(
            (fitting.get(key, whole), fitting.get(key, whole), rng.choice(anything))
        )()
        return f"explorer{rng.choice(('', '', '', '-2', '-0'))}.{key}={value}"

    return ["&".join(pair() for _ in range(rng.randint(1, 6))) for _ in range(count)]


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.slow)])
def test_random_addresses_leave_every_panel_alive(reader, count):
    """One page lives through all of them; fresh pages open at some of them."""
    addresses = random_addresses(count)
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
    assert shown["seen"] > 0.3 * count  # they do lead to different views
    for address in random_addresses(count // 20, seed=1):
        reader.open("empty.html", wait=False)
        reader.open(f"all.html#{address}")
        reader.page.wait_for_function(
            """() => {
              const { app } = document.querySelector('nad-explorer');
              return app?.begun && app.root.getAttribute('aria-busy') === 'false';
            }"""
        )
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
    assert "explorer.index=9" in reader.page.url  # and the address still describes what both show


def test_a_link_leads_to_the_part_that_it_names(reader):
    reader.page.set_viewport_size({"width": 1000, "height": 500})
    reader.open("all.html#explorer.part=poison&explorer.index=1000")
    assert 0 <= reader.top("poison") < 200 and reader.get("index") == 1000
    reader.go("explorer.part=fourier&explorer.frequency=[0,8]")
    assert 0 <= reader.top("fourier") < 200
    reader.go("explorer.index=5")
    assert (
        -50
        < reader.page.locator("nad-explorer").evaluate("(e) => e.getBoundingClientRect().top")
        < 200
    )
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


def test_pages_work_as_files_and_say_so_where_they_cannot(browser, site_folder, tmp_path):
    context = browser.new_context()
    reader = Reader(context.new_page(), f"file://{site_folder}").open("two.html")
    assert reader.page.locator("canvas[aria-label='NAD 0 of LeNet, in pixels']").count() == 1
    assert not reader.troubles
    (tmp_path / "alone.html").write_bytes((site_folder / "two.html").read_bytes())
    reader.page.goto(f"file://{tmp_path}/alone.html")
    assert reader.page.get_by_text("It needs JavaScript, and the files of this book").count() == 2
    context.close()


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


def test_what_nobody_comes_to_is_not_loaded(browser, site, site_folder):
    first, last = (
        views.Page(views.View(("direction",), name), views.Source(), book=True)
        for name in ("lenet", "vgg11")
    )
    write_page(site_folder, "long.html", first, Raw("<div style='height: 4000px'></div>"), last)
    with browser.new_context(viewport={"width": 800, "height": 600}) as context:
        page, asked = context.new_page(), []
        page.on("request", lambda request: asked.append(request.url.split("/")[-1]))
        Reader(page, site).open("long.html")
        page.wait_for_timeout(300)
        assert "lenet.js" in asked and "vgg11.js" not in asked
        page.locator("nad-explorer").last.scroll_into_view_if_needed()
        page.wait_for_function(
            "() => document.querySelectorAll('nad-explorer')[1].app.shown.length"
        )
        assert "vgg11.js" in asked
