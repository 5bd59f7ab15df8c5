"""The queue of long jobs."""

import pytest

import nads_core as nc
from nads_core import pending
from nads_core.__main__ import main
from nads_core.experiments import experiment
from nads_core.pending import QUEUE, Pending

SMALL = (Pending("fig1-logreg", "smoke", 2), Pending("fig2-logreg", "smoke", 1), Pending("fig1-logreg", "smoke"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NADS_RESULTS", str(tmp_path))
    monkeypatch.setattr(pending, "QUEUE", SMALL)
    for function in (pending.estimates, pending.run_pending):
        monkeypatch.setattr(function, "__defaults__", (SMALL, *(function.__defaults__ or ())[1:]))
    return tmp_path


def measured(results):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in results.rows]


def test_the_queue_names_jobs_that_there_are():
    for part in QUEUE:
        assert part.job.name == part.name and 0 < part.wanted <= len(part.job.units)
        assert 0 <= part.left <= part.wanted


def test_a_dry_run_measures_and_writes_nothing(folder, capsys):
    assert main(["run", "--pending", "--dry-run", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == [part.name for part in SMALL]
    assert ["2 of   2", "1 of   1", "4 of   6"] == [
        line.split("smoke")[1].split("networks")[0].strip() for line in lines[:3]
    ]
    assert lines[3].startswith("at most") and not list(folder.iterdir())


def test_the_queue_is_worked_off_in_order_and_goes_on(folder, capsys):
    assert main(["run", "--pending", "--device", "cpu"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [part.name for part in SMALL]
    for part in SMALL:
        assert part.left == 0
    whole = nc.Results.load(folder / "fig1-logreg.smoke.json")
    assert whole.complete and measured(whole) == measured(
        nc.run_experiment("fig1-logreg", "smoke", device="cpu", progress=False)
    )
    assert len(nc.Results.load(folder / "fig2-logreg.smoke.json").rows) == 1
    assert main(["run", "--pending", "--device", "cpu"]) == 0 and not capsys.readouterr().out


def test_a_time_limit_of_nothing_starts_nothing(folder):
    assert not list(pending.run_pending(time_limit=0, device="cpu")) and not list(folder.iterdir())


@pytest.mark.parametrize("options", [["fig1-lenet"], ["--preset", "demo"], ["--count", "3"], ["--out", "x.json"]])
def test_what_the_queue_says_itself_is_refused(folder, capsys, options):
    assert main(["run", "--pending", *options]) == 2
    assert "leave" in capsys.readouterr().err


def test_a_run_without_a_job_is_refused(capsys):
    assert main(["run"]) == 2 and "name a job such as fig1-lenet" in capsys.readouterr().err
    assert main(["run", "fig1-lenet", "--dry-run"]) == 2 and "belongs to --pending" in capsys.readouterr().err


def test_the_laptop_size_is_a_stratified_beginning_and_another_seed():
    job = experiment("fig1-vgg11", "laptop")
    assert [tuple(unit["frequency"]) for unit in job.units] == nc.waves.stratified_frequencies("vgg11")
    seeds = [{unit["seed"] for unit in experiment("fig1-vgg11", preset).units} for preset in ("laptop", "paper")]
    assert not seeds[0] & seeds[1]
    assert job.settings()["stop_perfect"] and "stop_perfect" not in experiment("fig1-vgg11", "paper").settings()


def test_a_job_keeps_the_precision_that_it_began_with(monkeypatch):
    job = experiment("fig1-logreg", "laptop")
    results = nc.Results(job.name, "laptop", job.settings(), len(job.units), [], [])
    for rounded_takes in (0.5, 2.0):
        monkeypatch.setattr(
            nc.experiments,
            "seconds_per_step",
            lambda *_, mixed_precision, s=rounded_takes: s if mixed_precision else 1.0,
        )
        assert nc.experiments._faster_in_bfloat16(job, results) == (rounded_takes < 1)
    results.provenance.append({"mixed_precision": True})
    assert nc.experiments._faster_in_bfloat16(job, results)
