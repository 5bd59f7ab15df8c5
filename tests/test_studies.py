"""All studies with a results file of their own: units, provenance of rows, resuming, merging, and
their trainer.
"""

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import numpy as np
import pytest
import torch
from conftest import ALONE
from nads_book.cli import main
from nads_book.experiments import (
    Context,
    Study,
    open_results,
    recipe_steps,
    rounded,
    run_study,
)
from nads_book.experiments.evidence import evidence
from nads_book.studies import all_studies, experiment, table

import nads_core as nc

OTHERS = [name for name, kind in all_studies().items() if not kind.has_presets]


class Squares(Study):
    """Squares of some numbers, and of one unit two rows."""

    name = "squares"
    many_rows = True
    computed = ()

    def units(self):
        return [{"number": number} for number in range(4)]

    def facts(self, photos=None):
        return {"power": 2}

    def run(self, unit, context):
        self.computed += (unit["number"],)
        rows = [{"square": unit["number"] ** 2}]
        return rows * 2 if unit["number"] == 3 else rows[0]


@pytest.mark.stored
@pytest.mark.parametrize("name", [name for name in OTHERS if experiment(name).path.exists()])
def test_stored_rows_are_of_units_and_are_written_as_they_were(name, tmp_path):
    study = experiment(name)
    results = open_results(study, study.path)
    results.save(tmp_path / "again.json")
    before, now = (
        json.loads(path.read_text("utf8")) for path in (study.path, tmp_path / "again.json")
    )
    rows = [sorted(map(json.dumps, content.pop("rows"))) for content in (before, now)]
    assert (
        rows[0] == rows[1]
        and before.items() <= (now | {"num_units": before.get("num_units")}).items()
    )
    assert study.choose_precision(results.precisions, torch.device("cpu")) in study.precisions


@pytest.mark.parametrize("name", [*all_studies()])
def test_studies_say_what_they_ask_and_need(name):
    kind = all_studies()[name]
    assert kind.summary and kind.unit_fields
    assert all(experiment(other, "paper") for other in kind.needs)


def test_every_row_names_the_run_that_computed_it(tmp_path):
    study = Squares()
    out = tmp_path / "squares.json"
    run_study(study, out=out, count=2, **ALONE)
    results = run_study(study, out=out, **ALONE)
    assert study.computed == (0, 1, 2, 3) and results.complete and len(results.rows) == 5
    stored = json.loads(out.read_text("utf8"))
    assert stored["num_units"] == 4
    runs = {run["started"]: run for run in stored["runs"]}
    assert [runs[row["run"]]["units"] for row in stored["rows"]] == [2] * 5
    assert len(runs) == 2
    for run in runs.values():
        assert {"device", "commit", "torch"} <= run.keys() and run["mixed_precision"] is False
    before = out.read_bytes()
    assert run_study(study, out=out, **ALONE).rows == results.rows and out.read_bytes() == before


