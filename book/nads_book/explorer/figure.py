"""The explorer as a figure: a widget in a live notebook, HTML elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nads_book.explorer.views import PARTS, Page, Source, View, require_drawable
from nads_book.figures.publishing import publishing
from nads_core.directions import NADs

if TYPE_CHECKING:
    from nads_book.explorer.widget import Explorer


def show(
    *parts: str,
    nads: NADs | dict[str, NADs] | None = None,
    **view: Any,
) -> Explorer | Page:
    """Show the explorer, or some parts of it.

    In a notebook with `anywidget` this is a widget: its attributes, such as ``index``, follow what
    the reader does, and can be set. Elsewhere, and in the pages of the book, it is HTML that does
    the same without Python.

    Args:
        parts: any of "direction", "curves", "fourier", "photo"; all by default.
        nads: NADs of your own, or several as label -> NADs, of square single-channel images; by
            default the five architectures that ship with the package.
        view: initial values of ``architecture``, ``second``, ``index``, ``frequency``,
            ``photo``, ``kept``.

    Raises:
        ValueError: for a part, architecture or value that does not exist, or that these NADs do not
            have.
        TypeError: for a value of another name.
    """
    if isinstance(nads, NADs):
        nads = {str(nads.provenance.get("architecture") or "yours"): nads}
    source = Source(nads or {})
    view.setdefault("architecture", next(iter(source.labels)))
    chosen = View(parts or PARTS, **view)
    if "kept" not in view:
        chosen.kept = min(chosen.kept, source.count(chosen.architecture, chosen.second))
    for key, value in vars(chosen).items():
        setattr(chosen, key, require_drawable(key, value, chosen, source))
    if publishing():
        return Page(chosen, source, book=True)
    try:
        from nads_book.explorer.widget import Explorer
    except ImportError:
        return Page(chosen, source)
    return Explorer(chosen, source)
