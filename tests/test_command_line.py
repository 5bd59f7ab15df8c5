import argparse
import importlib.metadata
import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import nads_book as nb
import numpy as np
import pytest
import torch
from nads_book.atlas.similarity import NADS_FOLDER
from nads_book.cli import main as book_main
from nads_book.cli.run import run_one

import nads_core as nc
from nads_core.cli import COMMANDS, main
from nads_core.directions import ComputeOptions, StoppingCriterion
from nads_core.directions.run import DEFAULT_READOUTS
from nads_core.runtime import provenance

ROOT = Path(__file__).parent.parent

FACTORIES = """
import time
from pathlib import Path

import torch
from torch import nn


def small():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1))


class Slow(nn.Sequential):
    seen = 0  # continues for a while, and then only when the file `hold` is gone

    def forward(self, x):
        Slow.seen += 1
        time.sleep(0.005)
        while Slow.seen > 250 and Path("hold").exists():
            time.sleep(0.01)
        return super().forward(x)


def slow():
    return Slow(*small())


def seeded():
    torch.manual_seed(0)
    return small()


network = small()


class Named(nn.Sequential):
    def forward(self, x):
        return {"logits": super().forward(x)}


def named():
    return Named(*small())


class Two(nn.Linear):
    def __init__(self):
        super().__init__(64, 1)

    def forward(self, x, meta):
        return super().forward(x.flatten(1)) + meta
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to work in, with a module of factories that can be imported from it."""
    (tmp_path / "factories.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "factories", raising=False)
    return tmp_path


SMALL = ["--image-shape", "1", "8", "8", "--num-inputs", "2"]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "nads_core", *arguments]


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'book'}",
        "OMP_NUM_THREADS": "1",
    }


def test_one_of_our_architectures(folder, capsys):
    arguments = [
        "compute",
        "logreg",
        "--out",
        "new/folder/x.npz",
        "--num-networks",
        "64",
        "--seed",
        "3",
        *SMALL,
    ]
    assert main(arguments) == 0
    nads = nc.NADs.load("new/folder/x.npz")
    expected = nc.compute_nads(
        nc.LOGREG,
        64,
        estimator=nc.SmoothedGradient(2),
        image_shape=(1, 8, 8),
        seed=3,
        device="cpu",
        progress=False,
    )
    assert torch.equal(nads.directions, expected.directions)
    assert torch.equal(nads.eigenvalues, expected.eigenvalues)
    printed = capsys.readouterr().out
    assert f"{nads} -> new/folder/x.npz" in printed and "64 networks (effective: 6" in printed
    (checkpoint,) = (folder / "new/folder").glob("x.*.ckpt")
    assert (
        f"{checkpoint.relative_to(folder)} ({checkpoint.stat().st_size / 1e6:,.0f} MB)" in printed
    )


SURPRISES = {  # a command that cannot work, and what it shows
    "a table": (["logreg", "--out", "m.csv"], ".npz"),
    "no ending": (["logreg", "--out", "m2"], ".npz"),
    "another shape": (["factories:small", "--out", "x.npz"], "--image-shape"),
    "a dictionary": (["factories:named", "--out", "x.npz", *SMALL], "--output logits.0"),
    "two inputs": (["factories:Two", "--out", "x.npz", *SMALL], "wrapper of one"),
    "trained weights": (["torchvision:resnet18?weights=DEFAULT", "--out", "x.npz"], "never loaded"),
}


@pytest.mark.parametrize("kind", SURPRISES)
def test_commands_that_cannot_work_name_the_remedy_in_one_line(folder, capsys, kind):
    arguments, shown = SURPRISES[kind]
    assert main(["compute", *arguments, "--device", "cpu"]) == 2
    error = capsys.readouterr().err
    assert shown in error and error.count("\n") == 1 and not list(folder.glob("[mx]*"))


def test_the_help_has_the_defaults_of_the_function(capsys):
    with pytest.raises(SystemExit):
        main(["compute", "--help"])
    (readouts,) = re.findall(
        r"default: (\d+) if possible", " ".join(capsys.readouterr().out.split())
    )
    assert int(readouts) == DEFAULT_READOUTS


