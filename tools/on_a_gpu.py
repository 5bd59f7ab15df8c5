"""Everything that waits for a GPU, in parts, for a machine that is there for minutes.

    python tools/on_a_gpu.py --minutes 12 --out DIR --commit SHA --photos cifar10-images.tar.xz

Where one command may run for ten minutes only, two calls share the work; files beside DIR, in
DIR.work, must stay:

    python tools/on_a_gpu.py --minutes 9.3 --out DIR --commit SHA --photos PHOTOS
    python tools/on_a_gpu.py --minutes 3 --out DIR --commit SHA --photos PHOTOS --parts trainings

Each part runs in a process of its own, is ended at its time limit, and writes one file into DIR,
row by row, so that a part that is ended keeps its rows. A part whose file is complete is skipped
when the same command runs again. Nothing is installed, nothing uses torch.compile, and the machine
needs neither git nor a network. Afterwards, in a checkout,

    python tools/on_a_gpu.py --keep DIR

merges the trainings into book/results, writes the other files to benchmarks/results, where rows of
earlier commits stay, and prints the decisions. ``--dry-run`` runs every part at toy size on a CPU,
with Triton's interpreter.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Part:
    """A part: seconds after which it is ended (a share of what is left for the last), and what it
    is about.
    """

    seconds: float
    summary: str


PARTS = {
    "tests": Part(60, "tests/gpu, against the CPU"),
    "kernels": Part(60, "Triton kernels against PyTorch, and their tiles"),
    "networks": Part(90, "networks per second by evaluation, and where the time goes"),
    "own_loop": Part(150, "the library against a loop of torch.func.vmap, same accuracy"),
    "large": Part(90, "NADs at 1 x 128 x 128, with their decomposition"),
    "trainings": Part(float("inf"), "full-size trainings for the rest"),
}
JOBS = (
    ("fig1-resnet18", 130),
    ("fig1-vgg11", 130),
    ("fig7-resnet18", 8),
    ("fig1-densenet121", 130),
)
LOSS_DIFFERENCE = 1e-3  # relative, after 50 steps in float32
_MARGIN = 10  # seconds that are left for the summary


@dataclass
class Options:
    """What a part gets.

    Args:
        out: folder of the results.
        commit: commit of the code, for the rows.
        dry_run: whether sizes are toys.
        photos: archive with the photos of CIFAR-10.
        until: time.time() at which the part is ended.
    """

    out: Path
    commit: str | None
    dry_run: bool
    photos: Path | None
    until: float

    @property
    def left(self) -> float:
        """Seconds until the part is ended."""
        return self.until - time.time()

    @property
    def work(self) -> Path:
        """Folder of files that are not results, beside that of the results."""
        folder = self.out.with_name(self.out.name + ".work")
        folder.mkdir(parents=True, exist_ok=True)
        return folder


class Report:
    """The file of a part, written anew with every row.

    Args:
        path: the file.
        options: options of the part.
    """

    def __init__(self, path: Path, options: Options):
        self.path, self.options = path, options
        self.content: dict[str, Any] = {"complete": False, "rows": []}

    def add(self, **row: Any) -> None:
        """Add a row, with device and commit, and print it."""
        import torch

        from nads_core.runtime.provenance import environment

        kind = "cuda" if torch.cuda.is_available() else "cpu"
        where = environment(torch.device(kind))
        self.content["rows"].append(
            row | where | {"commit": self.options.commit or where["commit"]}
        )
        self.write()
        print(
            "   ", ", ".join(f"{name} {_short(value)}" for name, value in row.items()), flush=True
        )

    def write(self, **more: Any) -> None:
        """Write the file, with further entries."""
        self.content |= more
        _write(self.path, self.content)


def _short(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) < 90 else text[:87] + "..."


def _write(path: Path, content: Any) -> None:
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(json.dumps(content, indent=1) + "\n", "utf8")
    temporary.replace(path)


def _attempt(report: Report, function: Callable[..., dict[str, Any]], **row: Any) -> None:
    """Add the row of a measurement; an error is a row, too."""
    try:
        report.add(**row, **function())
    except Exception as error:  # whatever this card, or this release of torch, cannot do
        report.add(**row, error=f"{type(error).__name__}: {error}"[:400])


# --- parts


def run_tests(options: Options) -> None:
    """Run the tests on the device, and keep the outcome of each, also of those before the time was
    up.
    """
    report = Report(options.out / "tests.json", options)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--color=no"]
    if options.dry_run:
        command += ["tests/gpu", "-k", "restored or norms_of_inputs"]
    else:
        command += ["tests/gpu", "tests/test_kernels.py", "-m", "not slow"]
        test = "test_a_graph_gives_each_network_its_own_gradients_of_any_shape"
        command.append(f"tests/test_ensembles.py::{test}")
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        tail: list[str] = []
        for line in process.stdout:
            tail = [*tail[-40:], line.rstrip()]
            if found := re.match(r"(tests/\S+::.+?) (PASSED|FAILED|ERROR|SKIPPED)", line):
                report.add(test=found[1], outcome=found[2])
    report.write(complete=True, tail=tail, exit_status=process.returncode)


def run_kernels(options: Options) -> None:
    """Run the benchmark of the kernels."""
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "kernels.py"),
        "--out",
        str(options.out / "kernels.json"),
    ]
    subprocess.run([*command, "--smoke"] if options.dry_run else command, cwd=ROOT, check=True)


def _toy(in_channels: int, image_size: int, num_classes: int) -> Any:
    from torch import nn

    size = 2 * (image_size - 2) ** 2
    convolution = nn.Conv2d(in_channels, 2, 3)
    return nn.Sequential(convolution, nn.ReLU(), nn.Flatten(), nn.Linear(size, num_classes))


def _networks(dry_run: bool) -> dict[str, Callable[[], Any]]:
    """Return functions that draw the networks that are timed, each for images 1 x 32 x 32."""
    from nads_book.atlas.entries import ATLAS

    import nads_core as nc

    if dry_run:
        return {"lenet": partial(_toy, 1, 8, 1)}
    named = {"lenet": nc.LENET, "cnn": ATLAS["cnn"].architecture, "vit": ATLAS["vit"].architecture}
    named |= {"resnet18": nc.RESNET18, "densenet121": nc.DENSENET121}
    return {name: partial(architecture.build, 1, 32, 1) for name, architecture in named.items()}


def _image_shape(dry_run: bool) -> tuple[int, int, int]:
    return (1, 8, 8) if dry_run else (1, 32, 32)


def run_networks(options: Options) -> None:
    """Time the networks of `compute_nads` by every evaluation, and profile the default."""
    import torch
    from nads_book.benchmarks import measure_network
    from nads_book.benchmarks.roofline import data_sheet, measure_limits

    import nads_core as nc
    from nads_core.networks import Ensemble

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    limits = (
        data_sheet(torch.cuda.get_device_name())
        if device.type == "cuda"
        else measure_limits(128, 2)
    )
    report = Report(options.out / "networks.json", options)
    estimator = nc.SmoothedGradient(4 if options.dry_run else 16)

    def ensemble(build: Callable[[], Any], evaluation: str, dtype: str, kernels: str) -> Ensemble:
        return Ensemble(
            build,
            _image_shape(options.dry_run),
            device=device,
            evaluation=evaluation,
            kernels=kernels,
            dtype=dtype,
        )

    def measured(*choice: Any) -> dict[str, Any]:
        found = measure_network(
            ensemble(*choice), estimator, limits, 0.01 if options.dry_run else 0.6
        )
        rate = 1 / found["seconds_per_network"]
        share = 1 / found["times_limit"] if "times_limit" in found else None
        kept = {name: found[name] for name in ("parts", "networks", "repeats", "peak_memory_bytes")}
        return {"networks_per_second": rate, "roofline_share": share} | kept

    def profiled(*choice: Any) -> dict[str, Any]:
        networks = ensemble(*choice)
        drawn = estimator.draw(networks, 0)
        estimator.contributions(networks, drawn)
        with torch.profiler.profile() as profile:
            estimator.contributions(networks, drawn)
            if device.type == "cuda":
                torch.cuda.synchronize()
        time_of = (
            f"self_{device.type}_time_total" if device.type == "cpu" else "self_device_time_total"
        )
        events = sorted(profile.key_averages(), key=lambda event: -getattr(event, time_of))[:12]
        total = sum(getattr(event, time_of) for event in profile.key_averages())
        shares = {
            event.key[:80]: round(getattr(event, time_of) / max(total, 1), 4) for event in events
        }
        return {"microseconds": total, "share_of_time": shares}

    choices = [
        ("vmap", "float32", "torch"),
        ("vmap", "float32", "triton"),
        ("graph", "float32", "torch"),
        ("vmap", "bfloat16", "torch"),
        ("loop", "float32", "torch"),
    ]
    networks = _networks(options.dry_run)
    for choice in choices:
        for name, build in networks.items():
            if options.left < 5:
                return
            row = dict(zip(("evaluation", "dtype", "kernels"), choice, strict=True))
            _attempt(report, partial(measured, build, *choice), network=name, **row)
    for name, build in networks.items():  # last: reading a profile takes seconds
        if options.left < 15 and not options.dry_run:
            return
        run = partial(profiled, build, *choices[0])
        _attempt(report, run, profile=name, evaluation="vmap", dtype="float32")
    report.write(complete=True)


def run_own_loop(options: Options) -> None:
    """Compare networks per second, at equal numbers of networks, and the overlaps with a longer
    run.
    """
    import torch
    from nads_book.benchmarks.own_loop import overlap, own_loop

    import nads_core as nc

    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = _image_shape(options.dry_run)
    report = Report(options.out / "own_loop.json", options)
    counts = {"lenet": 4_096, "cnn": 4_096, "resnet18": 64, "vit": 512, "densenet121": 32}
    inputs = 2 if options.dry_run else 16
    common: dict[str, Any] = {"image_shape": shape, "device": device}

    def library(build: Callable[[], Any], number: int, seed: int, **more: Any) -> Any:
        estimator = nc.SmoothedGradient(inputs, readouts=1)
        nads = nc.compute_nads(
            build, number, estimator=estimator, seed=seed, progress=False, **common, **more
        )
        return nads.directions.flatten(1)

    def loop(build: Callable[[], Any], number: int, seed: int, batch: int) -> Any:
        return own_loop(build, number, inputs, seed, batch=batch, **common)

    methods: dict[str, Callable[..., Any]] = {  # by what is asked first, where time is short
        "own loop": partial(loop, batch=32),
        "library": library,
        "library, triton": partial(library, kernels="triton"),
        "own loop, 256 at once": partial(loop, batch=256),
    }
    networks = _networks(options.dry_run)
    references: dict[str, Any] = {}
    for name, build in networks.items():  # the goals' networks first
        for method, directions in methods.items():
            if options.left < 5:
                return
            count = 4 if options.dry_run else counts[name]

            def measured(
                name: str = name,
                build: Callable[[], Any] = build,
                count: int = count,
                directions: Callable[..., Any] = directions,
            ) -> dict[str, Any]:
                if name not in references:
                    references[name] = library(build, 2 * count, 1)[:10]
                directions(build, min(count, 64), 2)  # warm up
                start = time.perf_counter()
                found = directions(build, count, 0)
                seconds = time.perf_counter() - start
                return {
                    "seconds": seconds,
                    "networks_per_second": count / seconds,
                    "overlap": overlap(found, references[name]),
                }

            kind = "own loop" if method.startswith("own loop") else method
            row = {"network": name, "method": kind, "variant": method, "networks": count}
            _attempt(report, measured, dtype="float32", **row)
    report.write(complete=True)


def run_large(options: Options) -> None:
    """Compute NADs at 128 x 128, from more and more networks, and compare those of two seeds."""
    import nads_core as nc

    side, counts = (92, (4, 8)) if options.dry_run else (128, (1_024, 4_096, 8_192))
    shown = (1, 10, 50)
    report = Report(options.out / "large.json", options)
    estimator = nc.SmoothedGradient(4 if options.dry_run else 16, readouts=1)
    for count in counts:

        def computed(count: int = count) -> dict[str, Any]:
            found = []
            for seed in (0, 1):
                start = time.perf_counter()
                checkpoint = options.work / f"large-{seed}.ckpt"
                nads = nc.compute_nads(
                    nc.LENET,
                    count,
                    image_shape=(1, side, side),
                    estimator=estimator,
                    num_directions=64,
                    seed=seed,
                    checkpoint=checkpoint,
                    progress=False,
                )
                found.append((nads, time.perf_counter() - start))
            (nads, seconds), (other, again) = found
            nads.save(options.out / "large.npz")
            k_most = min(len(nads.directions), len(other.directions))
            overlaps = {str(k): float(nads.overlap(other, k)) for k in shown if k <= k_most}
            leading = None if nads.uncertainty is None else nads.uncertainty.leading_certainty
            certainty = (
                {}
                if leading is None
                else {str(k): float(leading[k - 1]) for k in shown if k <= len(leading)}
            )
            return {
                "seconds": [seconds, again],
                "overlap_of_two_seeds": overlaps,
                "certainty": certainty,
            }

        if options.left < 15 and not options.dry_run:
            return
        _attempt(report, computed, image_shape=[1, side, side], networks=count, dtype="float32")
    report.write(complete=True)


def run_trainings(options: Options) -> None:
    """Check one training against the CPU, measure its steps, and train the jobs in order."""
    import torch
    from gpu_training import loss_difference, steps_per_second
    from nads_book.studies import run_experiment

    import nads_core as nc

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    report = Report(options.out / "trainings.json", options)
    architecture, size = (nc.LENET, 16) if options.dry_run else (nc.RESNET18, 32)
    steps, batch = (5, 8) if options.dry_run else (50, 32)
    mixed = device.type == "cuda"
    check = partial(
        loss_difference, architecture, device, steps=steps, batch_size=batch, image_size=size
    )

    def checked() -> dict[str, Any]:
        difference = check()
        return {"loss_difference": difference, "agrees": difference < LOSS_DIFFERENCE}

    _attempt(report, checked, check="losses against the CPU", steps=steps, dtype="float32")

    def measured() -> dict[str, Any]:
        found = steps_per_second(
            architecture,
            device,
            mixed_precision=mixed,
            image_size=size,
            batch_size=batch if options.dry_run else 128,
            batches=2 if options.dry_run else 40,
        )
        return {"steps_per_second": found}

    precision = "bfloat16" if mixed else "float32"
    _attempt(report, measured, network=architecture.name, precision=precision)
    root = _photos(options)
    jobs = (("fig1-logreg", 2), ("fig7-logreg", 2)) if options.dry_run else JOBS
    for name, count in jobs:
        if "fig7" in name and root is None and not options.dry_run:
            report.add(job=name, error="no photos: pass --photos")
            continue
        if options.left < 20 and not options.dry_run:
            return

        def trained(name: str = name, count: int = count) -> dict[str, Any]:
            results = run_experiment(
                name,
                "smoke" if options.dry_run else "paper",
                out=options.work / f"{name}.json",
                count=count,
                time_limit=options.left - 5,
                device=device,
                root=root,
                executor="sequential",  # that machine lacks loky
                progress=False,
            )
            return {"networks": len(results.rows), "of": results.num_units}

        _attempt(report, trained, job=name)
        report.write(results=_packed(options))
    report.write(complete=True)


def _photos(options: Options) -> Path | None:
    """Unpack the photos once; None without an archive."""
    if options.photos is None:
        return None
    folder = options.work / "cifar10"
    if not folder.exists():
        partial_folder = options.work / "cifar10.partial"
        shutil.rmtree(partial_folder, ignore_errors=True)
        with tarfile.open(options.photos) as archive:
            archive.extractall(partial_folder, filter="data")
        partial_folder.rename(folder)
    return folder


def _packed(options: Options) -> dict[str, Any]:
    """Return the contents of the results files of all jobs, so far, with the commit that trained
    them.
    """
    return {
        path.stem: _stamped(json.loads(path.read_text("utf8")), options.commit)
        for path in sorted(options.work.glob("fig*.json"))
    }


def _stamped(results: dict[str, Any], commit: str | None) -> dict[str, Any]:
    """Return the content of a results file whose runs name the commit."""
    for run in results["provenance"]:
        run["commit"] = run["commit"] or commit
    return results


RUN: dict[str, Callable[[Options], None]] = {
    "tests": run_tests,
    "kernels": run_kernels,
    "networks": run_networks,
    "own_loop": run_own_loop,
    "large": run_large,
    "trainings": run_trainings,
}


# --- all parts


def _complete(path: Path) -> bool:
    return path.exists() and json.loads(path.read_text("utf8"))["complete"]


def _environment(dry_run: bool) -> dict[str, str]:
    folders = [str(ROOT), str(ROOT / "book"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, folders)),
        "PYTHONUNBUFFERED": "1",
    }
    environment |= {"TRITON_DEFAULT_FP_FUSION": "1"}
    return environment | ({"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"} if dry_run else {})


def run_part(name: str, arguments: list[str], seconds: float, dry_run: bool) -> dict[str, Any]:
    """Run one part in a process group of its own, and end the group at the limit."""
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--part",
        name,
        "--seconds",
        str(seconds),
        *arguments,
    ]
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, env=_environment(dry_run), start_new_session=True)
    try:
        status = process.wait(seconds)
        outcome = "done" if status == 0 else f"failed with status {status}"
    except subprocess.TimeoutExpired:
        outcome = "ended at its limit"
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # all of the group have ended
        process.wait()
    return {"part": name, "outcome": outcome, "seconds": round(time.monotonic() - start, 1)}


def run_all(options: Options, minutes: float, only: list[str]) -> list[dict[str, Any]]:
    """Run the parts in order of their worth, and write the summary."""
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes - _MARGIN
    arguments = ["--out", str(options.out)]
    arguments += ["--commit", options.commit] if options.commit else []
    arguments += ["--photos", str(options.photos)] if options.photos else []
    arguments += ["--dry-run"] if options.dry_run else []
    before = _load(options.out / "summary.json").get("parts", [])
    done = [part for part in before if part["part"] not in only]
    for name in only:
        path = options.out / f"{name}.json"
        limit = end - time.monotonic()
        if not options.dry_run:  # which may be on a slow machine
            limit = min(limit, PARTS[name].seconds)
        if _complete(path):
            done.append({"part": name, "outcome": "complete already", "seconds": 0.0})
            continue
        if limit < 5:
            done.append({"part": name, "outcome": "no time was left", "seconds": 0.0})
            continue
        print(f"{name}: {PARTS[name].summary} (at most {limit:.0f} s)", flush=True)
        done.append(run_part(name, arguments, limit, options.dry_run))
        if name == "trainings" and path.exists():  # also what was trained when it was ended
            content = json.loads(path.read_text("utf8"))
            _write(path, content | {"results": _packed(options)})
        if name == "kernels" and path.exists():  # which may know no commit
            content = json.loads(path.read_text("utf8"))
            for row in content["rows"]:
                row["commit"] = options.commit or row["commit"]
            _write(path, content)
        print(f"{name}: {done[-1]['outcome']} after {done[-1]['seconds']} s", flush=True)
        _write(
            options.out / "summary.json",
            {"complete": False, "commit": options.commit, "parts": done},
        )
    for temporary in options.out.glob(".*.new"):
        temporary.unlink()
    _write(
        options.out / "summary.json", {"complete": True, "commit": options.commit, "parts": done}
    )
    return done


def _rows(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text("utf8"))["rows"] if path.exists() else []


def summary(out: Path) -> str:
    """Return what was found, as text: a line per part, and the decisions."""
    from gpu_decisions import decide

    lines = [f"{'part':10} {'seconds':>8}  outcome"]
    for part in json.loads((out / "summary.json").read_text("utf8"))["parts"]:
        rows = _rows(out / f"{part['part']}.json")
        errors = sum("error" in row or row.get("outcome") in ("FAILED", "ERROR") for row in rows)
        counts = f"{len(rows)} rows, {errors} errors"
        lines.append(f"{part['part']:10} {part['seconds']:8.1f}  {part['outcome']}, {counts}")
    networks = [row for row in _rows(out / "networks.json") if "network" in row]
    lines += [str(decision) for decision in decide(networks, _rows(out / "own_loop.json"))]
    trained = _load(out / "trainings.json").get("results", {})
    lines += [f"{name}: {len(part['rows'])} networks" for name, part in trained.items()]
    return "\n".join(lines)


def _load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf8")) if path.exists() else {}


def keep(out: Path, folder: Path) -> None:
    """Merge the trainings into book/results, and write the other files to another folder."""
    from nads_book.experiments.results import Results, results_path, writing
    from nads_book.studies import merge_results

    for name, content in _load(out / "trainings.json").get("results", {}).items():
        content.pop("fingerprint", None)
        found = Results(**content)
        path = results_path(name, found.preset)
        with writing(path):
            merged = merge_results([*([Results.load(path)] if path.exists() else []), found])
            merged.save(path)
        print(f"{merged} -> {path}")
    for path in sorted(out.glob("*.json")):
        kept, content = folder / f"gpu-{path.name}", _load(path)
        if path.stem in ("networks", "own_loop"):  # of all runs, the newest first
            commits = {row["commit"] for row in content["rows"]}
            content["rows"] += [row for row in _rows(kept) if row["commit"] not in commits]
        _write(kept, content)
    print(summary(out))


def main() -> int:
    """Run all parts, or one of them, or keep their results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--minutes", type=float, default=12, help="time for all parts together")
    add("--out", type=Path, help="folder of the results")
    add("--commit", help="commit of the code, where there is no git")
    add("--photos", type=Path, help="archive with the photos of CIFAR-10, for fig7")
    add(
        "--parts",
        nargs="+",
        choices=PARTS,
        default=list(PARTS),
        help="parts to run; all by default",
    )
    add("--dry-run", action="store_true", help="toy sizes, on a CPU")
    add(
        "--keep",
        type=Path,
        metavar="DIR",
        help="merge the results of an earlier call into the checkout",
    )
    add(
        "--into",
        type=Path,
        default=ROOT / "benchmarks" / "results",
        help="folder that --keep copies to",
    )
    add("--part", choices=PARTS, help=argparse.SUPPRESS)
    add("--seconds", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.keep:
        sys.path[:0] = [str(ROOT), str(ROOT / "book")]
        keep(given.keep, given.into)
        return 0
    if given.out is None:
        parser.error("--out is missing: name a folder for the results")
    until = time.time() + (given.seconds or 60 * given.minutes)
    photos = given.photos and given.photos.resolve()
    options = Options(given.out.resolve(), given.commit, given.dry_run, photos, until)
    if given.part:
        if given.dry_run:  # Triton's interpreter takes seconds per network
            from nads_core.networks import sampler

            sampler._MAX_BLOCK = 2
        RUN[given.part](options)
        return 0
    done = run_all(options, given.minutes, given.parts)
    sys.path[:0] = [str(ROOT), str(ROOT / "book")]
    print(summary(options.out))
    if given.dry_run:
        print("a dry run: its times and decisions mean nothing")
    return 0 if all(part["outcome"] in ("done", "complete already") for part in done) else 1


if __name__ == "__main__":
    raise SystemExit(main())
