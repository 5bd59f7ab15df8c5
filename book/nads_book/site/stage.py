"""Stage the files of the book that do not come from a chapter: ``python -m nads_book.site.stage
FOLDER ROOT``.
"""

import shutil
import sys
from pathlib import Path

from nads_book import explorer
from nads_book.pages.nad_computation import certainty
from nads_book.site import gaps, pages, sharing


def stage(folder: Path, root: Path) -> None:
    """Write the files that Sphinx needs in addition to the chapters.

    Args:
        folder: folder of the build.
        root: root of the repository.
    """
    target = folder / "stage"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(
        root / "book",
        target / "book",
        ignore=shutil.ignore_patterns("chapters", "__pycache__", "*.py"),
    )
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, target / name)
    sharing.configure(target / "_config.yml", root)
    pages.draw_intro(target / "book" / "_static" / "nads.png")
    pages.draw_question(target / "book" / "_static" / "question.png")
    pages.draw_strip(target / "book" / "_static" / "strip.png")
    explorer.write_pages_data(target / "book" / "_static" / "explorer")
    pages.draw_certainty(target / "book" / "_static" / "certainty.png")
    content = {mark: table() for mark, table in certainty.TABLES.items()}
    counts = gaps.write(target / "book" / "_static" / "gaps", root)
    for name in ("certainty", "course"):
        page = target / "book" / f"{name}.md"
        text = gaps.with_links(page.read_text("utf8"), counts)
        for mark, part in content.items():
            text = text.replace(f"<!-- {mark} -->", part)
        page.write_text(text, "utf8")
    for name, figure in pages.page_figures().items():
        (target / "book" / f"{name}.html").write_text(figure._repr_html_(), "utf8")


if __name__ == "__main__":
    stage(*map(Path, sys.argv[1:]))
