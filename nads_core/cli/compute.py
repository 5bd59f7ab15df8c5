"""``nads compute``: the arguments of `compute_nads` as options."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from nads_core.cli import output_file

ESTIMATORS = {
    "smoothed": "SmoothedGradient",
    "mixed": "MixedDerivative",
    "point": "PointGradient",
    "dipole": "Dipole",
}
_KINDS: dict[str, Callable[[str], Any]] = {  # of the options that are no text
    "num_networks": int,
    "num_directions": int,
    "num_certain": int,
    "seed": int,
    "workers": int,
    "checkpoint": output_file,
}
_OWN = ("factory", "image_shape", "estimator", "symmetries", "progress")  # described below


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads compute``."""
    from nads_core.directions.compute import compute_nads

    help_of = _help(inspect.getdoc(compute_nads) or "")
    parser.add_argument("factory", help=help_of["factory"])
    parser.add_argument("--out", type=output_file, required=True, help="npz file to write")
    parser.add_argument(
        "--image-shape",
        type=int,
        nargs="+",
        metavar="N",
        default=[1, 32, 32],
        help=help_of["image_shape"],
    )
    parser.add_argument(
        "--estimator", choices=ESTIMATORS, default="smoothed", help=help_of["estimator"]
    )
    parser.add_argument("--num-inputs", type=int, help="inputs per network, for smoothed and mixed")
    parser.add_argument("--readouts", type=int, help="last layers per network, for smoothed")
    parser.add_argument("--symmetries", nargs="*", metavar="NAME", help=help_of["symmetries"])
    for name, parameter in inspect.signature(compute_nads).parameters.items():
        if name in _OWN:
            continue
        flag = f"--{name.replace('_', '-')}"
        if parameter.default is False:
            parser.add_argument(flag, action="store_true", help=help_of[name])
        else:
            parser.add_argument(flag, type=_KINDS.get(name, str), help=help_of[name])
    parser.add_argument("--quantized", action="store_true", help="store 16-bit directions")


def _help(docstring: str) -> dict[str, str]:
    """Return what a docstring says of each argument."""
    section = docstring.partition("Args:\n")[2].partition("\n\nReturns:")[0]
    entries = re.findall(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", section, re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.split()).replace("%", "%%") for name, text in entries}


def run(
    factory: str,
    out: Path,
    image_shape: list[int],
    estimator: str,
    quantized: bool = False,
    **options: Any,
) -> int:
    """Compute NADs and write them to a file.

    Args:
        factory: name, ``torchvision:MODEL``, ``timm:MODEL`` or ``MODULE:FACTORY``.
        out: npz file to write.
        image_shape: shape of an input.
        estimator: key of `ESTIMATORS`.
        quantized: whether to store 16-bit directions.
        **options: options of `compute_nads` and of the estimator.
    """
    from nads_core import directions

    # Before anything is computed
    directions.files.nads_path(out).parent.mkdir(parents=True, exist_ok=True)
    kind = getattr(directions, ESTIMATORS[estimator])
    given = {name: options.pop(name) for name in ("num_inputs", "readouts") if name in options}
    if estimator == "smoothed":
        given.setdefault("readouts", "auto")
    if unknown := given.keys() - {field.name for field in fields(kind)}:
        flag = f"--{unknown.pop().replace('_', '-')}"
        raise ValueError(f"--estimator {estimator} has no option {flag}: leave it out")
    if "symmetries" in options:
        options["symmetries"] = tuple(options["symmetries"])
    checkpoint = options.setdefault("checkpoint", out.with_suffix(".checkpoint.npz"))
    nads = directions.compute_nads(factory, tuple(image_shape), estimator=kind(**given), **options)
    nads.save(out, quantized=quantized)
    size = checkpoint.stat().st_size / 1e6
    print(f"{nads} -> {out}")
    print(
        f"{checkpoint} ({size:,.0f} MB) extends the run to more networks: delete it if none follow"
    )
    return 0