def test_no_precision_and_no_device_is_recorded_that_was_not_used(monkeypatch):
    with pytest.raises(ValueError, match="squares has mixed_precision=False"):
        run_study(Squares(), mixed_precision=True, **ALONE)
    used = []
    monkeypatch.setattr(Squares, "run", lambda self, unit, place: used.append(place.device) or {})
    run_study(Squares(), count=1, **ALONE | {"device": "meta"})
    monkeypatch.setattr(Squares, "on_gpu", False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    run_study(Squares(), count=1, **ALONE | {"device": None})
    with pytest.raises(ValueError, match="squares runs on a CPU only, not on meta"):
        run_study(Squares(), count=1, **ALONE | {"device": "meta"})
    assert [device.type for device in used] == ["meta", "cpu"]


def test_every_row_names_the_machine_that_computed_it(monkeypatch):
    machines = iter([{"device": name, "date": day} for day, name in enumerate("abab")])
    times = []

    def machine(device):
        times.append(datetime.now(UTC).isoformat())
        return next(machines)

    monkeypatch.setattr("nads_book.experiments.executors.machine", machine)
    pool = ThreadPoolExecutor(1)
    monkeypatch.setattr("nads_book.experiments.runner.open_executor", lambda *_: pool)
    results = run_study(Squares(), device="cpu", progress=False)
    runs = {run["started"]: run for run in results.runs}
    assert [runs[row["run"]]["device"] for row in results.rows] == [*"ababb"]
    assert [run["units"] for run in runs.values()] == [2, 2] and max(runs) < min(times)
    assert not any("workers" in run for run in runs.values())


def test_a_failing_unit_leaves_those_before_it(tmp_path, monkeypatch):
    out = tmp_path / "squares.json"
    monkeypatch.setattr(Squares, "run", lambda self, unit, _: {"x": 1 / (2 - unit["number"])})
    with pytest.raises(ZeroDivisionError):
        run_study(Squares(), out=out, **ALONE)
    assert len(json.loads(out.read_text("utf8"))["rows"]) == 2


def test_a_study_waits_for_the_results_that_it_needs(monkeypatch, tmp_path, capsys):
    name, need = "estimator-orders", "fig1-lenet"
    monkeypatch.setenv("NADS_RESULTS", str(tmp_path))
    assert main(["run", name, "--out", str(tmp_path / "r.json"), "--device", "cpu"]) == 2
    assert (
        f"{name} needs the results of {need}" in capsys.readouterr().err
        and not (tmp_path / "r.json").exists()
    )


def test_networks_are_tested_on_other_data_than_they_are_trained_on():
    job = experiment("fig1-logreg", "smoke")
    (_, train), (_, test) = (job.data(job.units()[0], part, Context()) for part in (True, False))
    assert not torch.equal(train[: len(test)], test)


def test_the_trainer_is_that_of_the_library():
    """SGD with momentum, decay and clipping: the same weights as those of `train_network`, but for
    rounding.
    """
    recipe = nc.Recipe(
        epochs=2, batch_size=16, momentum=0.9, weight_decay=1e-3, clip_norm=0.05, learning_rate=0.1
    )
    data = nc.separable_dataset(nc.fourier_direction((0, 1), size=8), 64, noise_std=0.5, seed=0)
    torch.manual_seed(0)
    own = nc.LOGREG.build(1, 8, 2)
    other = copy.deepcopy(own)
    nc.train_network(other, data, recipe=recipe, seed=3, device="cpu", progress=False)
    optimiser = torch.optim.SGD(
        own.parameters(), 1.0, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )
    losses = [*map(float, recipe_steps(own, data, optimiser, recipe, 3))]
    assert len(losses) == recipe.num_steps(64) and losses[-1] < losses[0]
    for mine, theirs in zip(own.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


def test_what_is_kept_is_computed_once(tmp_path):
    calls = []
    context = Context(out=tmp_path / "new" / "rows.json")
    for place in (context, context, Context()):
        assert place.kept("part", lambda: calls.append(0) or torch.ones(2)).tolist() == [1, 1]
    assert len(calls) == 2  # the last context keeps nothing
    assert [path.name for path in context.out.parent.rglob("*.pt")] == ["part.pt"]


def test_numbers_of_any_structure_have_few_digits():
    values = {"a": torch.tensor([[1 / 3, 2 / 3]]), "b": [np.float64(0.012345), 7]}
    assert rounded(values, 2) == {"a": [[0.33, 0.67]], "b": [0.01, 7]}
    assert rounded(values, 2, significant=True) == {"a": [[0.33, 0.67]], "b": [0.012, 7]}


@pytest.mark.stored
def test_a_table_says_size_file_and_commit_of_each_row():
    rows = table("used-nads")
    assert len(rows) == 4 and set(rows["preset"]) == {"narrow"}
    found = evidence(True, rows=rows[rows["network"] == "vgg11"])
    assert (found.size, found.num_seeds, found.num_trainings) == ("narrow", 2, 2)
    assert found.sources == ("book/results/studies/used-nads.json",)
    computed = table("first-step-rates")
    assert set(computed["preset"]) == {"paper"} and computed["commit"].notna().all()
