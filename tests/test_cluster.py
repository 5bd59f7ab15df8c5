"""Studies on the workers of a Dask scheduler: two workers on this machine, one of which is
killed.
"""

import os
import signal
import threading
import time

import nads_book as nb
import pytest
from nads_book.cli import main
from test_experiments import measured

distributed = pytest.importorskip(
    "distributed", reason="Dask is missing: pip install -e .[cluster]"
)
STUDY = "random-logreg", "smoke"
QUIET = {"device": "cpu", "progress": False}


@pytest.mark.slow
def test_a_killed_workers_units_run_again_and_give_the_same_numbers(tmp_path):
    out = tmp_path / "r.json"
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:

        def kill_one():
            while not (out.exists() and nb.Results.load(out).rows):
                time.sleep(0.01)
            os.kill(cluster.workers[0].pid, signal.SIGKILL)

        thread = threading.Thread(target=kill_one)
        thread.start()
        address = f"dask:{cluster.scheduler_address}"
        results = nb.run_experiment(*STUDY, out=out, executor=address, **QUIET)
        thread.join(timeout=600)
        assert not thread.is_alive()
    alone = nb.run_experiment(*STUDY, **QUIET)
    assert results.complete and repr(measured(results)) == repr(measured(alone))
    assert {row["run"] for row in results.rows} == {results.runs[0]["started"]}


@pytest.mark.parametrize("name", ["dask:", "threads", "dask"])
def test_other_executors_are_named_and_rejected(name, capsys, tmp_path):
    command = ["run", STUDY[0], "--preset", STUDY[1], "--out", str(tmp_path / "r.json")]
    assert main([*command, "--executor", name]) == 2
    assert f"unknown executor {name!r}" in capsys.readouterr().err
