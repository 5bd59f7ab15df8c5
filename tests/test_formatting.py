"""What the chapters print with."""

import re

import markdown_it
import pytest
from nads_book.experiments import formatting


@pytest.fixture
def shown(monkeypatch):
    """Collect the displayed objects."""
    texts = []
    monkeypatch.setattr("IPython.display.display", lambda markdown: texts.append(markdown.data))
    return texts


@pytest.mark.parametrize(
    "name", ["GPU <img src=x onerror=alert(1)>", "a\n\n```{raw} html\n<b>x</b>\n```\n", "<!-- GPU"]
)
def test_names_in_results_files_are_text_on_pages(shown, name):
    """Rendered as a page is: no element, no comment and no block begins in the name of a device."""

    formatting.table([["LeNet", name]], ["", "computed on"])
    for text in shown:
        page = markdown_it.MarkdownIt().enable("table").render(text)
        elements = {*re.findall(r"<[^>\s]+", page)} - {"<p", "</p"}
        assert all(
            each.strip("</") in ("table", "thead", "tbody", "tr", "th", "td", "code")
            for each in elements
        ), page
        assert "GPU" in page or "alert" in page or "raw" in page


@pytest.mark.parametrize(
    ("source", "name", "warned"),
    [
        ("CIFAR-10, 50,000 photos", "CIFAR-10", False),
        ("a folder", "a folder", True),
        ("generated images, not photos", "generated", True),
    ],
)
def test_images_that_are_not_cifar10_come_with_a_warning(shown, source, name, warned):
    class Images(list):
        pass

    train = Images([0] * 1_200)
    train.source = source
    formatting.show_images_used(train, train[:200])
    (text,) = shown
    assert text.startswith(f"`{name}` Live: {source}, 1,200 to train on, 200 to test on.")
    assert ("NADS_DATA" in text) == warned
