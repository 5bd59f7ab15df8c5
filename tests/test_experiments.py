"""The sweeps: what they train, and that stopping, killing, splitting and merging lose nothing."""

import dataclasses
import itertools
import json
import signal
import subprocess
import sys
import time

import nads_book as nb
import pytest
from conftest import ROOT
from loky import get_reusable_executor
from nads_book.cli import main
from nads_book.experiments import results_path, run_study
from nads_book.studies import all_studies, experiment, run_experiment
from nads_book.studies.poison_and_flip import load_photos

from nads_core.runtime.provenance import RNG_VERSION

HERE = {"device": "cpu", "progress": False}


def measured(results):
    """What a run must repeat: everything but the time that it took, and the order in which its
    networks ended.
    """
    rows = [
        {key: value for key, value in row.items() if key not in ("seconds", "run")}
        for row in results.rows
    ]
    return sorted(rows, key=str)


@pytest.fixture(scope="module")
def whole():
    return run_experiment("fig1-logreg", "smoke", **HERE)


# Trained networks


@pytest.mark.parametrize(
    "figure",
    [
        name if name == "fig1" else pytest.param(name, marks=pytest.mark.slow)
        for name, kind in all_studies().items()
        if kind.has_presets and name not in ("law", "stage")  # which have no logistic regression
    ],
)
def test_every_figure_runs(figure, monkeypatch, tmp_path):
    if all_studies()[figure].on_photos:
        monkeypatch.setenv("NADS_DATA", str(tmp_path))  # where there are no photos
        monkeypatch.setenv("NADS_DOWNLOAD", "0")
        load_photos.cache_clear()
        get_reusable_executor().shutdown(kill_workers=True)  # processes of the environment before
    job = experiment(f"{figure}-logreg", "smoke")
    results = run_experiment(job.name, "smoke", **HERE)
    load_photos.cache_clear()
    for row, unit in zip(results.rows, job.units(), strict=True):
        assert unit.items() <= row.items() and 0 <= row["test_accuracy"] <= 1
        assert ("iterations" in row) == (figure == "fig2") and ("use" in row) == (figure == "fig7")
    assert results.photos == ("generated images, not photos" if job.on_photos else None)
    assert results.experiment() == job


# How it runs


@pytest.mark.parametrize(
    ("rows", "named"), [([0, 0], "two rows of a unit"), ([5], "rows of another study")]
)
def test_second_rows_and_those_of_another_study_are_rejected_and_kept(
    whole, tmp_path, monkeypatch, rows, named
):
    monkeypatch.setenv("NADS_RESULTS", str(tmp_path))
    out = tmp_path / "fig1-logreg.smoke.json"
    frequencies = {0: whole.rows[0]["frequency"], 5: [5, 5]}
    changed = [whole.rows[0] | {"frequency": frequencies[row]} for row in rows]
    dataclasses.replace(whole, rows=changed).save(out)
    before = out.read_bytes()
    with pytest.raises(ValueError, match=f"fig1-logreg.smoke.json .*{named}"):
        nb.load_results("fig1-logreg", "smoke")
    with pytest.raises(ValueError, match=named):
        run_experiment("fig1-logreg", "smoke", out=out, **HERE)
    assert out.read_bytes() == before


def test_rows_of_a_unit_that_is_retired_stay(whole, tmp_path):
    out = tmp_path / "fig1-logreg.smoke.json"
    retired = whole.rows[0] | {"frequency": [5, 5]}
    dataclasses.replace(whole, rows=[retired, *whole.rows[:2]]).save(out)
    assert run_experiment("fig1-logreg", "smoke", out=out, count=3, **HERE).rows[-1] == retired
    assert retired in nb.Results.load(out).rows


def test_a_time_limit_stops_and_the_next_run_goes_on(whole, tmp_path, capsys, monkeypatch):
    out = tmp_path / "new" / "folder" / "r.json"
    command = ["run", "fig1-logreg", "--preset", "smoke", "--device", "cpu", "--out", str(out)]
    looks = itertools.count(
        step=1e4
    )  # a clock that jumps, so that the limit comes after the same networks everywhere
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: next(looks))
        assert main([*command, "--executor", "sequential", "--time-limit", "3.5e4"]) == 0
    first = nb.Results.load(out)
    assert 0 < len(first.rows) < 6
    assert f"({6 - len(first.rows)} left: the same command resumes)" in capsys.readouterr().out
    assert main([*command, "--count", str(len(first.rows))]) == 0
    assert "(all requested units)" in capsys.readouterr().out
    assert main(command) == 0
    assert "(complete)" in capsys.readouterr().out
    again = nb.Results.load(out)
    assert measured(again) == measured(whole)
    assert again.rows[: len(first.rows)] == first.rows
    stamp = out.stat().st_mtime_ns
    assert main(command) == 0 and out.stat().st_mtime_ns == stamp  # nothing was left to do


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_killing_a_job_loses_one_network_at_most(stop, tmp_path):
    out = tmp_path / "r.json"
    arguments = f"run random-logreg --preset demo --device cpu --workers 2 --out {out}".split()
    command = [sys.executable, "-m", "nads_book", *arguments]
    sizes = [0]
    ended = False
    for pause in (0.05, 0.4):
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 600
        while process.poll() is None and not (
            out.exists() and len(nb.Results.load(out).rows) > sizes[-1]
        ):
            assert time.monotonic() < deadline  # until then each look finds a whole file
            time.sleep(0.01)
        time.sleep(pause)
        process.send_signal(stop)
        _, errors = process.communicate(timeout=600)  # which waits for its workers as well
        assert process.returncode in (-9, 130, 0) and "Traceback" not in errors
        if process.returncode == 130:
            assert "the same command resumes" in errors
        sizes.append(len(nb.Results.load(out).rows))
        assert (
            sizes[-1] > sizes[-2] or ended
        )  # on a busy machine it may have ended before the request
        ended = process.returncode == 0
    assert main(arguments) == 0
    results = nb.Results.load(out)
    assert measured(results) == measured(run_experiment("random-logreg", "demo", **HERE))


