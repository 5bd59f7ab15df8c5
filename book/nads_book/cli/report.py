"""``nads-book report``: describe what a network prefers before training, on one page."""

import argparse
import json
import math
import time
import zipfile
import zlib
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nads_core.cli import output_file
from nads_core.directions import SecondMoment, SmoothedGradient, load_nads, second_moment
from nads_core.directions.certainty import GROUPS
from nads_core.runtime.arguments import require_positive

_VERSIONS = (0, 60, 180, math.inf)  # seconds after which versions are due
_FEWEST, _MOST = 64, 100_000  # networks of the first version, and of the last
_LARGE = 3_072  # numbers of an input, above which networks have fewer inputs, and there are
_MOST_OF_LARGE = 1_024  # at most so many: eigenpairs take the cube of the number of vectors
_STEP = 8  # largest growth of that number, from which the time is predicted
_WORTHWHILE = 1.15  # growth of the number of networks from which on another version is computed
_DRAWING = "When this page was written, more networks were being drawn."
_CODE = """import nads_book as nb
import nads_core as nc

{source}
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
    name: str = "",
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
    stored = load_nads(model) if model.endswith(".npz") else None
    known_shape = stored.directions.shape[1:] if stored else image_shape
    shape = tuple(known_shape or inputs.input_shape(model, images))
    print(f"inputs of shape {' '.join(map(str, shape))}")
    loaded, arguments = None, ["nads" if stored else "moment"]  # of `report_on`, and these as code
    if images:
        loaded = inputs.images_of_shape(images, shape, num_images)
        means_of_parts(loaded, shape)  # raises its errors before networks are drawn
        folder = str(inputs.images_folder(images))
        arguments.append(f"nb.load_folder({folder!r}, {num_images}, size={shape[-1]})")
    out.parent.mkdir(parents=True, exist_ok=True)
    if stored:
        code = _CODE.format(
            source=f"nads = nc.load_nads({model!r})", arguments=", ".join(arguments)
        )
        report_on(stored, loaded, code=code).save(out)
        print(f"{out} is written")
        return 0
    options["output"] = int(output) if output.isdigit() else output
    if math.prod(shape) > _LARGE:  # more networks say more than more inputs of each
        options["estimator"] = SmoothedGradient(num_inputs=4)
    identity = zlib.crc32(repr((model, shape, options)).encode())  # each run has its own checkpoint
    checkpoint = out.with_suffix(f".{identity:08x}.ckpt")
    if checkpoint.exists():
        print(f"resuming from {_stored(checkpoint):,} networks in {checkpoint}")
    factory, page = inputs.drawn_head(model, shape), None
    given = repr(model) if factory is model else f"drawn_head({model!r}, {shape})"
    lines = "".join(f"    {key}={value!r},\n" for key, value in options.items())
    lines = lines.replace("=Smoothed", "=nc.Smoothed")
    try:
        for version, more in _versions(factory, shape, checkpoint, start, 60 * minutes, options):
            if name:
                version.moment.provenance["architecture"] = name
            call = f"moment = nc.second_moment(\n    {given},\n    {shape},\n    {version.count},\n"
            code = _CODE.format(source=f"{call}{lines})", arguments=", ".join(arguments))
            if factory is not model:
                code = f"from nads_book.network_report.inputs import drawn_head\n{code}"
            page = report_on(version.moment, loaded, code=code)
            replace(page, status=_DRAWING * more).save(out)
            written = f"{out} has {version.count:,} networks"
            print(f"{written}; more are being drawn" if more else written)
    except KeyboardInterrupt:
        if page:
            replace(page, status="The same command draws more networks.").save(out)
        raise KeyboardInterrupt(f"stopped: {written}; the same command resumes") from None
    checkpoint.unlink()
    return 0


@dataclass
class _Version:
    """Second moment of some networks, and what it took.

    Args:
        moment: second moment.
        per_network: seconds to draw a network.
        page: seconds that eigenpairs and a page take.
    """

    moment: SecondMoment
    per_network: float
    page: float = 0.0

    @property
    def count(self) -> int:
        """Number of networks."""
        return self.moment.num_networks

    def page_of(self, count: int) -> float:
        """Return the seconds of the page of so many networks: eigenpairs of large inputs take the
        cube of their number.
        """
        return self.page * ((count / self.count) ** 3 if self.moment.is_large else 1.0)

    def seconds_of(self, count: int) -> float:
        """Return how long a version of so many networks, at least as many, will take."""
        return (count - self.count) * self.per_network + self.page_of(count)


def _versions(
    factory: Any,
    shape: tuple[int, ...],
    checkpoint: Path,
    start: float,
    seconds: float,
    options: dict[str, Any],
) -> Iterator[tuple[_Version, bool]]:
    """Yield second moments of more and more networks, and whether more will follow.

    Args:
        factory: network, as `second_moment` takes it.
        shape: shape of an input.
        checkpoint: file of the state, from which an interrupted run is resumed.
        start: time at which the command began, of `time.monotonic`.
        seconds: time from then on in which to draw networks.
        options: options of `second_moment`.
    """

    def compute(count: int) -> _Version:
        moment = second_moment(factory, shape, count, checkpoint=checkpoint, **options)
        return _Version(moment, moment.provenance["seconds"] / count)

    last = compute(max(_FEWEST, _stored(checkpoint)))
    most = _MOST_OF_LARGE if "estimator" in options else _MOST
    for after in sorted({min(version, seconds) for version in _VERSIONS}):
        is_new = after == 0
        while True:
            sizes = range(last.count, min(most, _STEP * last.count) + 1, GROUPS)
            number = bisect(sizes, start + after - time.monotonic(), key=last.seconds_of)
            if not number or sizes[number - 1] < _WORTHWHILE * last.count:
                break
            page = last.page_of(sizes[number - 1])
            last, is_new = compute(sizes[number - 1]), True
            last.page = page
        more = after < seconds and last.count + GROUPS <= most
        if more and not is_new:
            continue
        before = time.monotonic()
        yield last, more
        if not more:
            return
        last.page = time.monotonic() - before


def _stored(checkpoint: Path) -> int:
    """Return the number of networks in a checkpoint; 0 where
    there is none, or one that `second_moment` will reject.
    """
    try:
        with np.load(checkpoint) as file:
            facts = json.loads(str(file["facts"]))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return 0
    return facts["num_networks"]
