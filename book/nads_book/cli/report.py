"""``nads-book report``: describe what a network prefers before training, on one page."""

import argparse
import math
import tempfile
import time
from pathlib import Path
from typing import Any

from nads_core.cli import output_file
from nads_core.directions import SecondMoment, SmoothedGradient, load_nads, second_moment
from nads_core.runtime.arguments import require_positive

_FIRST = 64  # networks of the first page
_MOST = 100_000  # networks
_LARGE = 3_072  # numbers of an input, above which networks have fewer inputs, and there are
_MOST_OF_LARGE = 1_024  # at most so many: eigenpairs take the cube of the number of vectors
_USED = 0.7  # share of the time that is planned, since more networks have more eigenpairs
_WORTHWHILE = 0.15  # growth of the number of networks from which on more are drawn
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
    add("--minutes", type=float, help="time for drawing networks (default: 5)")
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
    """Write a report on a network at 64 networks, and at the end of the time."""
    try:
        from nads_book.network_report import inputs, report_on
        from nads_book.network_report.classes import means_of_parts
    except ModuleNotFoundError as error:
        raise ValueError(f"{error}: pip install 'nads-core[report]'") from None
    require_positive(minutes=minutes)
    end = time.monotonic() + 60 * minutes
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
        source = f"nads = nc.load_nads({model!r})"
        code = _CODE.format(source=source, arguments=", ".join(arguments))
        report_on(stored, loaded, code=code).save(out)
        print(f"{out} is written")
        return 0
    options["output"] = int(output) if output.isdigit() else output
    if math.prod(shape) > _LARGE:  # more networks say more than more inputs of each
        options["estimator"] = SmoothedGradient(num_inputs=4)
    most = _MOST_OF_LARGE if "estimator" in options else _MOST
    factory = inputs.drawn_head(model, shape)

    def write(moment: SecondMoment, status: str) -> None:
        if name:
            moment.provenance["architecture"] = name
        given = repr(model) if factory is model else f"drawn_head({model!r}, {shape})"
        given = [given, f"{shape}", f"{count}", *(f"{key}={options[key]!r}" for key in options)]
        lines = "".join(f"    {each},\n" for each in given).replace("=Smoothed", "=nc.Smoothed")
        source = f"moment = nc.second_moment(\n{lines})"
        code = _CODE.format(source=source, arguments=", ".join(arguments))
        if factory is not model:
            code = f"from nads_book.network_report.inputs import drawn_head\n{code}"
        report_on(moment, loaded, code=code, status=status).save(out)
        print(f"{out} has {count:,} networks{'; more are being drawn' * bool(status)}")

    count, more = 0, _FIRST
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder, "nads.ckpt")
        try:
            while more >= max(1, _WORTHWHILE * count):
                begun = time.monotonic()
                count += more
                moment = second_moment(factory, shape, count, checkpoint=checkpoint, **options)
                per_network = (time.monotonic() - begun) / more
                before_page = time.monotonic()
                if count == _FIRST:
                    write(moment, _DRAWING)
                    page = time.monotonic() - before_page
                # The last page takes as long; eigenpairs of many large inputs take their cube
                last_page = page * (max(1.0, (4 * count / 256) ** 3) if moment.is_large else 1)
                fitting = int(_USED * (end - time.monotonic() - last_page) / per_network)
                more = min(3 * count, most - count, fitting)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("stopped: the last page stays, if there was one") from None
        write(moment, "")
    return 0