def test_results_are_found_from_the_working_folder(whole, tmp_path, monkeypatch):
    monkeypatch.setenv("NADS_RESULTS", str(tmp_path))
    assert nb.load_results("fig1-logreg", "smoke") is None
    whole.save(tmp_path / "fig1-logreg.smoke.json")
    assert nb.load_results("fig1-logreg", "smoke") == whole
    monkeypatch.delenv("NADS_RESULTS")
    for folder in ("book/results", "notebooks"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "notebooks")
    assert results_path("fig1-lenet") == tmp_path / "book" / "results" / "fig1-lenet.json"


def test_bad_requests_are_refused():
    with pytest.raises(ValueError, match="unknown study 'fig9-lenet': choose one of .*fig1-MODEL"):
        experiment("fig9-lenet")
    with pytest.raises(ValueError, match="unknown preset 'large'"):
        experiment("fig1-lenet", "large")
    with pytest.raises(ValueError, match="for resnet18, densenet121, not for"):
        experiment("notes-lenet", "narrow")


# What a file is about


def edited(path, **settings):
    """Change the settings of a results file."""
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"settings": content["settings"] | settings}))


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Copy a results file of Fig. 6 to a folder of its own."""
    monkeypatch.setenv("NADS_RESULTS", str(tmp_path))
    path = tmp_path / "fig6-lenet.json"
    path.write_bytes((ROOT / "book" / "results" / path.name).read_bytes())
    return path


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "null", "{}", "\ufeff{}"])
def test_files_of_something_else_are_refused_by_name(tmp_path, text):
    """Also what is broken, deep, no object, or behind a mark; no run replaces it."""
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="r.json is not a results file"):
        run_experiment("fig1-logreg", "smoke", out=path, **HERE)
    assert path.read_text() == text


def test_a_file_about_other_directions_is_refused_by_name(shelf):
    nads = nb.load_results("fig6-lenet").settings["nads"]
    for change, shown in (
        ({"fingerprint": "0" * 16}, "settings.nads.fingerprint was '0000"),
        ({"version": 99}, "version 99 .*lenet"),
    ):
        edited(shelf, nads=nads | change)
        with pytest.raises(ValueError, match=f"fig6-lenet.json .*{shown}"):
            nb.load_results("fig6-lenet")


def test_a_job_goes_on_with_the_directions_that_it_began_with(tmp_path):
    """Although newer ones ship."""
    job = ("fig6-logreg", "smoke")
    options = {"out": tmp_path / "r.json"} | HERE
    run_study(experiment(*job, 1), count=1, **options)
    assert experiment(*job).nads_version == 2
    results = run_experiment(*job, count=2, **options)
    assert results.settings["nads"]["version"] == 1 and len(results.rows) == 2
    with pytest.raises(ValueError, match="cannot be continued.*nads.version"):
        run_study(experiment(*job), **options)


def test_results_about_photos_are_shown_without_them_and_continued_with_the_same(shelf):
    shelf.unlink()
    job, file = experiment("fig8-lenet", "smoke"), shelf.with_name("fig8-lenet.smoke.json")
    nb.Results(job.facts("CIFAR-10 (JPEG copy)"), [], []).save(file)
    assert nb.load_results("fig8-lenet", "smoke").photos == "CIFAR-10 (JPEG copy)"
    nb.Results(job.facts("other images"), [], []).save(file)
    with pytest.raises(ValueError, match="cannot be continued: settings.photos was 'other images'"):
        run_experiment("fig8-lenet", "smoke", out=file, progress=False)


def test_another_numbers_version_is_shown_but_not_continued(shelf):
    edited(shelf, numbers=RNG_VERSION + 1)
    assert nb.load_results("fig6-lenet").complete
    with pytest.raises(ValueError, match=r"(?s)cannot be continued.*numbers was .*CHANGELOG.md"):
        run_experiment("fig6-lenet", "paper", out=shelf, progress=False)


def test_preset_paper_demands_photos(tmp_path, monkeypatch):
    monkeypatch.setenv("NADS_DATA", str(tmp_path))
    monkeypatch.setenv("NADS_DOWNLOAD", "0")
    with pytest.raises(nb.DatasetNotFoundError, match=r"fig8-lenet at preset paper .*NADS_DATA"):
        run_experiment("fig8-lenet", "paper", progress=False)


# The results that ship


SHIPPED = sorted((ROOT / "book" / "results").glob("*.json"))


@pytest.mark.stored
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_results_belong_to_their_job(path):
    name, _, size = path.stem.partition(".")
    results = nb.load_results(name, size or "paper")
    job = results.experiment()
    assert results_path(results.job, results.preset).name == path.name
    assert results.settings["numbers"] == RNG_VERSION
    assert (results.photos == "CIFAR-10 (JPEG copy)") == job.on_photos
    assert sum(entry["units"] for entry in results.runs) == len(results.rows)
    assert all(entry["commit"] and entry["torch"] and entry["date"] for entry in results.runs)
    assert path.stat().st_size < 1e6