def test_options_are_the_arguments_of_the_function(folder):
    arguments = [
        "compute",
        "logreg",
        "--out",
        "x.npz",
        "--num-networks",
        "8",
        "--device",
        "cpu",
        *SMALL,
    ]
    assert (
        main(
            [*arguments, "--num-directions", "5", "--symmetries", "flip_rows", "--batch-size", "4"]
        )
        == 0
    )
    nads = nc.NADs.load("x.npz")
    assert len(nads) == 5 and nads.provenance["symmetries"] == ["flip_rows"]
    assert main([*arguments, "--symmetries"]) == 0  # none
    assert nc.NADs.load("x.npz").provenance["symmetries"] == []
    assert main([*arguments, "--output", "1"]) == 2  # logistic regression has one


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("smoothed", nc.SmoothedGradient(2)),
        ("mixed", nc.MixedDerivative(2)),
        ("point", nc.PointGradient()),
        ("dipole", nc.Dipole()),
    ],
)
def test_estimators_and_a_factory_of_ones_own(folder, name, estimator):
    arguments = [
        "compute",
        "factories:small",
        "--out",
        "x.npz",
        "--num-networks",
        "10",
        "--device",
        "cpu",
    ]
    arguments += ["--estimator", name, *(SMALL if hasattr(estimator, "num_inputs") else SMALL[:4])]
    assert (
        main([*arguments, "--debiasing", "none", "--quantized", "--checkpoint", "state.ckpt"]) == 0
    )
    provenance = nc.NADs.load("x.npz").provenance
    expected = {
        "architecture": "small",
        "num_networks": 10,
        "debiasing": "none",
        "estimator": repr(estimator),
    }
    assert expected.items() <= provenance.items()
    assert (folder / "state.ckpt").exists()
    with np.load("x.npz") as file:
        assert file["directions"].dtype == np.int16


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        (
            "alexnet",
            "unknown architecture 'alexnet': choose from logreg, .*, timm:model or module:factory",
        ),
        ("nowhere:factory", "cannot load 'nowhere:factory': No module named 'nowhere'"),
        ("factories:missing", "cannot load 'factories:missing': .*no attribute 'missing'"),
        (":small", "Empty module name"),
        ("factories:network", "lambda: MyNet.*got Sequential"),
        ("factories:seeded", "same weights twice"),
    ],
)
def test_a_bad_architecture_is_an_error(folder, capsys, architecture, message):
    with torch.random.fork_rng():
        assert (
            main(["compute", architecture, "--out", "x.npz", "--num-networks", "10", *SMALL]) == 2
        )
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert re.search(message, error)
    assert not (folder / "x.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num-networks", "0"], "num_networks must be a positive integer, got 0"),
        (["--num-inputs", "3"], "num_inputs must be an even integer when antithetic, got 3"),
        (["--image-shape", "1", "8", "9"], "logreg needs square images"),
    ],
)
def test_bad_options_are_errors(folder, capsys, arguments, message):
    assert main(["compute", "logreg", "--out", "x.npz", *SMALL, *arguments]) == 2
    assert f"error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "option", "users"),
    [
        (["--estimator", "mixed", "--readouts", "8"], "--readouts 8", "use smoothed"),
        (
            ["--estimator", "point", "--num-inputs", "16"],
            "--num-inputs 16",
            "use smoothed or mixed",
        ),
        (["--estimator", "dipole", "--num-inputs", "8"], "--num-inputs 8", "use smoothed or mixed"),
        (["--estimator", "dipole", "--readouts", "1"], "--readouts 1", "use smoothed"),
        (["--num-leading", "5"], "num_leading = 5", "tolerance"),
    ],
)
def test_options_without_effect_are_rejected(folder, capsys, arguments, option, users):
    assert (
        main(["compute", "logreg", "--out", "x.npz", "--image-shape", "1", "8", "8", *arguments])
        == 2
    )
    error = capsys.readouterr().err
    assert option in error and users in error
    assert not list(folder.glob("x.*"))


def test_a_finished_run_does_not_stand_in_the_way_of_the_next_seed(folder, capsys, twins):
    arguments = ["compute", "factories:small", "--out", "x.npz", "--device", "cpu", *SMALL]

    def checkpoints(*more: str) -> dict[str, int]:
        assert main([*arguments, *more]) == 0, capsys.readouterr().err
        return {
            path.name: torch.load(path, weights_only=True)["blocks_done"]
            for path in folder.glob("x.*.ckpt")
        }

    (first,) = checkpoints("--num-networks", "64")
    both = checkpoints("--num-networks", "64", "--seed", "1")
    assert len(both) == 2 and both[first] == 1
    assert nc.NADs.load("x.npz").provenance["seed"] == 1
    extended = checkpoints("--num-networks", "192")
    assert extended == both | {first: 3}  # a finished one is extended
    more = [
        ("--dtype", "bfloat16"),
        ("--tolerance", "0.1"),
        ("--kernels", "triton"),
        ("--readouts", "2"),
    ]
    for count, option in enumerate(more, 3):
        with (
            pytest.warns(UserWarning, match="tolerance 0.1 not")
            if "--tolerance" in option
            else nullcontext()
        ):
            assert len(checkpoints("--num-networks", "320", *option)) == count
    assert (
        len(checkpoints("--num-networks", "320", "--debiasing", "none", "--readouts", "1")) == 6
    )  # the same networks
    assert extended.keys() <= checkpoints("--num-networks", "320").keys()


