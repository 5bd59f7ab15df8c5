"""``nads class-differences``: compare the classes of an image folder along NADs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nads_core.cli import output_file
from nads_core.cli.similar import read_nads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nads_core.data import ClassDifferences
    from nads_core.directions import NADs

_SHIPPED = ("lenet", "vgg11", "resnet18", "densenet121")
_NUM_SHOWN = 4  # directions per network
_STYLE: Any = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "font.size": 9}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads class-differences``."""
    parser.add_argument("folder", type=Path, help="folder with one folder of images per class, directly or in train/")
    parser.add_argument("nads", nargs="*", help="names of NADs, or files (default: lenet vgg11 resnet18 densenet121)")
    parser.add_argument("--out", type=output_file, help="image file of the figure (default: classes.png)")
    parser.add_argument("--num-images", type=int, help="images, drawn evenly from the classes (default: 5000)")


def run(
    folder: Path, nads: list[str] | tuple[str, ...] = _SHIPPED, out: Path = Path("classes.png"), num_images: int = 5_000
) -> int:
    """Print how sensitive untrained networks are along class differences, and draw the figure."""
    from nads_core.data import class_differences, load_folder

    if find_spec("matplotlib") is None:
        raise ValueError("the figure needs matplotlib: pip install matplotlib")
    stems = [Path(name).stem for name in nads]
    labels = [stem if stems.count(stem) == 1 else name for stem, name in zip(stems, nads, strict=True)]
    bases = {label: read_nads(name) for label, name in zip(labels, nads, strict=True)}
    sizes = {tuple(basis.directions.shape[2:]) for basis in bases.values()}
    if len(sizes) > 1 or any(len(size) != 2 or size[0] != size[1] for size in sizes):
        raise ValueError(f"NADs of square images of one size are needed, got {sorted(sizes)}")
    ((size, _),) = sizes
    train = folder / "train"
    images = load_folder(train if train.is_dir() else folder, num_images, size=size, name=folder.resolve().name)
    print(f"{len(images):,} {images.source}, {len(images.class_names)} classes, {size} x {size} pixels")
    results = {name: (basis, class_differences(images, basis, progress=True)) for name, basis in bases.items()}
    print("Sensitivity of untrained networks, relative to a random direction")
    print(f"{'':>14} {'between classes (95 %)':>31} {'within classes':>26}   NADs with the largest class variance")
    for name, (_, differences) in results.items():
        low, high = differences.lift_interval
        lift = f"{differences.lift:.2f} ({low:.2f} to {high:.2f})"
        leading = ", ".join(f"NAD {index}" for index in differences.leading(_NUM_SHOWN))
        print(f"{name:>14} {lift:>31} {differences.lift_within:>26.2f}   {leading}")
    plot_class_differences(results).savefig(out, dpi=200)
    print(f"-> {out}")
    return 0


def plot_class_differences(results: Mapping[str, tuple[NADs, ClassDifferences]]) -> Figure:
    """Draw the variance that the classes explain along each NAD, and the NADs with the largest class variance.

    Each network has one row. The grey line is the 95th percentile of random labels. Directions of colour images are
    averaged over their channels.

    Args:
        results: NADs and class differences of each network by its label.

    Raises:
        ImportError: without matplotlib.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.6, 1.75 * len(results) + 0.3), dpi=150, layout="constrained")
        axes = figure.subplots(len(results), 1 + _NUM_SHOWN, squeeze=False, width_ratios=[2.6, *[1.0] * _NUM_SHOWN])
        for row, (label, (nads, differences)) in zip(axes, results.items(), strict=True):
            ranks = np.arange(1, len(nads) + 1)
            row[0].plot(ranks, 100 * differences.explained, ".", color="#0072b2", ms=3, alpha=0.7, mew=0)
            row[0].plot(ranks, 100 * differences.chance, color="0.5", lw=1, label="random labels")
            row[0].set(xscale="log", ylabel="explained by classes (%)", title=label, ylim=(0, None))
            row[0].set_xlabel("rank of the NAD")
            for axis, index in zip(row[1:], differences.leading(_NUM_SHOWN), strict=False):
                image = nads.directions[index].mean(0).numpy()
                limit = np.abs(image).max()
                axis.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
                axis.set(xticks=[], yticks=[], title=f"NAD {index}: {100 * differences.explained[index]:.0f} %")
                axis.spines[:].set_visible(False)
        axes[0, 0].legend()
    return figure
