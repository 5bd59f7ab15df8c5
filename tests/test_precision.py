"""The precision of trainings, and all studies that are pending."""

import nads_book as nb
import pytest
import torch
from conftest import ALONE
from nads_book.cli import main
from nads_book.studies import experiment, trainings


def test_the_laptop_size_is_a_stratified_beginning():
    units = experiment("fig1-vgg11", "laptop").units()
    waves = nb.waves.stratified_frequencies("vgg11")
    assert [tuple(unit["frequency"]) for unit in units] == waves


def test_a_job_keeps_the_precision_that_it_began_with(monkeypatch, tmp_path):
    """Also where it was killed in its first network, and asked for nothing the second time."""
    used = []

    def train(factory, number, train, test, config, **options):
        used.append(config.mixed_precision)
        raise KeyboardInterrupt

    def run(name, rounded):
        options = {"out": tmp_path / name, "mixed_precision": rounded}
        nb.run_experiment("fig1-logreg", "laptop", **options, **ALONE)

    monkeypatch.setattr(trainings, "train_new", train)
    for name, rounded in (("a.json", True), ("a.json", None), ("b.json", None)):
        with pytest.raises(KeyboardInterrupt, match=f"kept in .*{name}"):
            run(name, rounded)
        assert len(nb.Results.load(tmp_path / name).runs) == 1
    assert used == [True, True, False]
    with pytest.raises(ValueError, match="count"):
        nb.run_experiment("fig1-logreg", "smoke", count=-1, progress=False)


def test_what_earlier_releases_did_not_say_is_float32_on_a_cpu_and_unknown_on_a_gpu():
    def of(**run):
        return nb.Results({}, [], [run]).precisions

    assert of(device="2 CPU threads", units=1) == {False}
    assert of(device="NVIDIA H200", units=1) == set()
    assert of(device="NVIDIA H200", units=1, mixed_precision=None) == set()
    assert of(device="NVIDIA H200", units=1, mixed_precision=True) == {True}


@pytest.mark.parametrize(
    ("name", "preset", "rounded"),
    [
        ("fig1-lenet", "laptop", False),
        ("fig1-vgg11", "laptop", True),
        ("fig8-resnet18", "narrow", True),
        ("fig1-vgg11", "paper", False),
        ("repair", "paper", False),
    ],
)
def test_precision_follows_from_architecture_and_preset(name, preset, rounded):
    assert experiment(name, preset).choose_precision(set(), torch.device("cpu")) == rounded


def test_the_list_says_how_much_is_stored(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NADS_RESULTS", str(tmp_path))
    monkeypatch.setattr("nads_book.cli.run.all_studies", dict)
    for name, count in (("fig1-logreg", 2), ("fig2-logreg", 6)):
        nb.run_experiment(name, "smoke", count=count, out=tmp_path / f"{name}.smoke.json", **ALONE)
    assert main(["run", "--list"]) == 0
    assert [line.split()[:5] for line in capsys.readouterr().out.splitlines()] == [
        ["fig1-logreg", "smoke", "2", "of", "6"],
        ["fig2-logreg", "smoke", "6", "of", "6"],
    ]


@pytest.mark.parametrize("wrong", [[], ["fig1-logreg", "--list"], ["--list", "--count", "3"]])
def test_a_run_needs_one_thing_to_do(wrong, capsys):
    assert main(["run", *wrong]) == 2
    assert "error" in capsys.readouterr().err
