"""Build the book: ``python -m nads_book.site``."""

from nads_book.site.build import main

if __name__ == "__main__":
    main()
