"""``nads-book report``: describe what a network prefers before training, on one page."""

import argparse
import math
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nads_book.network_report import report_on
from nads_book.network_report.inputs import (
    images_folder,
    images_of_shape,
    input_shape,
    needs_reinit_readout,
)
from nads_core.cli import output_file
from nads_core.directions import NADs, SmoothedGradient, compute_nads
from nads_core.directions.accumulation import read_checkpoint
from nads_core.directions.run import DENSE_LIMIT

_VERSIONS = (60.0, 180.0)  # seconds after which the first versions are due
_FIRST, _FIRST_OF_LARGE = 16, 4  # networks by which the time of one is measured
_MOST = 100_000  # networks
_WORTHWHILE = 1.15  # growth of the number of networks from which on another version is computed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book report``."""
    add = parser.add_argument
    add(
        "model",
        help="{torchvision,timm}:MODEL, MODULE:FACTORY, a name such as lenet, or a file of NADs",
    )
    add(
        "--images",
        type=Path,
        help="folder with one folder of images per class, directly or in train/",
    )
    add("--out", type=output_file, help="HTML file to write (default: report.html)")
    add(
        "--image-shape",
        type=int,
        nargs="+",
        metavar="N",
        help="input shape: C H W, C L, or F; by default that of the images or of the model",
    )
    add("--minutes", type=float, help="time in which the report is refined (default: 5)")
    add(
        "--output",
        help="network output: index (default: 0), path such as logits.0, or MODULE:FUNCTION",
    )
    add("--num-images", type=int, help="images, drawn evenly from the classes (default: 2000)")
    add("--name", help="name of the network on the page")
    add("--seed", type=int, help="random seed of weights and inputs (default: 0)")
    add("--device", help="cpu, cuda, ...; a GPU if available by default")


def run(
    model: str,
    images: Path | None = None,
    out: Path = Path("report.html"),
    image_shape: list[int] | None = None,
    minutes: float = 5,
    output: str = "0",
    num_images: int = 2_000,
    **options: Any,
) -> int:
    """Write a report on a network, and refine it while more networks are drawn."""
    if find_spec("matplotlib") is None or find_spec("PIL") is None:
        raise ValueError("the pictures need matplotlib and Pillow: pip install nads-core[book]")
    start, loaded, images_call = time.monotonic(), None, ""
    nads = NADs.load(model) if model.endswith(".npz") else None
    if nads is None:
        shape = tuple(image_shape) if image_shape else input_shape(model, images)
    else:
        shape = tuple(nads.directions.shape[1:])
    print(f"inputs of shape {' '.join(map(str, shape))}", flush=True)
    if images is not None:
        loaded = images_of_shape(images, shape, num_images)
        folder = str(images_folder(images))
        images_call = f"nc.load_folder({folder!r}, {num_images}, size={shape[1]})"
    out.parent.mkdir(parents=True, exist_ok=True)
    if nads is not None:
        report_on(nads, loaded, images_call=images_call).save(out)
        print(f"-> {out}")
        return 0
    options |= {"output": int(output) if output.isdigit() else output, "image_shape": shape}
    options["reinit_readout"] = needs_reinit_readout(model, shape)
    if math.prod(shape) > DENSE_LIMIT:  # more networks say more than more inputs of each
        options["estimator"] = SmoothedGradient(num_inputs=4)
    checkpoint, written, caught = out.with_suffix(".ckpt"), "", list[str]()
    try:
        for nads, more in _refined(model, checkpoint, start + 60 * minutes, options, caught):
            status = (
                "This is a first version: the page is refined while more networks are drawn."
                if more
                else ""
            )
            report_on(
                nads,
                loaded,
                checkpoint=checkpoint,
                warnings=caught,
                call=repr(model) + f", output={options['output']!r}" * bool(options["output"]),
                images_call=images_call,
                status=status,
            ).save(out)
            written = f"{nads.provenance['num_networks']:,} networks"
            print(f"{_clock(start)} {written} -> {out}", flush=True)
    except KeyboardInterrupt as interrupt:
        done = str(interrupt).partition(";")[0] or "stopped"
        page = f"{out} is of {written}" if written else f"there is no {out} yet"
        resumes = "; the same command resumes" if checkpoint.exists() else ""
        raise KeyboardInterrupt(f"{done}; {page}{resumes}") from None
    checkpoint.unlink()
    return 0


def _refined(
    model: str, checkpoint: Path, deadline: float, options: dict[str, Any], caught: list[str]
) -> Iterator[tuple[NADs, bool]]:
    """Yield NADs of more and more networks until the deadline, and whether more will follow.

    Args:
        model: name of the network.
        checkpoint: file of the state, from which an interrupted run is resumed.
        deadline: time at which to stop, of `time.monotonic`.
        options: options of `compute_nads`.
        caught: list that gets the texts of warnings.
    """
    begun, more = time.monotonic(), True
    large = math.prod(options["image_shape"]) > DENSE_LIMIT
    count = max(_state(checkpoint)[0], _FIRST_OF_LARGE if large else _FIRST)
    nads, overhead = _computed(model, count, checkpoint, options, caught)
    block = nads.provenance["block_size"]
    if count < block:  # which is drawn in less than a second, and alone is in the checkpoint
        count = block
        nads, overhead = _computed(model, count, checkpoint, options, caught)
    for due in sorted({min(begun + after, deadline) for after in _VERSIONS} | {deadline}):
        rate = _state(checkpoint)[1]  # seconds per network
        affordable = max(0.0, due - time.monotonic() - overhead) / rate
        target = min(_MOST, (count + int(affordable)) // block * block)
        if target >= _WORTHWHILE * count:
            count = target
            nads, overhead = _computed(model, count, checkpoint, options, caught)
        more, before = due < deadline and count < _MOST, time.monotonic()
        yield nads, more
        overhead += time.monotonic() - before
        if not more:
            return


def _computed(
    model: str, count: int, checkpoint: Path, options: dict[str, Any], caught: list[str]
) -> tuple[NADs, float]:
    """Return NADs, and the seconds that all but the networks took; list the texts of warnings."""
    start, (_, _, before) = time.monotonic(), _state(checkpoint)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always", UserWarning)
        nads = compute_nads(model, count, checkpoint=checkpoint, **options)
    caught[:] = [str(one.message) for one in record if issubclass(one.category, UserWarning)]
    return nads, time.monotonic() - start - (_state(checkpoint)[2] - before)


def _state(checkpoint: Path) -> tuple[int, float, float]:
    """Return the number of networks in a checkpoint, and the seconds of one and of all."""
    if not checkpoint.exists():
        return 0, math.inf, 0.0
    saved = read_checkpoint(checkpoint)
    count = int(saved["blocks_done"] * saved["description"]["block_size"])
    return count, max(1e-4, saved["seconds"] / max(1, count)), saved["seconds"]


def _clock(start: float) -> str:
    seconds = round(time.monotonic() - start)
    return f"{seconds // 60}:{seconds % 60:02}"
