"""``nads-book report``: describe what a network prefers before training, on one page."""

import argparse
import math
import tempfile
import time
from pathlib import Path
from typing import Any

from nads_core.cli import output_file
from nads_core.directions import SmoothedGradient, second_moment
from nads_core.runtime.arguments import require_positive

_FIRST = 64  # networks of the first page
_MOST = 100_000  # networks
_LARGE = 3_072  # numbers of an input, above which networks have fewer inputs, and there are
_MOST_OF_LARGE = 1_024  # at most so many: eigenpairs take the cube of the number of vectors
_USED = 0.7  # share of the time that is planned, since more networks have more eigenpairs
_WORTHWHILE = 0.15  # growth of the number of networks from which on more are drawn
_DRAWING = "When this page was written, more networks were being drawn."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book report``."""
    add = parser.add_argument
    add("model", help="{torchvision,timm}:MODEL, MODULE:FACTORY, or a name such as lenet")
    add("--images", type=Path, help="folder with one folder of images per class, or its parent")
    add("--out", type=output_file, help="HTML file to write (default: report.html)")
    what = "input shape: C H W, C L, or F; by default that of the images or of a library's model"
    add("--image-shape", type=int, nargs="+", metavar="N", help=what)
    add("--minutes", type=float, help="time for drawing networks (default: 5)")
    what = "network output: index (default: 0), path such as logits.0, or MODULE:FUNCTION"
    add("--output", help=what)
    add("--num-images", type=int, help="images, drawn evenly from the classes (default: 2000)")
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
    """Write a report on a network at 64 networks, and at the end of the time."""
    try:
        from nads_book.network_report import inputs, report_on
        from nads_book.network_report.classes import means_of_parts
    except ModuleNotFoundError as error:
        raise ValueError(f"{error}: pip install 'nads-core[report]'") from None
    require_positive(minutes=minutes)
    end = time.monotonic() + 60 * minutes
    shape = tuple(image_shape or inputs.input_shape(model, images))
    print(f"inputs of shape {' '.join(map(str, shape))}")
    loaded = inputs.images_of_shape(images, shape, num_images) if images else None
    if loaded:
        means_of_parts(loaded, shape)  # raises its errors before networks are drawn
    out.parent.mkdir(parents=True, exist_ok=True)
    options["output"] = int(output) if output.isdigit() else output
    most = _MOST
    if math.prod(shape) > _LARGE:  # more networks say more than more inputs of each
        options["estimator"], most = SmoothedGradient(num_inputs=4), _MOST_OF_LARGE
    factory = inputs.drawn_head(model)
    count, more, page = 0, _FIRST, 0.0
    with tempfile.TemporaryDirectory() as folder:
        options["checkpoint"] = Path(folder, "nads.ckpt")
        try:
            while more:
                begun = time.monotonic()
                count += more
                moment = second_moment(factory, shape, count, **options)
                drawn = time.monotonic()
                if count == _FIRST:
                    report_on(moment, loaded, status=_DRAWING).save(out)
                    print(f"{out} has {count:,} networks; more are being drawn")
                    page = time.monotonic() - drawn
                # The last page takes as long; eigenpairs of many large inputs take their cube
                last_page = page * (max(1.0, (4 * count / 256) ** 3) if moment.is_large else 1)
                left = end - time.monotonic() - last_page
                fitting = int(_USED * left * more / (drawn - begun))
                more = min(3 * count, most - count, fitting)
                more *= more >= max(1, _WORTHWHILE * count)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("stopped: the last page stays, if there was one") from None
        report_on(moment, loaded).save(out)
        print(f"{out} has {count:,} networks")
    return 0
