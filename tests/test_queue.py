"""The queue of long jobs."""

import re
from pathlib import Path

import nads_book as nb
import pytest
import torch
import train_queue as queue
from nads_book.cli import main as book_main
from nads_book.experiments import runner
from nads_book.experiments.jobs import experiment
from train_queue import QueuedJob, load_queue, main

ROOT = Path(__file__).resolve().parent.parent
SMALL = (QueuedJob("fig1-logreg", "smoke", 2), QueuedJob("fig2-logreg", "smoke", 1), QueuedJob("fig1-logreg", "smoke"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NADS_RESULTS", str(tmp_path))
    monkeypatch.setattr(queue, "load_queue", lambda: SMALL)
    return tmp_path


def measured(results):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in results.rows]


def test_the_queue_names_jobs_that_there_are():
    for part in load_queue():
        assert part.job.name == part.name and 0 < part.wanted <= len(part.job.units)
        assert 0 <= part.missing <= part.wanted


def test_a_dry_run_measures_and_writes_nothing(folder, capsys):
    assert main(["--dry-run", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == [part.name for part in SMALL]
    assert ["2 of   2", "1 of   1", "4 of   6"] == [
        line.split("smoke")[1].split("networks")[0].strip() for line in lines[:3]
    ]
    assert lines[3].startswith("about") and not list(folder.iterdir())


def test_the_queue_is_worked_off_in_order_and_goes_on(folder, capsys):
    assert main(["--device", "cpu"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [part.name for part in SMALL]
    for part in SMALL:
        assert part.missing == 0
    whole = nb.Results.load(folder / "fig1-logreg.smoke.json")
    assert whole.complete and measured(whole) == measured(
        nb.run_experiment("fig1-logreg", "smoke", device="cpu", progress=False)
    )
    assert len(nb.Results.load(folder / "fig2-logreg.smoke.json").rows) == 1
    assert main(["--device", "cpu"]) == 0 and not capsys.readouterr().out


def test_the_queue_takes_photos_and_workers_as_a_single_job_does(folder, capsys, monkeypatch):
    taken = {}
    monkeypatch.setattr(queue, "run_experiment", lambda *_, **options: taken.update(options))
    assert main(["--device", "cpu", "--root", "photos", "--workers", "1"]) == 1
    assert taken["root"] == Path("photos") and taken["workers"] == 1
    assert book_main(["run", "fig1-logreg", "--root", "photos"]) == 2 and "leave --root out" in capsys.readouterr().err


def test_a_dry_run_minds_how_many_are_trained_at_once(monkeypatch):
    monkeypatch.setattr(queue, "seconds_per_step", lambda *_, **__: 1.0)
    jobs = (QueuedJob("fig1-logreg", "smoke"),)
    (_, missing, alone), (_, _, by_three) = (next(queue.estimates(jobs, workers=workers)) for workers in (1, 3))
    assert missing == 6 and alone == pytest.approx(3 * by_three)


def test_a_time_limit_of_nothing_starts_nothing(folder):
    assert not list(queue.run_queue(time_limit=0, device="cpu")) and not list(folder.iterdir())


@pytest.mark.parametrize(
    "options", [["fig1-lenet"], ["--preset", "demo"], ["--count", "3"], ["--out", "x.json"], ["--shard", "1/2"]]
)
def test_options_of_a_single_job_are_no_options_of_the_queue(folder, options):
    with pytest.raises(SystemExit, match="2"):
        main([*options])
    assert main(["--dry-run", "--time-limit", "60"]) == 2


def test_a_run_needs_a_job():
    with pytest.raises(SystemExit, match="2"):
        book_main(["run"])


def test_the_laptop_size_is_a_stratified_beginning_and_another_seed():
    job = experiment("fig1-vgg11", "laptop")
    assert [tuple(unit["frequency"]) for unit in job.units] == nb.waves.stratified_frequencies("vgg11")
    seeds = [{unit["seed"] for unit in experiment("fig1-vgg11", preset).units} for preset in ("laptop", "paper")]
    assert not seeds[0] & seeds[1]
    assert job.settings()["stop_perfect"] and "stop_perfect" not in experiment("fig1-vgg11", "paper").settings()


def test_a_job_keeps_the_precision_that_it_began_with(monkeypatch, tmp_path):
    """Also where it was killed in its first network, and asked for nothing the second time."""
    used = []

    def train(*_, mixed_precision, **__):
        used.append(mixed_precision)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "train_networks", train)
    for name, rounded in (("a.json", True), ("a.json", None), ("b.json", None)):
        with pytest.raises(KeyboardInterrupt):
            nb.run_experiment(
                "fig1-logreg", "laptop", out=tmp_path / name, device="cpu", mixed_precision=rounded, progress=False
            )
    with pytest.raises(ValueError, match="began with mixed_precision=True"):
        nb.run_experiment(
            "fig1-logreg", "laptop", out=tmp_path / "a.json", device="cpu", mixed_precision=False, progress=False
        )
    with pytest.raises(ValueError, match="count"):
        nb.run_experiment("fig1-logreg", "smoke", count=-1, progress=False)
    assert used == [True, True, False]
    parts = [nb.Results.load(tmp_path / name) for name in ("a.json", "b.json")]
    assert [len(part.provenance) for part in parts] == [1, 1]
    with pytest.raises(ValueError, match="bfloat16"):
        nb.merge_results(parts)


@pytest.mark.parametrize("first", [True, False])
def test_a_requested_precision_is_kept(first, tmp_path):
    """A job begun in bfloat16 on purpose, or on a GPU, is not mixed with float32 when resumed elsewhere."""
    options = dict(out=tmp_path / "r.json", device="cpu", progress=False)
    nb.run_experiment("fig1-logreg", "smoke", count=1, mixed_precision=first, **options)
    job, stored = experiment("fig1-logreg", "smoke"), nb.Results.load(options["out"])
    assert runner.choose_precision(job, stored, torch.device("cpu")) == first
    results = nb.run_experiment("fig1-logreg", "smoke", count=2, **options)
    assert [run["mixed_precision"] for run in results.provenance] == [first] * 2 and results.precisions == {first}
    with pytest.raises(ValueError, match=f"began with mixed_precision={first}"):
        nb.run_experiment("fig1-logreg", "smoke", mixed_precision=not first, **options)


def test_what_earlier_releases_did_not_say_is_float32_on_a_cpu_and_unknown_on_a_gpu():
    of = lambda **run: nb.Results("fig1-logreg", "paper", {}, 260, [], [run]).precisions  # noqa: E731
    assert of(device="2 CPU threads", networks=1) == {False} and of(device="NVIDIA H200", networks=1) == set()
    assert of(device="NVIDIA H200", networks=1, mixed_precision=True) == {True}


@pytest.mark.parametrize(
    ("name", "preset", "rounded"),
    [
        ("fig1-logreg", "laptop", False), ("fig1-lenet", "laptop", False), ("fig1-vgg11", "laptop", True),
        ("fig8-resnet18", "narrow", True), ("fig1-densenet121", "narrow", True), ("fig1-vgg11", "paper", False),
    ],
)  # fmt: skip
def test_precision_follows_from_architecture_and_preset(name, preset, rounded):
    assert runner.choose_precision(experiment(name, preset), None, torch.device("cpu")) == rounded


def test_a_part_without_its_photos_is_left_out_and_the_next_begins(folder, capsys, monkeypatch):
    monkeypatch.setenv("NADS_DATA", str(folder / "empty"))
    monkeypatch.setenv("NADS_DOWNLOAD", "0")
    jobs = (QueuedJob("fig8-logreg", "laptop"), QueuedJob("fig1-logreg", "smoke", 1))
    monkeypatch.setattr(queue, "load_queue", lambda: jobs)
    assert main(["--device", "cpu"]) == 1
    output = capsys.readouterr().out
    assert "skipped: fig8-logreg at preset laptop needs the photos" in output and "1 of 6 networks" in output


@pytest.mark.parametrize("preset", ["laptop", "narrow"])
def test_what_the_queue_trains_in_small_is_loaded_by_a_chapter(preset):
    texts = "".join(path.read_text("utf8") for path in (ROOT / "book" / "chapters").glob("*.md"))
    shown = set(re.findall(rf'load_results\(f?"(\w+)-[^"]*", "{preset}"\)', texts))
    assert {part.name.partition("-")[0] for part in load_queue() if part.preset == preset} <= shown
