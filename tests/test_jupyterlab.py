"""Chapters in a real JupyterLab: what a reader moves changes the picture, also while dragged."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from conftest import ROOT

SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},  # all cells are in the document
}
IDLE = (
    "globalThis.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
)
PATIENCE = 300_000  # milliseconds, for a busy machine


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Start JupyterLab in a folder with chapters 02 and 15 at smoke; yield its address."""
    folder = tmp_path_factory.mktemp("lab")
    for title in ("nads_in_one_page", "explorer"):
        (path,) = (ROOT / "notebooks").glob(f"*_{title}.ipynb")
        notebook = nbformat.read(path, as_version=4)
        (parameters,) = (
            cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])
        )
        parameters.source += '\npreset = "smoke"'
        nbformat.write(notebook, folder / f"{title}.ipynb")
    for name, values in SETTINGS.items():
        file = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {
        "HOME": folder,
        "JUPYTERLAB_SETTINGS_DIR": folder / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
        "OMP_NUM_THREADS": 1,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'book'}",
    }
    options = f"--no-browser --allow-root --expose-app-in-browser --port={port}".split()
    options += [
        "--IdentityProvider.token=",
        "--ServerApp.port_retries=0",
        f"--notebook-dir={folder}",
    ]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            env=os.environ | {name: str(value) for name, value in variables.items()},
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + PATIENCE / 1000
    try:
        while True:
            try:
                urllib.request.urlopen(f"{address}/api")
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < deadline, (
                    folder / "log"
                ).read_text()
                time.sleep(0.5)
        yield address
    finally:
        server.terminate()  # and its kernels
        server.wait(60)


@pytest.fixture
def opened(lab, browser):
    """Give a function that opens a notebook and runs its cells; the page may throw no error."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    troubles = []

    def run_all(name):
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(f"{lab}/lab/tree/{name}.ipynb?reset")
        page.wait_for_function(IDLE)
        page.evaluate(
            "void jupyterapp.commands.execute('notebook:run-all-cells')"
        )  # void: do not wait for the end
        return page

    yield run_all
    context.close()
    assert not troubles


def drag(page, slider, share):
    """Press the mouse on a slider's handle and move it to a share of the width; do not let go."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    value, low, high = (
        float(slider.evaluate(f"e => e.{name}")) for name in ("value", "min", "max")
    )
    y = box["y"] + box["height"] / 2
    handle = 16  # pixels that the handle takes from the way
    page.mouse.move(
        box["x"] + handle / 2 + (box["width"] - handle) * (value - low) / (high - low), y
    )
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * share, y, steps=8)


@pytest.mark.slow
def test_adding_networks_changes_the_directions(opened):
    page = opened("nads_in_one_page")
    slider = page.get_by_role("slider", name="Number of random networks")
    picture = page.locator("nad-stack canvas").first
    seen = []
    look = "c => [c.getAttribute('aria-label'), c.toDataURL()]"
    slider.wait_for()
    seen.append(picture.evaluate(look))
    slider.press("ArrowRight")
    seen.append(picture.evaluate(look))
    drag(page, slider, 0.99)
    seen.append(picture.evaluate(look))  # the button is still down
    page.mouse.up()
    labels, pixels = zip(*seen, strict=True)
    assert len(set(labels)) == len(set(pixels)) == 3 and all(
        label.startswith("direction 0 from") for label in labels
    )


@pytest.mark.slow
def test_the_explorer_and_the_sliders_move_their_pictures(opened):
    page = opened("explorer")

    # The explorer computes in the browser.
    explorer = (
        page.locator(".jp-OutputArea")
        .filter(has=page.get_by_role("group", name="NAD explorer"))
        .first
    )
    pixels = explorer.locator("canvas[aria-label^='NAD 12 of LeNet, in pixels']")
    pixels.wait_for()
    before = pixels.evaluate("c => c.toDataURL()")
    slider = explorer.get_by_role("slider", name="NAD", exact=True).first
    slider.press("ArrowRight")
    after = explorer.locator("canvas[aria-label^='NAD 13 of LeNet, in pixels']")
    after.wait_for()
    assert after.evaluate("c => c.toDataURL()") != before
    drag(page, slider, 0.6)
    explorer.locator("canvas[aria-label^='NAD 13 of LeNet, in pixels']").wait_for(state="detached")
    page.mouse.up()
    page.get_by_role("link", name="LeNet beside ResNet-18").click()
    explorer.locator("canvas[aria-label^='NAD 12 of ResNet-18, in pixels']").wait_for()

    # The sliders call Python, which draws the picture.
    sliders = page.locator(".nad-sliders")
    picture = sliders.get_by_role("img")
    source = "e => fetch(e.src).then(r => r.arrayBuffer()).then(b => [...new Uint8Array(b)].join())"

    def wait(alt):
        sliders.get_by_role("img", name=alt).wait_for()
        return picture.evaluate(source)

    first = wait("NAD 12, ")
    for name in ("NAD", "NADs kept", "strength ε"):
        control = sliders.get_by_role("slider", name=name, exact=True)
        assert control.bounding_box()["width"] > 400
    index = sliders.get_by_role("slider", name="NAD", exact=True)
    index.press("ArrowRight")
    second = wait("NAD 13, ")
    drag(page, index, 0.5)
    sliders.get_by_role("img", name="NAD 13, ").wait_for(state="detached")
    third = picture.evaluate(source)  # the button is still down
    page.mouse.up()
    assert len({first, second, third}) == 3
