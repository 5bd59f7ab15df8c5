"""``nads-book class-differences``: compare the classes of an image folder along NADs."""

import argparse
from importlib.util import find_spec
from pathlib import Path

from nads_book.cli.similar import read_nads
from nads_book.photos import load_folder
from nads_core.cli import output_file
from nads_core.data import class_differences

_SHIPPED = ("lenet", "vgg11", "resnet18", "densenet121")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book class-differences``."""
    parser.add_argument(
        "folder",
        type=Path,
        help="folder with one folder of images per class, directly or in train/",
    )
    parser.add_argument(
        "nads",
        nargs="*",
        help="names of NADs, or files (default: lenet vgg11 resnet18 densenet121)",
    )
    parser.add_argument(
        "--out", type=output_file, help="image file of the figure (default: classes.png)"
    )
    parser.add_argument(
        "--num-images", type=int, help="images, drawn evenly from the classes (default: 5000)"
    )


def run(
    folder: Path,
    nads: list[str] | tuple[str, ...] = _SHIPPED,
    out: Path = Path("classes.png"),
    num_images: int = 5_000,
) -> int:
    """Print how sensitive untrained networks are along class differences, and draw the figure."""
    if find_spec("matplotlib") is None:
        raise ValueError("the figure needs matplotlib: pip install matplotlib")
    from nads_book.figures import plot_class_differences

    stems = [Path(name).stem for name in nads]
    labels = [
        stem if stems.count(stem) == 1 else name for stem, name in zip(stems, nads, strict=True)
    ]
    bases = {label: read_nads(name) for label, name in zip(labels, nads, strict=True)}
    sizes = {tuple(basis.directions.shape[2:]) for basis in bases.values()}
    if len(sizes) > 1 or any(len(size) != 2 or size[0] != size[1] for size in sizes):
        raise ValueError(f"NADs of square images of one size are needed, got {sorted(sizes)}")
    ((size, _),) = sizes
    train = folder / "train"
    images = load_folder(
        train if train.is_dir() else folder, num_images, size=size, name=folder.resolve().name
    )
    print(
        f"{len(images):,} {images.source}, {len(images.class_names)} classes, {size} x {size} "
        "pixels"
    )
    results = {
        name: (basis, class_differences(images, basis, progress=True))
        for name, basis in bases.items()
    }
    print("Sensitivity of untrained networks, relative to a random direction")
    print(
        f"{'':>14} {'between classes (95 %)':>31} {'within classes':>26}   NADs with the largest "
        "class variance"
    )
    for name, (_, differences) in results.items():
        low, high = differences.lift_interval
        lift = f"{differences.lift:.2f} ({low:.2f} to {high:.2f})"
        leading = ", ".join(f"NAD {index}" for index in differences.leading(4))
        print(f"{name:>14} {lift:>31} {differences.lift_within:>26.2f}   {leading}")
    plot_class_differences(results).savefig(out, dpi=200)
    print(f"-> {out}")
    return 0
