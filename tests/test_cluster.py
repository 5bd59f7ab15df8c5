"""Studies on the workers of a Dask scheduler: two workers on this machine, one of which is
killed.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nads_book as nb
import pytest
from nads_book.cli import main
from test_experiments import measured

pytest.importorskip("distributed", reason="Dask is not installed: pip install -e .[cluster]")
PATHS = os.pathsep.join(
    str(Path(__file__).resolve().parents[1] / folder) for folder in (".", "book")
)
STUDY = "random-logreg", "smoke"


@contextlib.contextmanager
def started(*arguments, until):
    """Start a program of Dask, wait for a line of its output, and give the process and the line's
    match.
    """
    command = [sys.executable, "-m", *arguments]
    environment = os.environ | {
        "PYTHONPATH": PATHS,
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "default",
    }
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        found = next(filter(None, (re.search(until, line) for line in process.stderr)), None)
        assert found, f"{arguments} ended before {until}"
        reader = threading.Thread(target=process.stderr.read, daemon=True)
        reader.start()  # or the pipe would fill
        yield process, found
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stderr.close()


@contextlib.contextmanager
def cluster(num_workers):
    """Give the address of a scheduler on 127.0.0.1, and the processes of its workers."""
    options = "--host 127.0.0.1 --port 0 --no-dashboard".split()
    scheduler = ("distributed.cli.dask_scheduler", *options)
    with contextlib.ExitStack() as stack:
        _, found = stack.enter_context(started(*scheduler, until=r"Scheduler at: +(tcp://\S+)"))
        options = "--nthreads 1 --no-nanny --no-dashboard".split()
        worker = ("distributed.cli.dask_worker", found[1], *options)
        workers = [
            stack.enter_context(started(*worker, until="Registered to")) for _ in range(num_workers)
        ]
        yield found[1], [process for process, _ in workers]


@pytest.mark.slow
def test_a_killed_workers_units_run_again_and_give_the_same_numbers(tmp_path):
    out = tmp_path / "r.json"
    with cluster(2) as (address, workers):

        def kill_one():
            while not (out.exists() and nb.Results.load(out).rows):
                time.sleep(0.01)
            workers[0].send_signal(signal.SIGKILL)

        thread = threading.Thread(target=kill_one)
        thread.start()
        results = nb.run_experiment(
            *STUDY, out=out, executor=f"dask:{address}", device="cpu", progress=False
        )
        thread.join(timeout=600)
        assert workers[0].wait(timeout=600) == -signal.SIGKILL and workers[1].poll() is None
    alone = nb.run_experiment(*STUDY, device="cpu", progress=False)
    assert results.complete and repr(measured(results)) == repr(measured(alone))
    assert {row["run"] for row in results.rows} == {results.runs[0]["started"]}


@pytest.mark.parametrize("name", ["dask:", "threads", "dask"])
def test_other_executors_are_named_and_rejected(name, capsys, tmp_path):
    command = ["run", STUDY[0], "--preset", STUDY[1], "--out", str(tmp_path / "r.json")]
    assert main([*command, "--executor", name]) == 2
    assert f"unknown executor {name!r}" in capsys.readouterr().err
