"""The note and the flip: pictures that a reader changes, beside stored accuracies, in a real browser."""

import pytest
import torch
from explorer_pages import NADS, PHOTOS, Reader, assert_photo, changed_pictures
from nads_book.explorer import Changes

import nads_core as nc


@pytest.fixture
def changes(browser, site):
    """Open a page with one of the figures, whose troubles must stay empty."""
    readers = []

    def open(name, **screen):
        readers.append(Reader(browser.new_context(**screen).new_page(), site))
        readers[-1].open(f"{name}.html", wait=False)
        readers[-1].page.locator(f"nad-{name} .accuracies li").first.wait_for()
        return readers[-1]

    yield open
    for reader in readers:
        assert not reader.troubles
        reader.page.context.close()


def chosen(reader):
    return reader.page.locator(".accuracies [aria-current=true]").inner_text().replace("\n", " ")


def test_hole_and_number_are_those_of_the_poison(changes):
    reader, nads = changes("note", viewport={"width": 320, "height": 700}), NADS["lenet"]
    photo, label = PHOTOS.images[[4]], PHOTOS.labels[[4]]
    drawn = lambda state: reader.see(f"The picture cat, {state}", "nad-note")  # noqa: E731
    bars = reader.page.locator(".accuracies strong")
    drawn("unchanged")
    assert bars.all_inner_texts()[1:] == ["?"] * 3  # nothing is given away
    reader.page.get_by_role("switch", name="Number").click()
    reader.page.get_by_role("switch", name="Hole").click()
    assert_photo(drawn("hole and number"), nc.poison(photo, label, nads, 0, 0.05)[0])
    assert chosen(reader).startswith("hole and number") and "31.0 %" in chosen(reader)
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 320
    hole, number = (reader.page.get_by_role("switch", name=name) for name in ("Hole", "Number"))
    number.focus()
    reader.page.keyboard.press("Space")
    assert_photo(drawn("hole only"), nc.poison(photo, label, nads, 0, 1e-9)[0])
    assert number.get_attribute("aria-checked") == "false" and "32.0 %" in chosen(reader)
    hole.focus()
    reader.page.keyboard.press("Enter")
    assert_photo(drawn("unchanged"), photo[0])
    number.click()
    direction = nads.directions[0, 0]  # class 4 is written with a minus sign in the green channel
    assert_photo(
        drawn("number only"), photo[0] - 0.05 * direction * torch.tensor([0, 1, 0])[:, None, None]
    )
    assert "52.0 %" in chosen(reader)
    reader.page.get_by_role("slider", name="Along NAD").focus()
    reader.page.keyboard.press("ArrowRight")
    reader.page.locator("nad-note").get_by_text("Coordinate along NAD 10").wait_for()


def test_pictures_are_flipped_as_the_library_does(changes):
    reader = changes("flip")
    grey = PHOTOS.images[[4]] - 0.5
    drawn = lambda state: reader.see(f"The same picture, {state}", "nad-flip")  # noqa: E731
    drawn("as it is")
    assert reader.page.locator(".accuracies strong").all_inner_texts()[1:] == ["?"] * 2
    reader.page.get_by_role("button", name="flipped").click()
    assert_photo(drawn("flipped"), 0.5 + nc.flip(grey, NADS["lenet"])[0], slack=12)
    assert "30.0 %" in chosen(reader)
    reader.page.get_by_role("button", name="random signs").click()
    assert "40.0 %" in chosen(reader)
    reader.page.get_by_role("button", name="as it is").click()
    assert_photo(drawn("as it is"), PHOTOS.images[4], slack=12)
    reader.page.get_by_label("NADs of").select_option(label="resnet18")
    reader.page.get_by_role("button", name="flipped").click()
    reader.page.locator("nad-flip .verdict", has_text="resnet18").wait_for()
    with pytest.raises(AssertionError):  # another network has another flip
        assert_photo(drawn("flipped"), 0.5 + nc.flip(grey, NADS["lenet"])[0], slack=12)


def test_a_picture_that_is_dropped_stays_in_the_page(changes):
    reader = changes("flip")
    reader.page.evaluate("""async () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 40, height: 60 });
      const context = canvas.getContext("2d");
      context.fillStyle = "#c80000";
      context.fillRect(0, 0, 40, 60);
      const blob = await new Promise((done) => canvas.toBlob(done));
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([blob], "red.png", { type: "image/png" }));
      const root = document.querySelector("nad-flip").shadowRoot.querySelector(".changes");
      root.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }""")
    reader.page.locator("nad-flip canvas[aria-label='The picture red.png']").wait_for(
        state="attached"
    )
    red = torch.tensor([200 / 255, 0, 0])[:, None, None].expand(3, 32, 32)
    assert_photo(reader.see("The picture red.png", "nad-flip"), red)
    assert reader.page.locator("nad-flip .verdict").inner_text()


def test_a_notebook_brings_its_own_arrays():
    for figure in changed_pictures():
        page, notebook = (
            Changes(figure.kind, figure.networks, book=book)._repr_html_() for book in (True, False)
        )
        assert "needs JavaScript" in page and len(notebook) > 10 * len(page)
