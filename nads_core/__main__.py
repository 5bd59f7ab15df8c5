"""Command line: ``python -m nads_core compute resnet18 --out x.npz``, ``run fig1-lenet``, ``merge``, ``bench``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from nads_core import distributed
from nads_core.architectures import ARCHITECTURES, Architecture
from nads_core.bench import METHODS, results_folder, rewrite, run_suite
from nads_core.covariance import DEBIASINGS
from nads_core.directions import compute_nads
from nads_core.experiments import FIGURES, Results, merge_results, results_path, run_experiment
from nads_core.input_gradients import Dipole, MixedDerivative, PointGradient, SmoothedGradient
from nads_core.kernels import KERNELS
from nads_core.presets import PRESETS


def _resolve(name: str) -> Architecture | Callable:
    """Find an architecture of ours by name, or anyone's factory as ``module:function``."""
    if name in ARCHITECTURES:
        return ARCHITECTURES[name]
    module, _, attribute = name.partition(":")
    if not attribute:
        raise ValueError(f"unknown architecture {name!r}: choose from {', '.join(ARCHITECTURES)}, or module:factory")
    sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot load {name!r}: {error}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nads_core", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    compute = commands.add_parser("compute", help="compute the NADs of an architecture")
    compute.add_argument("architecture", help=f"{', '.join(ARCHITECTURES)}, or module:factory")
    compute.add_argument("--out", type=Path, required=True, help="npz file to write")
    compute.add_argument("--num-networks", type=int, default=2_000)
    compute.add_argument("--estimator", choices=("smoothed", "point", "dipole", "mixed"), default="smoothed")
    compute.add_argument("--num-inputs", type=_count, default=16, help="a network, for smoothed and mixed; or auto")
    compute.add_argument("--readouts", type=int, default=1, help="last layers a network, for smoothed")
    compute.add_argument("--tolerance", type=float, help="stop when 1 - overlap with the exact directions is below")
    compute.add_argument("--num-leading", type=int, default=10, help="directions that --tolerance is about")
    compute.add_argument("--dtype", choices=("float32", "bfloat16", "float64"), default="float32")
    compute.add_argument("--image-shape", type=int, nargs=3, default=(1, 32, 32), metavar=("C", "H", "W"))
    compute.add_argument("--debiasing", choices=DEBIASINGS, default="shrink")
    compute.add_argument("--seed", type=int, default=0)
    compute.add_argument("--device", help="cpu, cuda, ...; a GPU if there is one")
    compute.add_argument("--kernels", choices=KERNELS, default="torch", help="triton: kernels of our own, on a GPU")
    compute.add_argument("--checkpoint", type=Path, help="where to keep the state; OUT.ckpt by default")
    compute.add_argument("--quantized", action="store_true", help="store 16-bit directions, at half the size")
    run = commands.add_parser("run", help="train the networks of one of the paper's figures", epilog=_figures())
    run.add_argument("job", help="such as fig1-lenet: a figure and an architecture")
    run.add_argument("--preset", choices=PRESETS, default="demo")
    run.add_argument("--out", type=Path, help="results file; book/results/JOB.json by default, with the shard if any")
    run.add_argument("--time-limit", type=float, metavar="SECONDS", help="stop by then; a next run goes on")
    run.add_argument("--shard", type=_shard, default=(1, 1), metavar="I/N", help="run the I-th of N parts")
    run.add_argument("--workers", type=int, help="networks trained at once on a CPU; one a core by default")
    run.add_argument("--device", help="cpu, cuda, ...; a GPU if there is one")
    run.add_argument("--mixed-precision", action="store_true", default=None, help="bfloat16 layers, on a CPU too")
    bench = commands.add_parser("bench", help="time every architecture and estimator against the limits of the device")
    bench.add_argument("--architectures", nargs="+", choices=tuple(ARCHITECTURES), default=tuple(ARCHITECTURES))
    bench.add_argument("--methods", nargs="+", choices=tuple(METHODS), default=tuple(METHODS))
    bench.add_argument("--no-scale", action="store_true", help="leave growing inputs out")
    bench.add_argument("--large", action="store_true", help="instead: the first 100 NADs at 3 x 224 x 224, minutes")
    bench.add_argument(
        "--table", action="store_true", help="instead: put what is in the files into benchmarks/README.md"
    )
    bench.add_argument("--quick", action="store_true", help="toy sizes, to see that everything runs")
    bench.add_argument("--out", type=Path, help="folder for the results; benchmarks/results by default")
    bench.add_argument("--device", help="cpu, cuda, ...; a GPU if there is one")
    bench.add_argument("--kernels", choices=KERNELS, default="torch")
    merge = commands.add_parser("merge", help="join the results files of shards")
    merge.add_argument("files", type=Path, nargs="+")
    merge.add_argument("--out", type=Path, required=True)
    return parser


