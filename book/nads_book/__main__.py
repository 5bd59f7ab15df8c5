"""Command line: ``nads compute resnet18 --out x.npz``, ``nads run fig1-lenet``, ``classes``, ``merge``, ``bench``.

``python -m nads_core`` is the same.
"""

from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from nads_book.atlas import ATLAS, compute_entry
from nads_book.benchmarks import CASES, results_folder, run_suite
from nads_book.experiments import queue as pending
from nads_book.experiments.distributed_run import gather, run_together
from nads_book.experiments.jobs import FIGURES, experiment
from nads_book.experiments.presets import SIZES
from nads_book.experiments.results import Results, merge_results, results_path, writing
from nads_book.experiments.runner import choose_precision, run_experiment
from nads_core.cli import doctor
from nads_core.data import class_differences, load_folder
from nads_core.directions import NADs, compute_nads, forecast, load_nads
from nads_core.directions.covariance import DEBIASINGS
from nads_core.directions.estimators import Dipole, Estimator, MixedDerivative, PointGradient, SmoothedGradient
from nads_core.kernels import KERNELS
from nads_core.networks.architectures import ARCHITECTURES, SYMMETRIES
from nads_core.runtime import distributed
from nads_core.runtime.arguments import usable_device
from nads_core.runtime.provenance import canonical, fingerprint

