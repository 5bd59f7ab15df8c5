"""The command line: ``python -m nads_core``."""

import runpy

if __name__ == "__main__":
    runpy.run_module("nads_book", run_name="__main__")
