"""Stage the files of the book that do not come from a chapter, as Sphinx reads them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from nads_book import explorer, figures
from nads_book.experiments.formatting import LABELS
from nads_book.explorer.wave_bet import Guess
from nads_book.figures.variants import VARIANTS, Variants
from nads_book.pages import certainty, intro
from nads_core import load_nads


def stage(target: Path, root: Path) -> None:
    """Write the files that Sphinx needs in addition to the chapters.

    Args:
        target: folder, which is emptied.
        root: root of the repository.
    """
    matplotlib.use("agg")  # no window, whatever the reader's screen
    shutil.rmtree(target, ignore_errors=True)
    left_out = shutil.ignore_patterns("chapters", "results", "__pycache__", "*.py")
    shutil.copytree(root / "book", target / "book", ignore=left_out)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, target / name)
    (target / "variants").mkdir()
    static = target / "book" / "_static"
    explorer.write_pages_data(static / "explorer")
    nads = {LABELS[name]: load_nads(name) for name in ("lenet", "vgg11", "resnet18", "densenet121")}
    draw(target, "nads", figures.plot_directions, nads)
    draw(target, "strip", figures.plot_signed_images, intro.how_nads_are_made())
    draw(target, "certainty", certainty.plot_certainty, nads["LeNet"], "++s")
    page = target / "book" / "certainty.md"
    text = page.read_text("utf8")
    page.write_text(text.replace("<!-- shipped -->", certainty.table_shipped()), "utf8")
    moving: dict[str, Guess | explorer.Page | explorer.Playground] = {
        "guess": Guess(),
        "photo": explorer.Page(("photo",), photo=8, kept=20, book=True),
        "directions": explorer.Page(("direction",), second="resnet18", index=3, book=True),
        "playground": explorer.Playground(wave=(2, 1), small=False, shared=True, book=True),
    }
    for name, figure in moving.items():
        (target / "book" / f"{name}.html").write_text(figure._repr_html_(), "utf8")


def draw(target: Path, name: str, plot: Callable[..., Figure], *arguments: object) -> None:
    """Save a figure of a page, and its variants for dark and narrow pages."""
    variants = Variants(plot, *arguments)
    drawn = {target / f"variants/{name}.{kind}.png": variants.variant(kind) for kind in VARIANTS}
    drawn[target / f"book/_static/{name}.png"] = variants.light
    for path, figure in drawn.items():
        figure.savefig(path, dpi=200)
