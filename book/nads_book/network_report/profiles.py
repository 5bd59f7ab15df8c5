"""Known networks with a similar radial profile: the mean energy of waves of equal frequency."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from nads_book.atlas import ATLAS, load_atlas
from nads_book.atlas.measures import Measured
from nads_book.network_report.pictures import colour_bar, figures, heat_map
from nads_book.network_report.sample import Sample, profile
from nads_book.network_report.sections import Section, as_json, shown, table
from nads_book.report import LABELS

_FEWEST_RINGS, _MOST_NAMED = 6, 6
_CLOSE = 1.5  # average factor between profiles, up to which they count as close


@lru_cache(maxsize=1)
def reference_maps() -> dict[str, np.ndarray]:
    """Return energies of waves (32, 32) relative to their mean, of the paper and of the atlas."""
    with np.load(Path(__file__).with_name("references.npz")) as file:
        maps = {name: file[name].astype(float) for name in file}
    atlas = load_atlas()
    return maps | {
        f"atlas/{name}": waves for name, waves in zip(atlas.entries, atlas.waves, strict=True)
    }


def label(name: str) -> str:
    """Return the name of a known network with what it is."""
    entry = ATLAS.get(name.removeprefix("atlas/"))
    return LABELS.get(name, name) if entry is None else f"{name} ({entry.family}, {entry.change})"


def similar_profiles(sample: Sample, name: str) -> Section:
    """Compare the radial profile with those of known networks, for images of any size."""
    title, grid, spectra = "Which known networks it resembles", sample.grid, sample.spectra()
    maps = reference_maps()
    numbers, rows = profile(spectra, grid)
    known = [profile(waves, waves.shape) for waves in maps.values()]
    common = sorted(set(numbers) & set(known[0][0]) - {0})
    column = [list(numbers).index(ring) for ring in common]
    estimates = sample.estimate(rows[:, column], lambda e: e / e.mean(-1, keepdims=True))
    resolved = [i for i, one in enumerate(estimates) if one.interval[0] > 0]
    if len(resolved) < _FEWEST_RINGS:
        return Section(title, [f"{len(sample)} networks do not decide this."])
    column = [column[i] for i in resolved]
    places = [list(known[0][0]).index(common[i]) for i in resolved]
    logs = np.log10(
        np.stack([np.maximum(values[places], 1e-9) for _, values in known])
    )  # (refs, k)

    def distances(energies: np.ndarray) -> np.ndarray:
        """Return the standard deviation over rings of the logarithmic ratio to each reference."""
        apart = np.log10(np.maximum(energies, 1e-30))[..., None, :] - logs
        return np.asarray(apart.std(-1))

    found = sample.estimate(rows[:, column], distances)
    best = int(np.argmin([one.value for one in found]))
    farther = sample.estimate(
        rows[:, column], lambda e: distances(e) - distances(e)[..., best : best + 1]
    )
    names = list(maps)
    order = np.argsort([one.value for one in found])
    equal = [names[i] for i in order if i != best and not farther[i].interval[0] > 0]
    factors = {names[i]: _Factor(found[i]) for i in order}
    factor, apart = factors[names[best]], f"apart by a factor of {shown(factors[names[best]])}"
    closest = f"The radial profile is closest to that of {label(names[best])}: {apart} on average."
    if factor.interval[0] > _CLOSE:
        closest = (
            f"No known radial profile is close: the nearest, of {label(names[best])}, is {apart} "
            "on average."
        )
    sentences = [
        f"{closest} This compares {len(resolved)} rings of frequency, up to a common factor, with "
        f"{len(names)} known "
        "networks of one channel and 32 × 32 pixels. A profile leaves out orientation and place."
    ]
    if len(equal) > _MOST_NAMED:
        sentences = [
            f"{len(sample)} networks do not decide: {len(equal) + 1} of {len(names)} known "
            f"profiles are as close as the closest."
        ]
    elif equal:
        sentences.append(f"Not distinguished from it: {', '.join(label(one) for one in equal)}.")
    rows_shown = [[label(names[i]), shown(factors[names[i]])] for i in order[:5]]
    body = figures(
        [
            heat_map(spectra.mean(0) / spectra.mean(), name),
            *(heat_map(maps[names[i]], names[i]) for i in order[:3]),
        ],
        "Energy of each wave, the closest three beside it." + colour_bar(),
        110,
    ) + table(["known network", "average factor between the profiles"], rows_shown)
    content = {
        "closest": {names[i]: as_json(factors[names[i]]) for i in order[:10]},
        "not distinguished": equal,
    }
    return Section(title, sentences, body, content, closest if len(equal) <= _MOST_NAMED else "")


class _Factor:
    """A difference of decimal logarithms as a factor, with its interval."""

    def __init__(self, distance: Measured):
        self.value = 10.0**distance.value
        low, high = distance.interval
        self.interval = (10.0 ** max(0.0, low), 10.0**high)
