"""Old names, forwarded for one release: every name of version 0.2 resolves and warns, and an old script runs."""

import importlib
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import nads_book as nb
import pytest

import nads_core as nc
from nads_core import _moved

ROOT = Path(__file__).resolve().parent.parent
NAMES = """
    ARCHITECTURES DENSENET121 LENET LOGREG RESNET18 VGG11 Architecture NADs compute_nads forecast load_nads
    Dipole MixedDerivative PointGradient SmoothedGradient fourier_basis fourier_direction spectrum SeparableDatasets
    separable_dataset DatasetNotFoundError ImageSet load_folder load_images normalize carriers flip poison
    ClassDifferences class_differences CIFAR10_RECIPE SEPARABLE_RECIPE Recipe TrainingResult TrainingState
    TrainingTimeout accuracy accuracy_interval changed_predictions difference_interval predicted_classes train_network
    train_networks Experiment Results experiment grid_frequencies load_results merge_results run_experiment
    choose_preset readable atlas bench checks costs deep_linear errata explorer frequency_maps lemma2 pooling prediction
    published readout regression waves figures evidence machinery
""".split()
SCRIPT = """
import nads_core as nc
from nads_core import figures
from nads_core.evidence.waves import predicted_energies
from nads_core.machinery.numbers import readable
from nads_core.machinery.seeds import seed_sequence
from nads_core.networks.crew import Crew
from nads_core.directions.likeness import Likeness
from nads_core.theory.checks import Check

results = nc.load_results("fig1-lenet")
assert len(nc.grid_frequencies()) == 130 and readable(16.0) == "16" and len(predicted_energies("lenet")) == 130
assert callable(figures.plot_directions) and nc.published.fourier_accuracies("lenet")[0, 0] > 0.5
job = nc.experiment("fig1-lenet", "smoke")
print(nc.choose_preset("smoke"), job.name, len(results.rows))
"""


def warned(call):
    """Return what a call returns, and the messages of its deprecation warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = call()
    return value, [str(warning.message) for warning in caught if warning.category is DeprecationWarning]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_resolves_and_warns_where_it_moved(name):
    value, messages = warned(lambda: getattr(nc, name))
    assert value is not None
    moved = f"nads_core.{name}" in _moved.TABLES["names"]
    assert [message for message in messages if f"nads_core.{name} moved to " in message] or not moved
    if name in nb.__all__:
        assert value is getattr(nb, name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nads_core .*nonsense"):
        _ = nc.nonsense
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("nads_core.nonsense")
    with pytest.raises(ImportError, match="nonsense"), warnings.catch_warnings(action="ignore"):
        from nads_core.machinery.seeds import nonsense  # noqa: F401


@pytest.mark.parametrize("old", _moved.TABLES["modules"])
def test_a_moved_module_forwards_to_its_new_place(old):
    home = importlib.import_module(_moved.TABLES["modules"][old])
    sys.modules.pop(old, None)
    module, messages = warned(lambda: importlib.import_module(old))
    assert f"{old} moved to {home.__name__}" in messages
    public = next(name for name in vars(home) if not name.startswith("_"))
    assert getattr(module, public) is getattr(home, public)


def test_renamed_members_exist():
    """Each new name of a renamed member is defined in one of the packages."""
    folders = (ROOT / "nads_core", ROOT / "book" / "nads_book")
    text = "\n".join(path.read_text("utf8") for folder in folders for path in folder.rglob("*.py"))
    for old, new in _moved.TABLES["members"].items():
        assert re.search(rf"^(?:class |def |    def )?{new}\b(?:\(|:| =)", text, re.MULTILINE), f"{old} -> {new}"


def test_a_script_of_version_02_runs_with_warnings(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'book'}"}
    command = [sys.executable, "-W", "default", "script.py"]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("smoke fig1-lenet ")
    assert result.stderr.count("DeprecationWarning") >= 8 and "Error" not in result.stderr
