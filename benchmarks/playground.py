"""How long a reader of the playground waits, in Chromium from a file:
``python benchmarks/playground.py``.

Measured from the first paint of the page, for the default network and 1, 2 and 4 workers: until the
first picture of the map, until the first NAD is reproducible (its certainty exceeds .5), until all 400
networks are drawn, and for one training. The same with a main thread that is four times slower
(Chromium slows no worker down). The longest task of the main thread is stored, where one is longer
than 50 ms. It needs a Chromium and playwright, and an idle machine; it writes
``results/playground.json`` in about two minutes.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from nads_book.benchmarks.stored import write_result
from nads_book.explorer import Playground
from playwright.sync_api import Browser, sync_playwright

REPETITIONS = 3
GOALS = {"picture": 0.5, "stable": 3.0, "training": 5.0}  # seconds
FIGURE = "document.querySelector('nad-playground').figure"
WATCH = """
globalThis.seen = {tasks: []};
new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map((e) => e.duration)))
  .observe({type: "longtask", buffered: true});
const look = () => {
  const side = document.querySelector("nad-playground")?.figure?.sides[0];
  const found = side?.ensemble?.found;
  if (found) seen.picture ??= performance.now();
  if (found?.nads[0].certainty > 0.5) seen.stable ??= performance.now();
  if (found?.networks >= 400) seen.all ??= performance.now();
  requestAnimationFrame(look);
};
look();
"""


def measure(browser: Browser, page_file: Path, workers: int, slowdown: int) -> dict[str, float]:
    """Return the seconds of one visit."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    cores = f"Object.defineProperty(navigator, 'hardwareConcurrency', {{get: () => {workers}}});"
    context.add_init_script(cores + WATCH)
    page = context.new_page()
    if slowdown > 1:
        session = context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
    page.goto(page_file.as_uri())
    page.wait_for_function("() => seen.all", timeout=120_000)
    map_of_a = page.get_by_role("grid", name="Energies of all waves, network A")
    map_of_a.focus()
    begin = page.evaluate("performance.now()")
    page.keyboard.press("Enter")
    trained = f"() => {FIGURE}.sides[0].trained.size && [...{FIGURE}.sides[0].trained.values()]"
    page.wait_for_function(f"{trained}.every((one) => !one.running)", timeout=120_000)
    end = page.evaluate("performance.now()")
    seen = page.evaluate("seen")
    paint = page.evaluate("performance.getEntriesByName('first-paint')[0].startTime")
    context.close()
    times = {name: (seen[name] - paint) / 1e3 for name in ("picture", "stable", "all")}
    longest = max(seen["tasks"], default=0.0)
    return times | {"training": (end - begin) / 1e3, "longest_task_ms": longest}


def page_with_playground(folder: Path) -> Path:
    """Write a page with the whole figure, which opens without a server."""
    page = folder / "playground.html"
    body = Playground(small=False, book=False)._repr_html_()
    page.write_text(f"<!doctype html><meta charset=utf-8><title>Playground</title>{body}", "utf8")
    return page


def main() -> None:
    """Measure, write and print the results."""
    chromium = os.environ.get("NADS_CHROMIUM") or shutil.which("chromium")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = page_with_playground(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for workers in (1, 2, 4):
            for slowdown in (1, 4):
                visits = [measure(browser, page, workers, slowdown) for _ in range(REPETITIONS)]
                row: dict[str, Any] = {"workers": workers, "slowdown": slowdown}
                for name in visits[0]:
                    row[name] = round(statistics.median(visit[name] for visit in visits), 3)
                rows.append(row)
                print(row, flush=True)
        browser.close()
    write_result("playground", {"goals_seconds": GOALS, "rows": rows})


if __name__ == "__main__":
    main()
