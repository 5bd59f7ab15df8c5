"""Execute one chapter with papermill: ``-m nads_book.site.execute SOURCE TARGET PRESET SECONDS [OPTION ...]``.

SECONDS is the time that a single cell may take.
"""

import sys

import papermill

if __name__ == "__main__":
    source, target, preset, seconds, *options = sys.argv[1:]
    papermill.execute_notebook(
        source, target, {"preset": preset},
        execution_timeout=int(seconds), progress_bar=False, extra_arguments=options,
        request_save_on_cell_execute=preset != "smoke",  # each save writes all cells; at smoke they take no longer
    )  # fmt: skip