_ESTIMATORS: dict[str, type[Any]] = {  # dataclasses
    "smoothed": SmoothedGradient, "mixed": MixedDerivative, "point": PointGradient, "dipole": Dipole,
}  # fmt: skip
_ESTIMATOR_OPTIONS = ("num_inputs", "readouts")  # of those whose dataclass has fields of these names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nads_core", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    compute = commands.add_parser("compute", help="compute the NADs of an architecture")
    compute.add_argument("architecture", help=f"{', '.join(ARCHITECTURES)}, torchvision:model, or module:factory")
    compute.add_argument("--out", type=Path, required=True, help="npz file to write")
    compute.add_argument("--num-networks", type=int, default=2_000)
    compute.add_argument("--estimator", choices=tuple(_ESTIMATORS), default="smoothed")
    compute.add_argument("--num-inputs", type=_count, help="a network, for smoothed and mixed: 16 by default")
    compute.add_argument("--readouts", type=int, help="last layers a network, for smoothed: 1 by default")
    compute.add_argument("--tolerance", type=float, help="stop when 1 - overlap with the exact directions is below")
    compute.add_argument("--num-leading", type=int, help="directions that --tolerance is about: 10 by default")
    compute.add_argument("--num-certain", type=int, help="stop when so many directions are certain by 0.9")
    compute.add_argument("--dtype", choices=("float32", "bfloat16", "float64"), default="float32")
    compute.add_argument(
        "--image-shape", type=int, nargs="+", default=(1, 32, 32), metavar="N", help="C H W, or C L, or F"
    )
    compute.add_argument("--fresh-readout", action="store_true", help="draw a last layer that begins at zero")
    compute.add_argument("--num-directions", type=int, help="to keep; all by default")
    compute.add_argument("--debiasing", choices=DEBIASINGS, default="shrink")
    compute.add_argument(
        "--symmetries", nargs="*", choices=(*SYMMETRIES, "test"),
        help="of the distribution of networks, averaged over; by default what the architecture declares; test: those "
        "that the networks do not contradict",
    )  # fmt: skip
    compute.add_argument("--output", type=int, default=0, help="which output of the network is f(x): 0 by default")
    compute.add_argument("--batch-size", type=int, help="networks evaluated together on a GPU; fitted by default")
    compute.add_argument("--seed", type=int, default=0)
    compute.add_argument("--device", help="cpu, cuda, ...; a GPU if there is one")
    compute.add_argument("--kernels", choices=KERNELS, default="torch", help="triton: kernels of our own, on a GPU")
    compute.add_argument(
        "--checkpoint", type=Path,
        help="where to keep the state: the same command goes on from it, also with more networks. By default a file "
        "beside OUT whose name has eight digits that stand for what is computed: another seed has another file",
    )  # fmt: skip
    compute.add_argument("--quantized", action="store_true", help="store 16-bit directions, at half the size")
    ahead = commands.add_parser("forecast", help="say how many directions more networks would make certain")
    ahead.add_argument("checkpoint", type=Path, help="of a run of compute")
    ahead.add_argument("--num-networks", type=int, nargs="+", metavar="N", help="1, 2, 4, 8 and 16 times the run's")
    classes = commands.add_parser("classes", help="say along which NADs the classes of a folder of images differ")
    classes.add_argument("folder", type=Path, help="with a folder of images for each class, or train/ with these")
    shipped = ("lenet", "vgg11", "resnet18", "densenet121")
    classes.add_argument(
        "nads", nargs="*", default=shipped, help=f"names, or npz files: by default {', '.join(shipped)}"
    )
    classes.add_argument("--out", type=Path, default=Path("classes.png"), help="picture to write: classes.png")
    classes.add_argument("--num-images", type=int, default=5_000, help="drawn evenly over the classes: 5000 by default")
    nearest = commands.add_parser("nearest", help="say which architectures that ship NADs resemble")
    nearest.add_argument("nads", help="an npz file, or a name such as atlas/cnn")
    nearest.add_argument("--count", type=int, default=10, help="how many to show: 10 by default")
    atlas = commands.add_parser("atlas", help="compute entries of the atlas: what one change in an architecture does")
    atlas.add_argument("entries", nargs="*", metavar="ENTRY", help=f"all by default: {', '.join(ATLAS)}")
    atlas.add_argument("--folder", type=Path, default=Path("atlas"), help="for what is computed, 32 MB an entry: atlas")
    atlas.add_argument("--num-networks", type=int, help="for each entry; those of the shipped one by default")
    atlas.add_argument("--seed", type=int, default=0)
    run = commands.add_parser("run", help="train the networks of one of the paper's figures", epilog=_figures())
    run.add_argument("job", nargs="?", help="such as fig1-lenet: a figure and an architecture")
    run.add_argument("--pending", action="store_true", help="instead: all that the book still waits for, in order")
    run.add_argument(
        "--dry-run", action="store_true", help="of --pending: only say what each would take on this machine"
    )
    run.add_argument("--preset", choices=SIZES, help="size; demo by default")
    run.add_argument("--count", type=int, help="networks to train, from the beginning of the job; all by default")
    run.add_argument("--out", type=Path, help="results file; book/results/JOB.json by default, with the shard if any")
    run.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop by then; a next run goes on")
    run.add_argument("--shard", type=_shard, default=(1, 1), metavar="I/N", help="run the I-th of N parts")
    run.add_argument("--root", type=Path, help="folder with photos, for the jobs that use them; NADS_DATA by default")
    run.add_argument("--workers", type=int, help="networks trained at once on a CPU; one a core by default")
    run.add_argument("--device", help="cpu, cuda, ...; a GPU if there is one")
    run.add_argument(
        "--mixed-precision", action=argparse.BooleanOptionalAction, help="layers in bfloat16, on a CPU too; or never"
    )
    bench = commands.add_parser("bench", help="time every architecture and estimator against the limits of the device")
    bench.add_argument("--architectures", nargs="+", choices=tuple(ARCHITECTURES), default=tuple(ARCHITECTURES))
    bench.add_argument("--cases", nargs="+", choices=tuple(CASES), default=tuple(CASES))
    bench.add_argument("--no-scale", action="store_true", help="leave growing inputs out")
    bench.add_argument("--large", action="store_true", help="instead: the first 100 NADs at 3 x 224 x 224, minutes")
    bench.add_argument("--quick", action="store_true", help="toy sizes, to see that everything runs")
    bench.add_argument("--out", type=Path, help="folder for the results; benchmarks/results by default")
    bench.add_argument("--device", help="cpu, cuda, ...; a GPU if there is one")
    bench.add_argument("--kernels", choices=KERNELS, default="torch")
    checks = commands.add_parser("doctor", help="say what this machine has, or whether its GPU can be trusted")
    checks.add_argument("--gpu", action="store_true", help="compare what the GPU computes with what the CPU computes")
    checks.add_argument("--device", help="instead of the GPU, such as cuda:1")
    merge = commands.add_parser("merge", help="join the results files of shards")
    merge.add_argument("files", type=Path, nargs="+")
    merge.add_argument("--out", type=Path, required=True)
    return parser


