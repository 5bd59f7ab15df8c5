"""Chapters in a real JupyterLab: what a reader moves changes the picture."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from conftest import PATHS, ROOT

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
    """Start JupyterLab in a folder with the explorer's chapter at smoke; yield its address."""
    folder = tmp_path_factory.mktemp("lab")
    (path,) = (ROOT / "notebooks").glob("*_explorer.ipynb")
    notebook = nbformat.read(path, as_version=4)
    (parameters,) = (c for c in notebook.cells if "parameters" in c.metadata.get("tags", []))
    parameters.source += '\npreset = "smoke"'
    nbformat.write(notebook, folder / "explorer.ipynb")
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
            env=os.environ | PATHS | {name: str(value) for name, value in variables.items()},
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


@pytest.mark.slow
def test_the_explorer_and_a_slider_move_their_pictures(lab, browser):
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page, troubles = context.new_page(), []
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(f"{lab}/lab/tree/explorer.ipynb?reset")
    page.wait_for_function(IDLE)
    page.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')")

    # The explorer computes in the browser.
    explorer = page.locator("nad-explorer").first
    explorer.scroll_into_view_if_needed()  # it begins when somebody looks
    pixels = explorer.locator("canvas[aria-label^='NAD 12 of LeNet, in pixels']")
    pixels.wait_for()
    before = pixels.evaluate("c => c.toDataURL()")
    slider = explorer.get_by_role("slider", name="NAD", exact=True).first
    slider.press("ArrowRight")
    after = explorer.locator("canvas[aria-label^='NAD 13 of LeNet, in pixels']")
    after.wait_for()
    assert after.evaluate("c => c.toDataURL()") != before

    # The slider calls Python, which draws the picture.
    picture = page.locator(".jp-OutputArea img.widget-image")
    page.locator(".widget-slider [role=slider]").press("ArrowRight")
    page.wait_for_function("(e) => e.naturalWidth === 32", arg=picture.element_handle())
    first = picture.get_attribute("src")
    page.locator(".widget-slider [role=slider]").press("ArrowRight")
    page.wait_for_function("([e, src]) => e.src !== src", arg=[picture.element_handle(), first])
    context.close()
    assert not troubles
