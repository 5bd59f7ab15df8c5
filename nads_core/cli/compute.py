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
_OPTIONS: dict[str, tuple[type, str]] = {  # type of the value, and help
    "num-networks": (int, "number of networks to draw (default: 2000)"),
    "num-inputs": (int, "inputs per network, for smoothed and mixed"),
    "readouts": (
        int,
        "orthogonal last layers per network, for smoothed (default: 8 if possible)",
    ),
    "tolerance": (
        float,
        "stop when 1 - overlap with the exact leading subspace is below this value",
    ),
    "num-leading": (int, "dimension of the leading subspace for --tolerance"),
    "num-certain": (int, "stop when this many directions have a certainty of at least 0.9"),
    "num-directions": (int, "number of directions to compute; all by default"),
    "debiasing": (
        str,
        "estimate of the noise-free second moment: shrink, subtract or none (default: shrink)",
    ),
    "output": (
        str,
        "network output to differentiate: index (default: 0), path such as logits.0, "
        "or MODULE:FUNCTION",
    ),
    "name": (str, "name of the architecture in files and figures"),
    "dtype": (str, "type of the networks: float32, bfloat16 or float64 (default: float32)"),
    "batch-size": (int, "networks evaluated together on a GPU; fitted to its memory by default"),
    "seed": (int, "random seed of weights and inputs (default: 0)"),
    "device": (str, "cpu, cuda, ...; a GPU if available by default"),
    "evaluation": (
        str,
        "loop, vmap, graph or factory; factory for networks that differ in more than weights and "
        "buffers",
    ),
    "kernels": (str, "torch, or triton for a kernel for convolutions on a GPU (default: torch)"),
    "checkpoint": (Path, "file from which the same command resumes; next to OUT by default"),
}
_FLAGS = {
    "reinit-readout": "redraw a last layer that is initialised with zeros",
    "equal-weights": "divide each network's vectors by the norm of their mean",
    "quantized": "store 16-bit directions, in a smaller file",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads compute``."""
    parser.add_argument(
        "architecture",
        help="logreg, lenet, vgg11, resnet18, densenet121, {torchvision,timm}:MODEL, "
        "or MODULE:FACTORY",
    )
    parser.add_argument("--out", type=output_file, required=True, help="npz file to write")
    parser.add_argument(
        "--estimator", choices=tuple(ESTIMATORS), help="gradient estimator (default: smoothed)"
    )
    parser.add_argument(
        "--image-shape",
        type=int,
        nargs="+",
        metavar="N",
        help="input shape: C H W, C L, or F (default: 1 32 32)",
    )
    parser.add_argument(
        "--symmetries",
        nargs="*",
        metavar="NAME",
        help="symmetries to average over, or `test` to test which hold",
    )
    for name, (kind, text) in _OPTIONS.items():
        parser.add_argument(f"--{name}", type=kind, help=text)
    for name, text in _FLAGS.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)


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
    names = [name for name in ("num_inputs", "readouts") if name in options]
    chosen = _estimator(estimator, {name: options.pop(name) for name in names})
    if "symmetries" in options:
        symmetries = tuple(options["symmetries"])
        options["symmetries"] = "test" if symmetries == ("test",) else symmetries
    checkpoint = checkpoint or out.with_suffix(".{run}.ckpt")
    out.parent.mkdir(parents=True, exist_ok=True)
    with distributed.process_group(options.pop("device", None)) as device:
        nads = compute_nads(
            architecture, estimator=chosen, checkpoint=checkpoint, device=device, **options
        )
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
    """Return the estimator with the given fields, None for the default; raise a ValueError for a
    field that it does not have.
    """
    from nads_core import directions

    if name == "smoothed" and not given:
        return None
    kind = getattr(directions, ESTIMATORS[name])
    if unknown := given.keys() - {field.name for field in fields(kind)}:
        option = unknown.pop()
        flag = f"--{option.replace('_', '-')} {given[option]}"
        raise ValueError(f"--estimator {name} has no option {flag}: leave it out")
    chosen: Estimator = kind(**given)
    return chosen