@pytest.mark.skipif(torch.cuda.is_available(), reason="tests the error on a machine without a GPU")
@pytest.mark.parametrize(
    ("run", "arguments"),
    [
        (main, ["compute", "logreg", "--out", "x.npz", *SMALL]),
        (book_main, ["run", "fig1-logreg", "--preset", "smoke", "--out", "r.json"]),
    ],
    ids=["compute", "run"],
)
def test_a_missing_gpu_is_an_error(folder, capsys, run, arguments):
    for device in ("cuda", "gpu"):
        assert run([*arguments, "--device", device]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"error: device '{device}'") and "'cpu'" in error
    assert [
        path.name for path in folder.iterdir() if path.suffix in (".npz", ".json", ".ckpt")
    ] == []


def test_workers_are_for_a_cpu(folder, capsys, monkeypatch):
    monkeypatch.setattr("nads_book.cli.run.usable_device", lambda device: torch.device("cuda"))
    assert (
        book_main(["run", "fig1-logreg", "--preset", "smoke", "--out", "r.json", "--workers", "2"])
        == 2
    )
    assert "--workers 2" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_an_error(folder, capsys):
    (folder / "file").write_text("no folder")
    assert main(["compute", "logreg", "--out", "file/x.npz", "--num-networks", "10", *SMALL]) == 2
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("run", "arguments", "value"),
    [
        (main, ["compute", "logreg", "--out", "x.npz", "--num-inputs", "foo"], "'foo'"),
        (book_main, ["run", "fig1-logreg", "--shard", "9/8"], "'9/8'"),
        (book_main, ["run", "fig1-logreg", "--shard", "0/8"], "'0/8'"),
    ],
    ids=["count", "large", "zero"],
)
def test_a_value_that_cannot_be_read_is_shown(capsys, run, arguments, value):
    with pytest.raises(SystemExit):
        run(arguments)
    error = capsys.readouterr().err
    assert value in error and "invalid _" not in error


def test_an_unknown_job_touches_no_file(folder, capsys):
    assert book_main(["run", "fig9-lenet", "--out", "new/r.json"]) == 2
    assert "'fig9-lenet'" in capsys.readouterr().err and not (folder / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["compute"],
        ["compute", "logreg"],
        ["compute", "logreg", "--out", "x.npz", "--estimator", "smothed"],
        ["compute", "logreg", "--out", "x.npz", "--typo"],
        ["train"],
    ],
    ids=str,
)
def test_arguments_that_cannot_be_parsed(capsys, arguments):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "usage: python -m nads_core" in capsys.readouterr().err


CALLED = {
    "compute": [nc.compute_nads, ComputeOptions, StoppingCriterion], "run": [nb.run_experiment, nb.run_study, run_one],
    "atlas": [nb.atlas.compute_entry], "report": [nc.compute_nads, ComputeOptions],
}  # fmt: skip


@pytest.mark.parametrize("package", ["nads_core", "nads_book"])
def test_help_lists_every_command_and_its_defaults(capsys, package):
    """Each option is a parameter of the function that the command calls, and shows its default."""
    cli = importlib.import_module(f"{package}.cli")
    for name in cli.COMMANDS:
        with pytest.raises(SystemExit, match="0"):
            cli.main([name, "--help"])
        assert capsys.readouterr().out
        module = importlib.import_module(f"{package}.cli.{name.replace('-', '_')}")
        parser = argparse.ArgumentParser()
        module.add_arguments(parser)
        parameters = {
            key: value
            for function in [*CALLED.get(name, []), module.run]
            for key, value in inspect.signature(function).parameters.items()
        }
        for action in parser._actions:
            if action.dest not in (
                "help",
                "num_inputs",
                "readouts",
            ):  # the last two are fields of estimators
                default = parameters[action.dest].default
                if default not in (None, False, (), inspect.Parameter.empty):
                    shown = (
                        " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
                    )
                    assert f"(default: {shown.removeprefix('torch.')})" in action.help
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    listing = capsys.readouterr().out
    assert all(name in listing for name in cli.COMMANDS)


