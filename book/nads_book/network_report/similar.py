"""Which known networks a network resembles: by its first NADs, or by its radial profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nads_book.atlas import ATLAS
from nads_book.atlas.similarity import FEWEST, most_similar
from nads_book.network_report.frequencies import profile, reference_maps
from nads_book.network_report.parts import Figure, Section, Table, heat_maps
from nads_book.network_report.preferences import COMPARED
from nads_book.network_report.sample import Estimate, Sample
from nads_book.report import LABELS
from nads_core.directions import NADs
from nads_core.directions.certainty import CERTAIN

_FEWEST_RINGS, _MOST_NAMED, _LISTED = 6, 6, 6
_RESEMBLING = 1.5  # factor between two profiles, above which they are not similar
_CAPTION = (
    "Energy of each wave, the closest three beside it. Known networks have one channel and 32 × 32 "
    "pixels. A profile leaves out orientation and place."
)


def similar_networks(nads: NADs, sample: Sample) -> Section | None:
    """Compare the first NADs with those that ship; profiles where these cannot be compared."""
    shape = tuple(nads.directions.shape[1:])
    if len(shape) < 3:
        return None
    assert nads.uncertainty is not None
    spans = nads.uncertainty.leading_certainty[FEWEST - 1 : COMPARED]
    if shape != (1, 32, 32) or not (spans >= CERTAIN).any():
        return _by_profiles(nads.name, sample)
    k = FEWEST + int(spans.argmax())
    found = most_similar(nads, k)
    overlaps = {one.name: Estimate(one.overlap, *one.interval) for one in found}
    best, *others = overlaps
    equal = [name for name in others if overlaps[name].high >= overlaps[best].low]
    closest = (
        f"The first {k} NADs are closest to those of {_label(best)}: overlap {overlaps[best]}, by "
        f"chance {found[0].chance:.2f}."
        if overlaps[best].low > found[0].chance
        else ""
    )
    return _section(closest, equal, overlaps, f"overlap of the first {k} NADs")


def _by_profiles(own: str, sample: Sample) -> Section:
    """Compare the radial profile with those of known networks, for images of any size."""
    maps, spectra = reference_maps(), sample.spectra()
    rings, energies = profile(spectra, sample.grid)
    known_rings, known = profile(np.stack([*maps.values()]), (32, 32))
    # Rings that both have and that the networks resolve; the constant wave is left out
    shares = sample.estimate(energies, lambda e: e / e.mean(-1, keepdims=True))
    resolved = rings[[share.low > 0 for share in shares]]
    shared = np.intersect1d(rings[rings > 0], known_rings)
    common = np.intersect1d(resolved, shared)
    if len(common) < _FEWEST_RINGS:
        return _section("", [], {}, "")
    energies = energies[:, np.isin(rings, common)]
    logs = np.log10(np.maximum(known[:, np.isin(known_rings, common)], 1e-9))

    def distances(energies: np.ndarray) -> Any:
        """Return the standard deviation over rings of the logarithmic ratio to each reference."""
        return (np.log10(np.maximum(energies, 1e-30))[..., None, :] - logs).std(-1)

    apart = dict(zip(maps, sample.estimate(energies, distances), strict=True))
    best, *others = sorted(apart, key=lambda name: apart[name].value)
    column = [list(maps).index(best)]
    differences = sample.estimate(energies, lambda e: distances(e) - distances(e)[..., column])
    farther = dict(zip(maps, differences, strict=True))
    equal = [name for name in others if farther[name].low <= 0]
    factors = {name: apart[name].map(lambda x: 10 ** max(0.0, x)) for name in (best, *others)}
    ranges = f"over {len(common)} of {len(shared)} ranges of frequency"
    closest = (
        f"The radial profile is closest to that of {_label(best)}: apart by a factor of "
        f"{factors[best]} on average {ranges}."
    )
    if factors[best].low > _RESEMBLING:
        closest = f"It resembles none of the known networks. {closest}"
    shown = {own: spectra.mean(0)} | {name: maps[name] for name in (best, *others[:2])}
    figure = heat_maps(shown, _CAPTION, 110)
    head = f"average factor between the profiles, {ranges}"
    return _section(closest, equal, factors, head, [figure])


def _section(
    closest: str,
    equal: list[str],
    measures: dict[str, Estimate],
    head: str,
    figures: Sequence[Figure] = (),
) -> Section:
    """Return the section, which names the closest network only where few others are as close.

    Args:
        closest: sentence about the closest network; "" where the data do not decide it.
        equal: names of networks that the intervals do not distinguish from it.
        measures: name of each known network -> similarity, or distance, the closest first.
        head: title of the column of these numbers.
        figures: pictures.
    """
    sentences = [closest]
    if not closest or len(equal) > _MOST_NAMED:
        closest = ""
        sentences = ["The networks drawn so far do not show which known one is closest."]
    elif equal:
        names = ", ".join(_label(name) for name in equal)
        sentences.append(f"The intervals do not exclude that others are as close: {names}.")
    listed = list(measures)[:_LISTED]
    rows = [(_label(name), str(measures[name])) for name in listed]
    return Section(
        "Which known networks it resembles",
        sentences,
        figures,
        [Table(("known network", head), rows)] if rows else [],
        {"closest": {name: measures[name] for name in listed}, "not distinguished": equal},
        "" if equal else closest,
    )


def _label(name: str) -> str:
    """Return what a known network is, and its name in the atlas."""
    entry = ATLAS.get(name.removeprefix("atlas/"))
    if entry is None:
        return LABELS.get(name, name)
    family = "" if entry.family in entry.change else f"{entry.family}, "
    return f"{family}{entry.change} ({name})"
