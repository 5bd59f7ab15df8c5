"""The book's command line: ``python -m nads_book``."""

import sys

from nads_book.cli import console

if __name__ == "__main__":
    sys.exit(console())
