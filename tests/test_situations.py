"""What a reader of the chapters sees in three situations: everything at hand, no photos, no published directions.

A chapter is executed at `smoke`; what is tested is the text of its cells that reach the page, and of their outputs.
"""

import os
import re
from pathlib import Path

import pytest
from conftest import NEEDS_BOOK

build = pytest.importorskip("build", reason=NEEDS_BOOK)
nbformat = build.nbformat

HIDDEN = {"remove-cell", "remove-output", "injected-parameters"}


def situations(tmp_path_factory):
    """Name the environment of each situation; None where this machine lacks what it needs."""
    empty = str(tmp_path_factory.mktemp("no-photos"))
    photos, reference = os.environ.get("NADS_DATA"), os.environ.get("NADS_REFERENCE")
    return {
        "everything": photos and reference and {"NADS_DATA": photos, "NADS_REFERENCE": reference},
        "no photos": {"NADS_DATA": empty, "NADS_DOWNLOAD": "0", "NADS_REFERENCE": reference or ""},
        "no references": {"NADS_DATA": photos or empty, "NADS_DOWNLOAD": "0", "NADS_REFERENCE": ""},
    }


def shown(notebook):
    """Return the text of an executed notebook that reaches the page: prose, captions, printed and displayed text."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        if HIDDEN & set(cell.metadata.get("tags", [])):
            continue
        figure = cell.metadata.get("mystnb", {})
        parts += [figure.get("figure", {}).get("caption", ""), figure.get("image", {}).get("alt", "")]
        for output in cell.outputs:
            data = output.get("data", {})
            parts.append(output.get("text") or data.get("text/markdown") or data.get("text/html") or "")
    return re.sub(r"\s+", " ", "\n".join(parts))


@pytest.fixture(scope="session")
def reader_sees(tmp_path_factory):
    """Return a function from a chapter, such as "07_poison", and a situation to what its page says."""
    environments, folder = situations(tmp_path_factory), Path(build.ROOT) / "_build" / "test"

    def look(chapter, situation):
        environment = environments[situation]
        if not environment:
            pytest.skip("NADS_DATA and NADS_REFERENCE name the photos and the published directions")
        place = folder / situation.replace(" ", "-")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            build.execute(f"notebooks/{chapter}", place, "smoke")
        return shown(nbformat.read(place / "executed" / "smoke" / f"{chapter}.ipynb", as_version=4))

    return look
