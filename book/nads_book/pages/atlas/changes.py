"""What one change of an architecture does to its directions: figures and claims of the stored
atlas.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.figure import Figure

from nads_book import figures
from nads_book.atlas import (
    Measured,
    Prediction,
    Score,
    load_atlas,
    load_entry_nads,
    most_similar,
    predictions,
    score,
)
from nads_book.evidence import Evidence, evidence
from nads_book.report import show
from nads_core.directions import NADs

POOLING = ("cnn", "cnn-average", "cnn-blurred", "cnn-strided", "cnn-nopool")
LATTICE = ("resnet", "resnet-average", "resnet-flat", "resnet-noskip")
PATCHES = ("vit-patch8", "vit", "mixer", "convnext")
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


def waves(name: str) -> np.ndarray:
    """Return the energies of waves of an entry, (32, 32), relative to their mean."""
    found = load_atlas()
    return found.waves[list(found.entries).index(name)]


def _decided(holds: object, found: Measured | float) -> Evidence:
    """Return evidence of the stored atlas, whose networks are small."""
    if isinstance(found, Measured):
        return evidence(holds, found.value, *found.interval, size="narrow")
    return evidence(holds, found, size="narrow")


# Figures


def effective_number(nads: NADs) -> float:
    """Return over how many directions the energy of a run is spread; noise of few networks lowers
    it.
    """
    values = nads.eigenvalues.double()
    return float(values.sum().square() / values.square().sum())


def plot_entries(names: Sequence[str], yours: NADs | None = None) -> Figure:
    """Draw the energies of waves and the first NADs of entries, one per row.

    Args:
        names: entries of the atlas.
        yours: NADs that were computed now, in the first row.
    """
    entries = load_atlas().entries
    titles = {TITLES.get(name, entries[name].change): name for name in names}
    bases: dict[str, NADs] = {"yours": yours} if yours else {}
    energies = {"yours": wave_energies(yours)} if yours else {}
    bases |= {title: load_entry_nads(name) for title, name in titles.items()}
    energies |= {title: waves(name) for title, name in titles.items()}
    return figures.plot_entries(bases, energies)


def wave_energies(nads: NADs) -> np.ndarray:
    """Return the energies of waves in the second moment of a run, (H, W), relative to their
    mean.
    """
    spectra = np.abs(np.fft.fft2(nads.directions[:, 0].double().numpy(), norm="ortho")) ** 2
    energies = np.tensordot(nads.eigenvalues.double().numpy(), spectra, 1)
    return energies / energies.mean()


def plot_yours(nads: NADs, num_entries: int = 2) -> Figure:
    """Draw the reader's NADs above the entries of the atlas that are most similar to them."""
    nearest = [one.name.removeprefix("atlas/") for one in most_similar(nads, k=4)]
    known = [name for name in nearest if name in load_atlas().entries]
    return plot_entries((known or ["cnn"])[:num_entries], nads)


def plot_largest_effects(count: int = 10) -> Figure:
    """Draw the changes that move the second moment most, each beside the first NAD of the changed
    network.
    """
    found = load_atlas()
    effects = {name: found.effect(name) for name, entry in found.entries.items() if entry.base}
    largest = sorted(effects, key=lambda name: -effects[name].value)[:count]

    def called(name: str) -> str:
        entry = found.entries[name]
        return f"{BASES.get(entry.base or '', entry.base)}: {entry.change}"

    return figures.plot_effects(
        {called(name): (effects[name].value, *effects[name].interval) for name in largest},
        {called(name): load_entry_nads(name)[0][0] for name in largest},
        "1 − cosine with the network without the change",
    )


# Claims


def largest_by_factor(base: str) -> dict[str, float]:
    """Return the largest effect of each factor on the entries of a base, the largest first."""
    found = load_atlas()
    effects: dict[str, float] = {}
    for name, entry in found.entries.items():
        if entry.base == base:
            value = found.effect(name).value
            effects[entry.factor] = max(value, effects.get(entry.factor, value))
    return dict(sorted(effects.items(), key=lambda item: -item[1]))


def downsampling_moves_most() -> Evidence:
    """Decide whether downsampling comes first in the small CNN and in ResNet-18, and what
    follows.
    """
    cnn, resnet = largest_by_factor("cnn"), largest_by_factor("resnet")
    order = ["pooling", "skip", "head", "initialisation", "norm"]
    holds = [*cnn][:2] == ["pooling", "head"] and [*resnet][:5] == order
    return _decided(holds, cnn["pooling"])


def width_hardly_matters() -> Evidence:
    """Decide whether widths, and the initialisation of the small CNN, move the second moment by
    less than .01.
    """
    found = load_atlas()
    small = max(
        found.effect(name).interval[1]
        for name, entry in found.entries.items()
        if entry.base
        and (entry.factor == "width" or (entry.factor, entry.base) == ("initialisation", "cnn"))
    )
    return _decided(small < 0.01, small)


