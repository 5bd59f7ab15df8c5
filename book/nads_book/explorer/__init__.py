"""The interactive explorer of NADs, shown by a live notebook or by a static page.

The subpackage holds its program (`sources/`: JavaScript and a style sheet, which
`tools/bundle_js.py` bundles), the arrays that it draws, packed for a browser, the pictures that it
offers, and `show`. It measures nothing; static figures are in `figures`.
"""

from nads_book.explorer.changes import Changes
from nads_book.explorer.data import load_pictures
from nads_book.explorer.gallery import AtlasGallery, Stack
from nads_book.explorer.playground import Playground
from nads_book.explorer.views import Page, show, write_pages_data
