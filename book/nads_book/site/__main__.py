"""Build the book: ``python -m nads_book.site``."""

import sys

from nads_book.site.build import main

sys.exit(main())