def _figures() -> str:
    return "figures: " + "; ".join(f"{name}: {what}" for name, what in FIGURES.items())


def _count(text: str) -> int | str:
    return text if text == "auto" else int(text)


def _shard(text: str) -> tuple[int, int]:
    try:
        part, parts = map(int, text.split("/"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected I/N such as 2/8, got {text!r}") from None
    return part, parts


def _run(options: argparse.Namespace) -> int:
    part, parts = options.shard
    out = options.out or results_path(options.job, options.preset)
    if options.out is None and parts > 1:
        out = out.with_suffix(f".{part}of{parts}.json")
    run = partial(
        run_experiment, options.job, options.preset, time_limit=options.time_limit, workers=options.workers,
        mixed_precision=options.mixed_precision,
    )  # fmt: skip
    with distributed.process_group(options.device) as device:
        if distributed.size() == 1:
            results = run(out=out, shard=options.shard, device=device)
        else:
            results = _run_together(run, out, options.shard, device)
    if results is not None:
        state = "complete" if results.complete else "run it again to go on" if parts == 1 else f"part {part} of {parts}"
        print(f"{results} -> {out} ({state})")
    return 0


def _run_together(run: Callable, out: Path, shard: tuple[int, int], device: str | None) -> Results | None:
    """Let each process of the group run a part of the shard; process 0 joins the parts and returns them."""
    (part, parts), rank, size = shard, distributed.rank(), distributed.size()
    files = [out.with_suffix(f".process{number}.json") for number in range(size)]
    if out.exists() and not files[rank].exists():
        Results.load(out).save(files[rank])  # what an earlier run has done
    mine = run(out=files[rank], shard=(part + parts * rank, parts * size), device=device, progress=rank == 0)
    mine.save(files[rank])
    torch.distributed.barrier()
    if rank:
        return None
    results = merge_results([Results.load(file) for file in files])
    results.save(out)
    for file in files:
        file.unlink()
    return results


def _merge(options: argparse.Namespace) -> int:
    results = merge_results([Results.load(path) for path in options.files])
    results.save(options.out)
    print(f"{results} -> {options.out}")
    return 0


def _bench(options: argparse.Namespace) -> int:
    folder = options.out or results_folder()
    if options.table:
        page = folder.parent / "README.md"
        page.write_text(rewrite(page.read_text("utf8"), folder), "utf8")
        print(f"-> {page}")
        return 0
    for path, result in run_suite(
        folder, architectures=tuple(options.architectures), methods=tuple(options.methods), scale=not options.no_scale,
        large=options.large, device=options.device, kernels=options.kernels, quick=options.quick,
    ):  # fmt: skip
        cost = f"{1e3 * result['seconds_per_network']:10.2f} ms a network" if "parts" in result else ""
        over = f"{result['times_limit']:8.1f} times the limit" if "times_limit" in result else ""
        print(f"{path.stem:<52} {cost} {over}", flush=True)
    return 0


def _compute(options: argparse.Namespace) -> int:
    estimators = {
        "smoothed": lambda: SmoothedGradient(options.num_inputs, readouts=options.readouts),
        "mixed": lambda: MixedDerivative(options.num_inputs),
        "point": PointGradient,
        "dipole": Dipole,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with distributed.process_group(options.device) as device:
        nads = compute_nads(
            _resolve(options.architecture),
            options.num_networks,
            estimator=estimators[options.estimator](),
            image_shape=tuple(options.image_shape),
            debiasing=options.debiasing,
            seed=options.seed,
            device=device,
            dtype=getattr(torch, options.dtype),
            tolerance=options.tolerance,
            num_leading=options.num_leading,
            kernels=options.kernels,
            checkpoint=options.checkpoint or options.out.with_suffix(".ckpt"),
        )
        if distributed.rank() == 0:
            nads.save(options.out, quantized=options.quantized)
            print(f"{nads} -> {options.out}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return {"compute": _compute, "run": _run, "merge": _merge, "bench": _bench}[options.command](options)
    except (TypeError, ValueError, FileNotFoundError, MemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"\n{interrupt}", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
