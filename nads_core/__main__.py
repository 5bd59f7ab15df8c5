"""Command line: ``python -m nads_core compute resnet18 --num-networks 5000 --out resnet18.npz``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from nads_core.architectures import ARCHITECTURES, Architecture
from nads_core.covariance import DEBIASINGS
from nads_core.directions import compute_nads
from nads_core.input_gradients import Dipole, MixedDerivative, PointGradient, SmoothedGradient


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
    compute.add_argument("--num-inputs", type=int, default=16, help="inputs a network, for smoothed and mixed")
    compute.add_argument("--image-shape", type=int, nargs=3, default=(1, 32, 32), metavar=("C", "H", "W"))
    compute.add_argument("--debiasing", choices=DEBIASINGS, default="shrink")
    compute.add_argument("--seed", type=int, default=0)
    compute.add_argument("--device", help="cpu, cuda, ...; a GPU if there is one")
    compute.add_argument("--checkpoint", type=Path, help="where to keep the state; OUT.ckpt by default")
    compute.add_argument("--quantized", action="store_true", help="store 16-bit directions, at half the size")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit status."""
    options = _parser().parse_args(arguments)
    estimators = {
        "smoothed": lambda: SmoothedGradient(options.num_inputs),
        "mixed": lambda: MixedDerivative(options.num_inputs),
        "point": PointGradient,
        "dipole": Dipole,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    try:
        nads = compute_nads(
            _resolve(options.architecture),
            options.num_networks,
            estimator=estimators[options.estimator](),
            image_shape=tuple(options.image_shape),
            debiasing=options.debiasing,
            seed=options.seed,
            device=options.device,
            checkpoint=options.checkpoint or options.out.with_suffix(".ckpt"),
        )
    except (TypeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"\n{interrupt}", file=sys.stderr)
        return 130
    nads.save(options.out, quantized=options.quantized)
    print(f"{nads} -> {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
