"""``nads-book report``: describe what a network prefers before training, on one page."""

import argparse
import math
import time
import warnings
import zlib
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from nads_core.cli import output_file
from nads_core.directions import NADs, SmoothedGradient, compute_nads
from nads_core.runtime.arguments import require_positive
from nads_core.runtime.files import require_undamaged

_VERSIONS = (0, 60, 180, math.inf)  # seconds after which versions are due
_FEWEST, _MOST = 16, 100_000  # networks of the first version, and of the last
_LARGE = 3_072  # numbers of an input, above which each network has one vector, and there are
_MOST_OF_LARGE = 1_024  # at most so many: eigenpairs take the cube of the number of vectors
_STEP = 8  # largest growth of that number, from which the time is predicted
_WORTHWHILE = 1.15  # growth of the number of networks from which on another version is computed
_DRAWING = "When this page was written, more networks were being drawn."
_CODE = """import nads_book as nb
import nads_core as nc

nads = {nads}
report = nb.report_on({arguments})
report.save("report.html")"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book report``."""
    add = parser.add_argument
    add(
        "model",
        help="{torchvision,timm}:MODEL, MODULE:FACTORY, a name such as lenet, or a file of NADs",
    )
    add("--images", type=Path, help="folder with one folder of images per class, or its parent")
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
    try:
        from nads_book.network_report import inputs, report_on
        from nads_book.network_report.classes import means_of_parts
    except ModuleNotFoundError as error:
        raise ValueError(f"{error}: pip install 'nads-core[report]'") from None
    require_positive(minutes=minutes)
    start, written = time.monotonic(), "no page yet"
    stored = NADs.load(model) if model.endswith(".npz") else None
    known_shape = stored.directions.shape[1:] if stored else image_shape
    shape = tuple(known_shape or inputs.input_shape(model, images))
    print(f"inputs of shape {' '.join(map(str, shape))}")
    loaded, arguments = None, ["nads"]  # of `report_on`, and these as code
    if images:
        loaded = inputs.images_of_shape(images, shape, num_images)
        means_of_parts(loaded, shape)  # raises its errors before networks are drawn
        folder = str(inputs.images_folder(images))
        arguments.append(f"nb.load_folder({folder!r}, {num_images}, size={shape[-1]})")
    out.parent.mkdir(parents=True, exist_ok=True)
    if stored:
        code = _CODE.format(nads=f"nc.NADs.load({model!r})", arguments=", ".join(arguments))
        report_on(stored, loaded, code=code).save(out)
        print(f"{out} is written")
        return 0
    arguments.append("checkpoint='nads.ckpt'")
    options["image_shape"] = shape
    options["output"] = int(output) if output.isdigit() else output
    options["reinit_readout"] = inputs.begins_with_zeros(model, shape)
    if math.prod(shape) > _LARGE:  # more networks say more than more inputs of each
        options["estimator"] = SmoothedGradient(num_inputs=4)
    identity = zlib.crc32(repr((model, options)).encode())  # each run has its own checkpoint
    checkpoint = out.with_suffix(f".{identity:08x}.ckpt")
    if checkpoint.exists():
        require_undamaged(checkpoint)
        print(f"resuming from {_stored(checkpoint)[0]:,} networks in {checkpoint}")
    page = None
    try:
        for nads, warned, more in _versions(model, checkpoint, start, 60 * minutes, options):
            count = nads.provenance["num_networks"]
            given = [f"{model!r}", f"{count}", *(f"{key}={options[key]!r}" for key in options)]
            lines = "".join(f"    {each},\n" for each in [*given, arguments[-1]])
            call = f"nc.compute_nads(\n{lines})".replace("=Smoothed", "=nc.Smoothed")
            page = report_on(
                nads,
                loaded,
                checkpoint=checkpoint,
                warnings=warned,
                code=_CODE.format(nads=call, arguments=", ".join(arguments)),
            )
            replace(page, status=_DRAWING * more).save(out)
            written = f"{out} has {count:,} networks"
            print(f"{written}; more are being drawn" if more else written)
    except KeyboardInterrupt:
        if page:
            replace(page, status="The same command draws more networks.").save(out)
        raise KeyboardInterrupt(f"stopped: {written}; the same command resumes") from None
    checkpoint.unlink()
    return 0


