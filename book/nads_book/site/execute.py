"""Execute one chapter with papermill, as `execution` asks: ``NOTEBOOK RECORD PRESET SECONDS
[KERNEL_OPTION ...]``.

RECORD is written: what the kernel and its child processes read. SECONDS is the time that a single
cell may take.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

# The grammar of URIs, by which schemas of notebooks check none, is built for a second otherwise.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

import papermill  # noqa: E402

from nads_book.site.dependencies import results_folder, traced  # noqa: E402


def end_with_parent() -> None:
    """Interrupt this process, which ends its kernel, once the build is gone and its end of the pipe
    is closed.
    """

    def wait() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(20)
        os.kill(os.getpid(), signal.SIGKILL)  # the kernel then ends by itself

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    notebook, record, preset, seconds, *options = sys.argv[1:]
    end_with_parent()
    os.environ |= traced(Path(record), {Path.cwd(), results_folder(Path.cwd())})
    papermill.execute_notebook(
        notebook,
        notebook,
        {"preset": preset},
        execution_timeout=int(seconds),
        progress_bar=False,
        extra_arguments=options,
        request_save_on_cell_execute=preset != "smoke",  # each save writes all cells
    )
