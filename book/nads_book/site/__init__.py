"""The build of the book, from chapters and results to pages: ``python -m nads_book.site`` (``make
book``).

`build` executes the chapters that are due, each by `execution` in a process of its own;
`dependencies` says which are. `stage` writes the pages that do not come from a chapter;
`notebooks`, `mathml` and `html_pages` turn executed notebooks, formulas and Sphinx's HTML into what
a reader sees. `sync` writes the notebooks from the chapters' texts, and `verify` decides the
claims. Nothing imports this package but what builds or tests the book.
"""
