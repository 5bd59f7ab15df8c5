"""Widgets of a notebook that a kernel executes: what it stores, and sliders that call Python."""

import base64
import io
import json
import zlib

import numpy as np
import pytest
import torch

import nads_core as nc

pytest.importorskip("ipywidgets")
pytest.importorskip("anywidget")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
Image = pytest.importorskip("PIL.Image")

SETUP = "import nads_book as nb\nimport nads_core as nc\narchitecture = 'lenet'"


def executed(*sources: str):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources]
    )
    nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3").execute()
    return notebook


def widget_states(notebook) -> dict:
    return notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]


@pytest.mark.slow
def test_an_executed_notebook_holds_the_arrays_of_its_explorers():
    notebook = executed(SETUP, "nb.explorer.show(architecture=architecture)")
    states = [one["state"] for one in widget_states(notebook).values()]
    (packets,) = (state["_packets"] for state in states if "_packets" in state)
    content = zlib.decompress(base64.b64decode(packets["lenet"]["bytes"]))
    count, area = packets["lenet"]["count"], packets["lenet"]["size"] ** 2
    scales = np.frombuffer(content, "<f4", count)
    pixels = np.frombuffer(content, np.int8, count * area, offset=8 * count).reshape(count, area)
    shipped = nc.load_nads("lenet").directions.flatten(1)
    np.testing.assert_allclose(pixels * scales[:, None], shipped, atol=float(scales.max()))
    assert "photos" in packets and len(json.dumps(notebook)) < 2e6


def test_panels_show_what_their_names_say():
    from nads_book.explorer.sliders import draw_panels

    nads, picture = (
        nc.load_nads("lenet"),
        torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(0)),
    )
    png = draw_panels(nads, picture, 5, 1024, 0.5)
    pixels = np.asarray(Image.open(io.BytesIO(png)))[3::6, 3::6].transpose(2, 0, 1) / 255
    direction, rebuilt, poisoned = np.split(pixels, 3, axis=2)
    signed = (nads[5][0] / nads[5].abs().max()).numpy()
    np.testing.assert_allclose(direction[0] - direction[2], signed, atol=0.01)
    np.testing.assert_allclose(rebuilt, picture, atol=0.01)
    expected = nc.poison(picture[None], torch.tensor([0]), nads, 5, 0.5)[0]
    np.testing.assert_allclose(poisoned, expected.clamp(0, 1), atol=0.01)
    black = np.asarray(Image.open(io.BytesIO(draw_panels(nads, picture, 5, 0, 0.5))))[3::6, 3::6]
    assert not black[:, 32:64].any()  # of no NADs, nothing


def test_sliders_stay_in_their_ranges():
    import traitlets
    from nads_book.explorer.sliders import live_sliders

    nads = nc.load_nads("lenet")
    sliders = live_sliders(nads, torch.zeros(3, 32, 32))
    sliders.index, sliders.kept = len(nads) - 1, len(nads)
    for name, value in (
        ("index", len(nads)),
        ("index", -1),
        ("kept", len(nads) + 1),
        ("strength", 0.0),
    ):
        with pytest.raises(traitlets.TraitError, match=name):
            setattr(sliders, name, value)
    assert (sliders.index, sliders.kept, sliders.strength) == (len(nads) - 1, len(nads), 0.5)