def _versions(
    model: str, checkpoint: Path, start: float, seconds: float, options: dict[str, Any]
) -> Iterator[tuple[NADs, list[str], bool]]:
    """Yield NADs of more and more networks, the texts of warnings, and whether more will follow.

    Args:
        model: name of the network.
        checkpoint: file of the state, from which an interrupted run is resumed.
        start: time at which the command began, of `time.monotonic`.
        seconds: time from then on in which to draw networks.
        options: options of `compute_nads`.
    """
    last = _compute(model, max(_FEWEST, _stored(checkpoint)[0]), checkpoint, options)
    block = last.nads.provenance["block_size"]  # networks that are drawn and stored at a time
    if last.count < block:
        last = _compute(model, block, checkpoint, options)
    most = (_MOST_OF_LARGE if "estimator" in options else _MOST) // block * block
    for after in sorted({min(version, seconds) for version in _VERSIONS}):
        is_new = after == 0
        while True:
            sizes = range(last.count, min(most, _STEP * last.count) + 1, block)
            number = bisect(sizes, start + after - time.monotonic(), key=last.seconds_of)
            if not number or sizes[number - 1] < _WORTHWHILE * last.count:
                break
            last, is_new = _compute(model, sizes[number - 1], checkpoint, options, last), True
        more = after < seconds and last.count + block <= most
        if more and not is_new:
            continue
        before = time.monotonic()
        yield last.nads, last.warnings, more
        if not more:
            return
        last.page = time.monotonic() - before


@dataclass
class _Version:
    """NADs of some networks, and what they took.

    Args:
        nads: NADs.
        warnings: texts of warnings.
        per_network: seconds to draw a network.
        overhead: seconds of everything else: symmetry tests, eigenpairs, and files.
        growth: increase of ``overhead`` for each unit of the third power of ``span``, with which
            the time of eigenpairs grows at most.
        page: seconds that a page takes.
    """

    nads: NADs
    warnings: list[str]
    per_network: float
    overhead: float
    growth: float
    page: float = 0.0

    @property
    def count(self) -> int:
        """Number of networks."""
        return int(self.nads.provenance["num_networks"])

    @property
    def span(self) -> int:
        """Number of directions that the networks span."""
        return max(1, int((self.nads.eigenvalues > 0).sum()))

    def seconds_of(self, count: int) -> float:
        """Return how long a version of so many networks, at least as many, will take."""
        span = min(len(self.nads.basis), self.span * count / self.count)
        overhead = self.overhead + self.growth * (span**3 - self.span**3)
        return (count - self.count) * self.per_network + overhead + self.page


def _compute(
    model: str,
    count: int,
    checkpoint: Path,
    options: dict[str, Any],
    last: _Version | None = None,
) -> _Version:
    """Return the version of so many networks, after the last one of fewer."""
    begun, (stored, drawing) = time.monotonic(), _stored(checkpoint)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        nads = compute_nads(model, count, checkpoint=checkpoint, **options)
    texts = [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
    num_stored, taken = _stored(checkpoint)
    overhead = time.monotonic() - begun - (taken - drawing)
    if num_stored == stored:  # all that are stored, where a checkpoint is resumed
        stored, drawing = 0, 0.0
    made = _Version(nads, texts, (taken - drawing) / max(1, num_stored - stored), overhead, 0.0)
    made.growth = overhead / made.span**3
    if last:
        made.page = last.page
        gained = made.span**3 - last.span**3  # 0 where all networks respond to a few directions
        made.growth = max(0.0, overhead - last.overhead) / gained if gained > 0 else 0.0
    return made


def _stored(checkpoint: Path) -> tuple[int, float]:
    """Return the number of networks in a checkpoint, and the seconds that they took."""
    if not checkpoint.exists():
        return 0, 0.0
    # Mapped, not read: moments can take a gigabyte
    saved = torch.load(checkpoint, weights_only=True, map_location="cpu", mmap=True)
    return int(saved["blocks_done"] * saved["description"]["block_size"]), saved["seconds"]