@pytest.mark.parametrize(
    "arguments", [[name, "--help"] for name in COMMANDS] + [["compute", "lenet", "--outt", "x"]]
)
def test_help_and_mistyped_options_do_not_wait_for_torch(arguments):
    code = (
        "import sys\nfrom nads_core.cli import main\n"
        f"try: main({arguments})\nfinally: assert not {{'torch', 'scipy', 'matplotlib'}} & sys.modules.keys()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment()
    )
    assert (
        "Assertion" not in done.stderr and "usage: python -m nads_core" in done.stdout + done.stderr
    )


@pytest.mark.parametrize("name", ["nads", "nads.exe"])
def test_the_usage_line_has_the_name_of_the_program(monkeypatch, capsys, name):
    monkeypatch.setattr(sys, "argv", [f"/usr/local/bin/{name}", "compute"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err.startswith("usage: nads compute")


def test_the_version_is_that_of_the_package():
    assert nc.__version__ == provenance.__version__ == importlib.metadata.version("nads-core")


@pytest.mark.parametrize(
    ("run", "arguments"),
    [
        (main, ["compute", "logreg", "--out", "folder"]),
        (book_main, ["class-differences", "images", "--out", "folder"]),
        (book_main, ["run", "fig1-logreg", "--out", "folder"]),
    ],
    ids=["compute", "class-differences", "run"],
)
def test_a_folder_is_no_file_to_write(folder, capsys, run, arguments):
    (folder / "folder").mkdir()
    with pytest.raises(SystemExit):
        run(arguments)
    assert "--out: folder is a folder: name a file in it" in capsys.readouterr().err


def test_nads_in_a_file_of_any_name_are_read(folder, capsys):
    shutil.copy(NADS_FOLDER / "cnn.npz", "a.txt")
    assert book_main(["similar", "a.txt", "--count", "1"]) == 0
    assert capsys.readouterr().out.startswith("atlas/cnn")


def test_nads_without_certain_directions_are_similar_to_none(folder, capsys):
    few = [
        "compute",
        "lenet",
        "--out",
        "x.npz",
        "--num-networks",
        "16",
        "--num-inputs",
        "2",
        "--device",
        "cpu",
    ]
    assert main(few) == 0
    capsys.readouterr()
    assert book_main(["similar", "x.npz"]) == 2
    assert "no leading subspace of x.npz is certain" in capsys.readouterr().err


def test_similar_compares_one_number_of_directions_if_asked(capsys):
    assert book_main(["similar", "atlas/cnn", "--num-directions", "7", "--count", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and all("of the first 7 directions" in line for line in lines)
    assert book_main(["similar", "atlas/cnn", "--count", "0"]) == 2
    assert "count must be a positive integer, got 0" in capsys.readouterr().err


def test_class_differences_need_matplotlib_from_the_start(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert book_main(["class-differences", "missing"]) == 2  # before the folder is read
    assert "matplotlib" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_and_resume(folder):
    arguments = [
        "compute",
        "factories:slow",
        "--out",
        "x.npz",
        "--num-networks",
        "640",
        "--device",
        "cpu",
        *SMALL,
    ]
    progress, hold = "", folder / "hold"
    hold.touch()
    with subprocess.Popen(
        command(*arguments), stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        while not re.search(r" [1-9]\d*/640", progress):  # until the first networks are counted
            character = process.stderr.read(1)
            assert character, progress
            progress += character
        os.kill(process.pid, signal.SIGINT)
        hold.unlink()
        error = process.stderr.read()
    assert process.returncode == 130
    (checkpoint,) = folder.glob("x.*.ckpt")
    assert re.search(r"\d+ of 640 networks; the same command resumes", error)
    assert "Traceback" not in error and "checkpoint=" not in error
    saved = torch.load(checkpoint, weights_only=True)["blocks_done"]
    assert 0 < saved < 10
    assert main(arguments) == 0
    resumed = nc.NADs.load("x.npz")
    expected = nc.compute_nads(
        sys.modules["factories"].small,
        640,
        estimator=nc.SmoothedGradient(2),
        image_shape=(1, 8, 8),
        device="cpu",
        progress=False,
    )
    assert torch.equal(resumed.directions, expected.directions)


def test_exit_status_of_the_process(folder):
    done = subprocess.run(
        command("compute", "alexnet", "--out", "x.npz"),
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert done.returncode == 2
    assert "error: unknown architecture 'alexnet'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_an_interrupt_after_the_work_is_silent(tmp_path):
    code = (
        "import os, signal, sys; from nads_core.cli import console; sys.argv = ['nads', 'compute', 'none'];"
        "status = console(); os.kill(os.getpid(), signal.SIGINT); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert (
        done.returncode == 2
        and done.stderr.startswith("error: ")
        and "Traceback" not in done.stderr
    ), done.stderr