def averages_hardly_matter() -> Evidence:
    """Decide whether averages in place of maxima move the second moment of the small CNN by less
    than .05.
    """
    found = load_atlas().effect("cnn-average")
    return _decided(found.value < 0.05, found)


def judged() -> list[tuple[Prediction, Score]]:
    """Return the registered predictions with their outcomes, without those that predict nothing."""
    found = ((one, score(one, load_atlas())) for one in predictions())
    return [(one, outcome) for one, outcome in found if outcome is not None]


def show_counts() -> None:
    """Show how many of the registered predictions held."""
    number = Counter(outcome.verdict for _, outcome in judged())
    show(
        f"**{number['held']} of {number.total()} predictions held, {number['failed']} failed, "
        f"{number['open']} are open.**"
    )


def nonlinearities_lower_frequencies() -> Evidence:
    """Decide whether none of the three predictions held that nonlinearities move energy to low
    frequencies.
    """
    verdicts = [
        outcome.verdict
        for one, outcome in judged()
        if "demodulates" in one.because or "moves" in one.because
    ]
    return _decided(len(verdicts) == 3 and "held" not in verdicts, verdicts.count("held"))


def parts_of_the_comb() -> Evidence:
    """Decide whether the global average, strides and skip connections each add to the lattice of
    ResNet-18.
    """
    whole, averaged, flat, skipless = (measured(name, "comb") for name in LATTICE)
    low = whole.interval[0]
    less = all(one.interval[1] < low for one in (averaged, flat, skipless))
    singled = flat.interval[1] < 1.1 < skipless.interval[0]
    return _decided(low > 5 and less and singled, whole)


def _effective(*endings: str) -> Iterable[Measured]:
    return (measured(f"resnet{ending}", "effective") for ending in endings)


def strides_spread() -> Evidence:
    """Decide whether averages in place of strides leave less than a fifth of the directions, with
    both weights.
    """
    strided, averaged, he, he_averaged = _effective("", "-average", "-he", "-he-average")
    holds = (
        strided.interval[0] > 5 * averaged.interval[1]
        and he.interval[0] > 5 * he_averaged.interval[1]
    )
    return _decided(holds, strided.value / averaged.value)


def skips_depend_on_weights() -> Evidence:
    """Decide whether skip connections narrow the preference with PyTorch's weights, and widen it
    with He's.
    """
    skip, without, he, he_without = _effective("", "-noskip", "-he", "-he-noskip")
    holds = without.interval[0] > skip.interval[1] and he_without.interval[1] < he.interval[0]
    return _decided(holds, without.value / skip.value)


def patches_have_two_levels() -> Evidence:
    """Decide whether two levels explain networks on exchangeable patches, up to 5 % of the
    energy.
    """
    found = [measured(name, "unlike levels") for name in EXCHANGEABLE]
    holds = all(one.interval[0] <= 0.02 and one.interval[1] < 0.05 for one in found)
    return _decided(holds, max(one.value for one in found))


def share_in_first(name: str, count: int) -> float:
    """Return the share of the energy along the first NADs of an entry."""
    found = load_atlas()
    values = found.eigenvalues[list(found.entries).index(name)]
    return float(values[:count].sum() / values.sum())


def first_level_has_all() -> Evidence:
    """Decide whether more than 99 % of a transformer's energy is along its first P² NADs, for
    patches of 4 and 8.
    """
    shares = [
        100 * share_in_first(name, count) for name, count in (("vit", 16), ("vit-patch8", 64))
    ]
    return _decided(min(shares) > 99, round(shares[0], 1))


def border_not_zeros() -> Evidence:
    """Decide whether the frame is stronger without any padding than with zeros."""
    none, zeros = measured("cnn-valid", "border"), measured("cnn", "border")
    return _decided(none.interval[1] < zeros.interval[0], none)


def unevenness(name: str) -> float:
    """Return the share of the energy that would have to move for waves and their partners to have
    equal energies.
    """
    energies = waves(name)
    return float(np.abs(energies - np.roll(energies, (16, 16), (0, 1))).sum() / 2 / energies.sum())


def waves_have_partners() -> Evidence:
    """Decide whether ResNet-18 prefers waves as much as their partners, with tanh and ReLU, but not
    without skips.
    """
    tanh, relu, skipless = map(unevenness, ("resnet-tanh", "resnet", "resnet-noskip"))
    return _decided(max(tanh, relu) < 0.03 and skipless > 0.1, tanh)


CLAIMS = {
    "downsampling-first": downsampling_moves_most,
    "width-hardly": width_hardly_matters,
    "max-or-average": averages_hardly_matter,
    "nonlinearities-down": nonlinearities_lower_frequencies,
    "comb-parts": parts_of_the_comb,
    "strides-spread": strides_spread,
    "skips-depend": skips_depend_on_weights,
    "patches-two-levels": patches_have_two_levels,
    "first-level": first_level_has_all,
    "zeros-not-cause": border_not_zeros,
    "odd-activation": waves_have_partners,
}