def _figures() -> str:
    return "figures: " + "; ".join(f"{name}: {what}" for name, what in FIGURES.items())


def _count(text: str) -> int | str:
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number or auto, got {text!r}") from None


def _shard(text: str) -> tuple[int, int]:
    try:
        part, parts = map(int, text.split("/"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected I/N such as 2/8, got {text!r}") from None
    if not 1 <= part <= parts:
        raise argparse.ArgumentTypeError(f"expected I/N with I from 1 to N, got {text!r}")
    return part, parts


def _pending(options: argparse.Namespace) -> int:
    """Work off the queue of long jobs, or say what it would take."""
    for name in ("job", "preset", "count", "out", "mixed_precision"):
        if getattr(options, name) is not None:
            raise ValueError(f"--pending says itself which jobs, sizes and files: leave {name} out")
    if options.shard != (1, 1) or (options.dry_run and options.time_limit is not None):
        raise ValueError("--pending has no shards, and --dry-run no time limit: leave these out")
    device = usable_device(options.device)
    _require_cpu_for_workers(options.workers, device)
    if options.dry_run:
        total = 0.0
        for part, left, seconds in pending.estimates(device=device, workers=options.workers):
            total += seconds
            share = f"{left:>4} of {part.wanted:>3} networks left"
            print(f"{part.name:<18} {part.preset:<7} {share}  {_duration(seconds):>8}  -> {part.path}", flush=True)
        print(f"about {_duration(total)} on this machine; networks that are through stop earlier")
        return 0
    lacking = False
    for part, found in pending.run_pending(
        time_limit=options.time_limit, device=device, workers=options.workers, root=options.root
    ):
        lacking = lacking or not isinstance(found, Results)
        print(f"{found} -> {part.path}" if isinstance(found, Results) else f"left out: {found}", flush=True)
    return 1 if lacking else 0


def _require_cpu_for_workers(workers: int | None, device: torch.device) -> None:
    if workers is not None and device.type != "cpu":
        raise ValueError(f"--workers {workers} says nothing about {device}: leave it out, or take --device cpu")


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"


def _run(options: argparse.Namespace) -> int:
    if options.pending:
        return _pending(options)
    if options.job is None:
        raise ValueError("name a job such as fig1-lenet, or take --pending")
    if options.dry_run:
        raise ValueError("--dry-run belongs to --pending")
    options.preset = options.preset or "demo"
    job = experiment(options.job, options.preset)  # refuses an unknown one, before any file is touched
    if options.root is not None and not job.on_photos:
        raise ValueError(f"{options.job} uses no photos: leave --root out")
    part, parts = options.shard
    out = options.out or results_path(options.job, options.preset)
    if options.out is None and parts > 1:
        out = out.with_suffix(f".{part}of{parts}.json")
    run = partial(
        run_experiment, options.job, options.preset, time_limit=options.time_limit, workers=options.workers,
        count=options.count, root=options.root,
    )  # fmt: skip
    choose = partial(choose_precision, options.job, options.preset, mixed_precision=options.mixed_precision)
    with distributed.process_group(options.device) as own:
        device = usable_device(own)
        _require_cpu_for_workers(options.workers, device)
        if distributed.size() == 1:
            with writing(out):
                gather(out)
            results: Results | None = run(
                out=out, shard=options.shard, device=device, mixed_precision=options.mixed_precision
            )
        else:
            results = run_together(run, choose, out, options.shard, device)
    if results is not None:
        left = len(results.missing(results.experiment().units[: options.count][part - 1 :: parts]))
        asked = "all that was asked for" if parts == 1 else f"part {part} of {parts}"
        state = f"{left} left: run it again to go on" if left else "complete" if results.complete else asked
        print(f"{results} -> {out} ({state})")
    return 0


def _merge(options: argparse.Namespace) -> int:
    with writing(options.out):
        files = dict.fromkeys([*options.files, *([options.out] if options.out.exists() else [])])  # nothing is lost
        results = merge_results([Results.load(path) for path in files])
        results.save(options.out)
    print(f"{results} -> {options.out}")
    return 0


def _bench(options: argparse.Namespace) -> int:
    usual = vars(_parser().parse_args(["bench"]))
    given = {name for name, value in vars(options).items() if value != usual[name]}
    if options.large and (ignored := sorted(given - {"large", "out", "device", "quick"})):
        raise ValueError(f"--large leaves no choice of {', '.join(ignored).replace('_', ' ')}: leave that out")
    folder = options.out or results_folder()
    for path, result in run_suite(
        folder, architectures=tuple(options.architectures), cases=tuple(options.cases), scale=not options.no_scale,
        large=options.large, device=usable_device(options.device), kernels=options.kernels, quick=options.quick,
    ):  # fmt: skip
        cost = f"{1e3 * result['seconds_per_network']:10.2f} ms a network" if "parts" in result else ""
        over = f"{result['times_limit']:8.1f} times the limit" if "times_limit" in result else ""
        print(f"{path.stem:<52} {cost} {over}", flush=True)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    if not (options.gpu or options.device):
        for line in doctor.describe():
            print(line, flush=True)
        return 0
    fine = True
    for finding in doctor.examine(options.device or "cuda"):
        print(finding, flush=True)
        fine = fine and finding.fine
    print("everything agrees" if fine else "not everything agrees: see what not to trust")
    return 0 if fine else 1


def _estimator(options: argparse.Namespace) -> Estimator:
    """Build the estimator; an option that it does not have is an error, not ignored."""
    known = {key: {field.name for field in fields(kind)} for key, kind in _ESTIMATORS.items()}
    given = {name: getattr(options, name) for name in _ESTIMATOR_OPTIONS if getattr(options, name) is not None}
    for name, value in given.items():
        if name not in known[options.estimator]:
            users = " or ".join(key for key, names in known.items() if name in names)
            raise ValueError(
                f"--{name.replace('_', '-')} {value} says nothing about --estimator {options.estimator}: leave it out, "
                f"or take {users}"
            )
    if options.num_leading is not None and options.tolerance is None and options.num_inputs != "auto":
        raise ValueError(
            f"--num-leading {options.num_leading} says nothing without --tolerance or --num-inputs auto: leave it out"
        )
    return _ESTIMATORS[options.estimator](**given)


def _checkpoint(options: argparse.Namespace, estimator: Estimator) -> Path:
    """Return a file beside the result that no other computation has: a run's state outlives it, to be extended."""
    what = [options.architecture, repr(estimator), list(options.image_shape), options.seed, options.dtype]
    what += [options.kernels, options.tolerance is not None]
    what += [options.output] if options.output else []
    what += ["fresh_readout"] if options.fresh_readout else []
    return options.out.with_suffix(f".{fingerprint(canonical(what))[:8]}.ckpt")


def _symmetries(names: list[str] | None) -> tuple[str, ...] | Literal["test"] | None:
    """Return what `compute_nads` takes."""
    if names is None:
        return None
    if "test" in names:
        if len(names) > 1:
            raise ValueError(f"--symmetries test finds the symmetries by itself, but {' '.join(names)} names some")
        return "test"
    return tuple(names)


def _compute(options: argparse.Namespace) -> int:
    estimator = _estimator(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with distributed.process_group(options.device) as device:
        nads = compute_nads(
            options.architecture,
            options.num_networks,
            estimator=estimator,
            image_shape=tuple(options.image_shape),
            num_directions=options.num_directions,
            symmetries=_symmetries(options.symmetries),
            output=options.output,
            batch_size=options.batch_size,
            debiasing=options.debiasing,
            seed=options.seed,
            device=device,
            dtype=getattr(torch, options.dtype),
            tolerance=options.tolerance,
            num_leading=options.num_leading,
            num_certain=options.num_certain,
            kernels=options.kernels,
            fresh_readout=options.fresh_readout,
            checkpoint=options.checkpoint or _checkpoint(options, estimator),
        )
        if distributed.rank() == 0:
            nads.save(options.out, quantized=options.quantized)
            print(f"{nads} -> {options.out}")
    return 0


def _forecast(options: argparse.Namespace) -> int:
    for found in forecast(options.checkpoint, options.num_networks):
        print(f"{found.num_networks:>12,} networks: {found.num_certain:>5} directions certain, {found.seconds:,.0f} s")
    return 0


def _classes(options: argparse.Namespace) -> int:
    from nads_book.figures import plot_class_differences

    files = [Path(name).stem for name in options.nads]
    labels = [stem if files.count(stem) == 1 else name for stem, name in zip(files, options.nads, strict=True)]
    bases = {
        label: NADs.load(name) if name.endswith(".npz") else load_nads(name)
        for label, name in zip(labels, options.nads, strict=True)
    }
    sizes = {tuple(nads.directions.shape[2:]) for nads in bases.values()}
    if len(sizes) > 1 or any(height != width for height, width in sizes):
        raise ValueError(f"NADs of square images of one size are needed, got {sorted(sizes)}: ask one by one")
    ((size, _),) = sizes
    inner = options.folder / "train"
    folder = inner if inner.is_dir() else options.folder
    images = load_folder(folder, options.num_images, size=size, name=options.folder.resolve().name)
    print(f"{len(images):,} {images.source}, {len(images.class_names)} classes, {size} x {size} pixels")
    found = {name: (nads, class_differences(images, nads, progress=True)) for name, nads in bases.items()}
    print("How many times as sensitive as along a random direction an untrained network is along")
    print(f"{'':>14} {'differences of classes (95 %)':>31} {'what differs inside them':>26}   classes vary most along")
    for name, (_, differences) in found.items():
        low, high = differences.lift_interval
        lift = f"{differences.lift:.2f} ({low:.2f} to {high:.2f})"
        leading = ", ".join(f"NAD {i}" for i in differences.leading(4))
        print(f"{name:>14} {lift:>31} {differences.lift_within:>26.2f}   {leading}")
    plot_class_differences(found).savefig(options.out, dpi=200)
    print(f"-> {options.out}")
    return 0


def _nearest(options: argparse.Namespace) -> int:
    nads = NADs.load(options.nads) if options.nads.endswith(".npz") else load_nads(options.nads)
    for one in nads.nearest()[: options.count]:
        print(one)
    return 0


def _atlas(options: argparse.Namespace) -> int:
    if unknown := sorted(set(options.entries) - ATLAS.keys()):
        raise ValueError(f"the atlas has no {', '.join(unknown)}: choose from {', '.join(ATLAS)}")
    for name in options.entries or ATLAS:
        found = compute_entry(ATLAS[name], options.folder, options.num_networks, seed=options.seed)
        print(f"{found.nads} -> {options.folder / name}.npz")
        for measure, measured in found.measures.items():
            print(f"{'':>4}{measure:<16} {measured}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        commands = {
            "compute": _compute, "forecast": _forecast, "classes": _classes, "run": _run, "merge": _merge,
            "bench": _bench, "doctor": _doctor, "atlas": _atlas, "nearest": _nearest,
        }  # fmt: skip
        return commands[options.command](options)
    except (TypeError, ValueError, OSError, MemoryError, torch.OutOfMemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"\n{interrupt}", file=sys.stderr)
        return 130


def console() -> int:
    """Run one command as a program."""
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is kept: a Ctrl-C while the workers end has nothing to say
    return status


if __name__ == "__main__":
    sys.exit(console())
