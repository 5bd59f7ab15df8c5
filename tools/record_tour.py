"""Record the five bets of the playground, 1280 and 375 px wide:
``python tools/record_tour.py FOLDER``.

It writes a picture of each question and each answer, and both sequences as an animated WebP. It
needs playwright and a Chromium (on the PATH, or NADS_CHROMIUM), and takes about half a minute.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from nads_book.explorer import Playground
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

SIZES = ((1280, 720), (375, 812))
ANSWERS = (0, 2, 1, 2, 0)  # one of each question; all of them win
FIGURE = "document.querySelector('nad-playground').figure"
DRAWN = f"() => {FIGURE}?.sides[0].ensemble?.found?.networks >= 400"
HEAD = "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"


def record(browser: Browser, page_file: Path, folder: Path, width: int, height: int) -> None:
    """Take the tour in a window of this size, and write its pictures."""
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(page_file.as_uri())
    page.wait_for_function(DRAWN)
    frames = []

    def shoot(name: str) -> None:
        page.evaluate(f"{FIGURE}.host.scrollIntoView()")
        path = folder / f"{width}-{name}.png"
        page.screenshot(path=path)
        frames.append(Image.open(path).convert("RGB"))

    shoot("0-start")
    page.get_by_role("button", name="Guided: five bets").click()
    for step, answer in enumerate(ANSWERS, start=1):
        shoot(f"{step}-question")
        page.locator("nad-playground .tour .chip").nth(answer).click()
        page.wait_for_function(f"() => {FIGURE}.outcome", timeout=120_000)
        shoot(f"{step}-answer")
        if step < len(ANSWERS):
            page.get_by_role("button", name="Next bet").click()
    options = {"save_all": True, "append_images": frames[1:], "duration": 2500, "loop": 0}
    frames[0].save(folder / f"tour-{width}.webp", quality=60, **options)
    page.close()


def main() -> None:
    """Write the page and record both tours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "playground.html"
    page.write_text(HEAD + Playground(small=False, book=False)._repr_html_(), "utf8")
    chromium = os.environ.get("NADS_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width, height in SIZES:
            record(browser, page, folder, width, height)
        browser.close()


if __name__ == "__main__":
    main()
