"""The interactive explorer of NADs: one ES module, shown by a live notebook or by a static page."""

from nads_core.explorer.pictures import load_pictures
from nads_core.explorer.views import PARTS, Page, show, write_pages_data

__all__ = ["PARTS", "Page", "load_pictures", "show", "write_pages_data"]
