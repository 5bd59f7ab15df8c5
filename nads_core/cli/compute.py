"""``nads compute``: compute the NADs of an architecture."""

from __future__ import annotations

import argparse
import glob
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nads_core.cli import output_file

if TYPE_CHECKING:
    from nads_core.directions import Estimator
    from nads_core.runtime.arguments import Facts

ESTIMATORS = {
    "smoothed": "SmoothedGradient",
    "mixed": "MixedDerivative",
    "point": "PointGradient",
    "dipole": "Dipole",
}
_ESTIMATOR_OPTIONS = ("num_inputs", "readouts")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads compute``."""
    add = parser.add_argument
    add(
        "architecture",
        help="logreg, lenet, vgg11, resnet18, densenet121, {torchvision,timm}:MODEL, "
        "or MODULE:FACTORY",
    )
    add("--out", type=output_file, required=True, help="npz file to write")
    add("--num-networks", type=int, help="number of networks to draw (default: 2000)")
    add("--estimator", choices=tuple(ESTIMATORS), help="gradient estimator (default: smoothed)")
    add("--num-inputs", type=int, help="inputs per network, for smoothed and mixed")
    add(
        "--readouts",
        type=int,
        help="orthogonal last layers per network, for smoothed (default: 8 if possible)",
    )
    add(
        "--tolerance",
        type=float,
        help="stop when 1 - overlap with the exact leading subspace is below this value",
    )
    add("--num-leading", type=int, help="dimension of the leading subspace for --tolerance")
    add(
        "--num-certain",
        type=int,
        help="stop when this many directions have a certainty of at least 0.9",
    )
    add(
        "--dtype",
        choices=("float32", "bfloat16", "float64"),
        help="type of the networks (default: float32)",
    )
    add(
        "--image-shape",
        type=int,
        nargs="+",
        metavar="N",
        help="input shape: C H W, C L, or F (default: 1 32 32)",
    )
    add(
        "--reinit-readout",
        action="store_true",
        help="redraw a last layer that is initialised with zeros",
    )
    add("--num-directions", type=int, help="number of directions to compute; all by default")
    add(
        "--debiasing",
        help="estimate of the noise-free second moment: shrink, subtract or none (default: shrink)",
    )
    add(
        "--symmetries",
        nargs="*",
        metavar="NAME",
        help="symmetries to average over, or `test` to test which hold",
    )
    add(
        "--output",
        type=_index,
        help="network output to differentiate: index (default: 0), path such as logits.0, "
        "or MODULE:FUNCTION",
    )
    add("--name", help="name of the architecture in files and figures")
    add(
        "--batch-size",
        type=int,
        help="networks evaluated together on a GPU; fitted to its memory by default",
    )
    add("--seed", type=int, help="random seed of weights and inputs (default: 0)")
    add("--device", help="cpu, cuda, ...; a GPU if available by default")
    add(
        "--evaluation",
        help="loop, vmap or factory; "
        "factory for networks that differ in more than weights and buffers",
    )
    add(
        "--equal-weights",
        action="store_true",
        help="divide each network's vectors by the norm of their mean",
    )
    add(
        "--kernels", help="torch, or triton for the library's own kernels on a GPU (default: torch)"
    )
    add(
        "--checkpoint",
        type=Path,
        help="file from which the same command resumes; next to OUT by default",
    )
    add("--quantized", action="store_true", help="store 16-bit directions, in a smaller file")


def run(
    architecture: str,
    out: Path,
    estimator: str = "smoothed",
    checkpoint: Path | None = None,
    quantized: bool = False,
    **options: Any,
) -> int:
    """Compute NADs and write them to a file.

    Args:
        architecture: name, ``torchvision:MODEL``, ``timm:MODEL`` or ``MODULE:FACTORY``.
        out: npz file to write.
        estimator: key of `ESTIMATORS`.
        checkpoint: file with the state; next to ``out`` by default.
        quantized: whether to store 16-bit directions.
        **options: options of `compute_nads` and of the estimator.
    """
    from nads_core.directions import compute_nads
    from nads_core.directions.export import nads_path
    from nads_core.runtime import distributed

    out = nads_path(out)
    chosen = _estimator(
        estimator, {name: options.pop(name) for name in _ESTIMATOR_OPTIONS if name in options}
    )
    if "symmetries" in options:
        options["symmetries"] = _symmetries(options["symmetries"])
    if "image_shape" in options:
        options["image_shape"] = tuple(options["image_shape"])
    checkpoint = checkpoint or out.with_suffix(".{run}.ckpt")
    out.parent.mkdir(parents=True, exist_ok=True)
    with distributed.process_group(options.pop("device", None)) as device:
        try:
            nads = compute_nads(
                architecture, estimator=chosen, checkpoint=checkpoint, device=device, **options
            )
        except KeyboardInterrupt as interrupt:
            if done := str(interrupt).partition(";")[0]:  # the state is saved
                raise KeyboardInterrupt(f"{done}; the same command resumes") from None
            raise
        if distributed.rank() == 0:
            nads.save(out, quantized=quantized)
            print(f"{nads} -> {out}")
            _name_checkpoint(checkpoint)
    return 0


def _name_checkpoint(pattern: Path) -> None:
    """Print the size of the checkpoint that a finished run leaves, which may be 100 times that of
    its result.
    """
    files = pattern.parent.glob(glob.escape(pattern.name).replace("{run}", "*"))
    if newest := max(files, key=lambda path: path.stat().st_mtime, default=None):
        size = newest.stat().st_size / 1e6
        print(
            f"{newest} ({size:,.0f} MB) extends the run to more networks: "
            "delete it if none will follow"
        )


def _estimator(name: str, given: Facts) -> Estimator | None:
    """Return the estimator, None for the default; raise a ValueError for an option that it does not
    have.
    """
    from nads_core import directions

    kinds = {key: getattr(directions, kind) for key, kind in ESTIMATORS.items()}
    for option, value in given.items():
        users = [
            key for key, kind in kinds.items() if option in {field.name for field in fields(kind)}
        ]
        if name not in users:
            raise ValueError(
                f"--{option.replace('_', '-')} {value} is not valid with --estimator {name}: "
                f"leave it out, or use {' or '.join(users)}"
            )
    return kinds[name](**given) if given or name != "smoothed" else None


def _index(text: str) -> int | str:
    """Return a number, or the name of a function as it is."""
    return int(text) if text.isdigit() else text


def _symmetries(names: list[str]) -> str | tuple[str, ...]:
    """Return the value of the parameter ``symmetries`` of `compute_nads`."""
    if "test" in names and len(names) > 1:
        raise ValueError(
            "--symmetries test selects the symmetries itself, "
            f"got also {' '.join(sorted(set(names)))}"
        )
    return "test" if "test" in names else tuple(names)
