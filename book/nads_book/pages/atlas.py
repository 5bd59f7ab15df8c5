"""The page ``10_atlas``: what one change of an architecture does to its directions."""

from collections.abc import Sequence
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import nads_core as nc
from nads_book import figures
from nads_book.atlas import (
    judged,
    load_atlas,
    load_entry_nads,
    most_similar,
)
from nads_book.claims import decides
from nads_book.experiments.evidence import evidence
from nads_book.experiments.formatting import show, table
from nads_book.figures.style import (
    SEQUENTIAL,
    bare,
    show_signed,
    styled,
    subplots,
)
from nads_book.published.waves import spectrum_of
from nads_book.statistics import Measured

POOLING = ("cnn", "cnn-average", "cnn-blurred", "cnn-strided", "cnn-nopool")
LATTICE = ("resnet", "resnet-average", "resnet-flat", "resnet-noskip")
PATCHES = ("vit-patch8", "vit", "mixer", "convnext")
NUM_SHOWN = 4  # NADs of an entry in a figure
NUM_EFFECTS = 10  # in a figure
EXCHANGEABLE = ("vit-patch2", "vit", "vit-patch8", "vit-noposition", "mixer")
BASES = {"cnn": "small CNN", "resnet": "ResNet-18", "vit": "ViT"}
TITLES = {
    "cnn": "max pooling",
    "resnet": "ResNet-18/4",
    "vit": "ViT, patches of 4",
    "vit-patch8": "ViT, patches of 8",
}


def measured(name: str, measure: str) -> Measured:
    """Return a measure of an entry."""
    return load_atlas().measures[name][measure]


# Directions of entries


@styled
def plot_entries(names: Sequence[str], yours: nc.NADs | None = None) -> Figure:
    """Draw the energies of waves and the first NADs of entries, one per row.

    Args:
        names: entries of the atlas.
        yours: NADs that were computed now, in the first row.
    """
    atlas = load_atlas()
    waves = dict(zip(atlas.entries, atlas.waves, strict=True))  # relative to their mean
    rows = [
        (TITLES.get(name, atlas.entries[name].change), load_entry_nads(name), waves[name])
        for name in names
    ]
    if yours:
        rows.insert(0, ("yours", yours, wave_energies(yours)))
    figure, axes = subplots(len(rows), NUM_SHOWN + 1, 0.3 + 1.25 * len(rows))
    axes[0, 0].set_title("energy of waves,\nlog scale")  # first, so that a phone shows it
    for column, axis in enumerate(axes[0, 1:]):
        axis.set_title(f"NAD {column}")
    for (first, *others), (label, nads, energies) in zip(axes, rows, strict=True):
        for axis, direction in zip(others, nads.directions[:NUM_SHOWN, 0], strict=False):
            show_signed(axis, direction)
        decades = np.log10(np.maximum(np.fft.fftshift(energies), 1e-6))
        first.imshow(decades, cmap=SEQUENTIAL, vmin=-2, vmax=1.5)
        bare(first)
        first.set_ylabel(fill(label, 13))
    return figure


def wave_energies(nads: nc.NADs) -> np.ndarray:
    """Return the energies of waves in the second moment of a run, (H, W), relative to their
    mean.
    """
    energies = np.fft.ifftshift(spectrum_of(nads))
    return energies / energies.mean()


def plot_yours(nads: nc.NADs) -> Figure:
    """Draw the reader's NADs above the two entries of the atlas that are most similar to them."""
    nearest = [one.name.removeprefix("atlas/") for one in most_similar(nads, k=4)]
    known = [name for name in nearest if name in load_atlas().entries]
    return plot_entries((known or ["cnn"])[:2], nads)


# Effects of changes


def plot_largest_effects() -> Figure:
    """Draw the changes that move the second moment most."""
    found = load_atlas()
    effects = {name: found.effect(name) for name, entry in found.entries.items() if entry.base}
    largest = sorted(effects, key=lambda name: -effects[name].value)[:NUM_EFFECTS]
    rows = {}
    for name in largest:
        entry, effect = found.entries[name], effects[name]
        rows[f"{BASES.get(entry.base or '', entry.base)}: {entry.change}"] = tuple(effect)
    label = "1 − cosine with the network without the change"
    return figures.plot_intervals({"": {"": rows}}, [label])


def largest_by_factor(base: str) -> pd.Series:
    """Return the largest effect of each factor on the entries of a base, the largest first."""
    found = load_atlas()
    effects = [
        (entry.factor, found.effect(name).value)
        for name, entry in found.entries.items()
        if entry.base == base
    ]
    table = pd.DataFrame(effects, columns=["factor", "effect"])
    return table.groupby("factor")["effect"].max().sort_values(ascending=False)


@decides("downsampling-first")
def _():
    """Decide whether downsampling comes first in the small CNN and in ResNet-18, and what
    follows.
    """
    cnn, resnet = largest_by_factor("cnn"), largest_by_factor("resnet")
    order = ["pooling", "skip", "head", "initialisation", "norm"]
    holds = [*cnn.index[:2]] == ["pooling", "head"] and [*resnet.index[:5]] == order
    return evidence(holds, cnn["pooling"], size="narrow")


def show_counts() -> None:
    """Show how many of the registered predictions held."""
    number = judged(load_atlas())["verdict"].value_counts()
    show(
        f"**{number['held']} of {number.sum()} predictions held, {number['failed']} failed, "
        f"{number['open']} are open.**"
    )


@decides("nonlinearities-down")
def _():
    """Decide whether none of the three predictions held that nonlinearities move energy to low
    frequencies.
    """
    found = judged(load_atlas())
    verdicts = found[found["because"].str.contains("demodulates|moves")]["verdict"]
    num_held = int((verdicts == "held").sum())
    return evidence(len(verdicts) == 3 and not num_held, num_held, size="narrow")


@decides("comb-parts")
def _():
    """Decide whether the global average, strides and skip connections each add to the lattice of
    ResNet-18.
    """
    whole, averaged, flat, skipless = (measured(name, "comb") for name in LATTICE)
    low = whole.interval[0]
    less = all(one.interval[1] < low for one in (averaged, flat, skipless))
    singled = flat.interval[1] < 1.1 < skipless.interval[0]
    return evidence(low > 5 and less and singled, *whole, size="narrow")


@decides("patches-two-levels")
def _():
    """Decide whether two levels explain networks on exchangeable patches, up to 5 % of the
    energy.
    """
    found = [measured(name, "unlike levels") for name in EXCHANGEABLE]
    holds = all(one.interval[0] <= 0.02 and one.interval[1] < 0.05 for one in found)
    return evidence(holds, max(one.value for one in found), size="narrow")


def show_entries() -> None:
    """Display each entry with its effective number and its effect."""
    atlas = load_atlas()
    rows = []
    for name, entry in atlas.entries.items():
        effect = atlas.effect(name) if entry.base else "–"
        rows.append([name, entry.change, measured(name, "effective"), effect])
    table(rows, ["entry", "change", "effective number", "effect, 1 − cosine"])
