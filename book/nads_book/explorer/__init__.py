"""The interactive explorer of NADs, shown by a live notebook or by a static page.

Here are its program (`sources/`: JavaScript and a style sheet, joined into one module), the arrays it draws, packed for
a browser, the pictures it offers, and `show`. What is drawn is computed and measured in the rooms below; figures that
stand still are in `figures`.
"""

from nads_book.explorer.guess import NETWORKS, Guess, guess_data
from nads_book.explorer.pictures import load_pictures
from nads_book.explorer.views import PARTS, Page, Source, View, show, write_pages_data
from nads_book.explorer.wall import Wall, pack_atlas

__all__ = [
    "NETWORKS", "PARTS", "Guess", "Page", "Source", "View", "Wall", "guess_data", "load_pictures", "pack_atlas", "show",
    "write_pages_data",
]  # fmt: skip
