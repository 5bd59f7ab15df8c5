"""What a network prefers: its first NADs with their certainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import unique_consecutive

from nads_book.experiments.formatting import fixed
from nads_book.network_report.parts import Figure, Section, least_width, picture
from nads_book.network_report.sample import Sample, differs
from nads_book.statistics import Measured
from nads_core.directions import NADs

CERTAIN = 0.9  # certainty from which on a NAD counts as known
_DRAWN = 0.3  # certainty from which on it is drawn
_SHOWN = 10  # directions that are drawn; of interchangeable ones the first
_LISTED = 10  # ranges of NADs, at most
_CAPTION = (
    "The directions to which random networks respond most, in order; of interchangeable ones the "
    "first. The sign of a whole direction has no meaning. One of low certainty will change with "
    "more networks."
)
_SIGNS = {  # by the number of axes of an input
    3: "Colours on either side of grey, or red and blue, have opposite signs.",
    2: "One line per channel, around zero; of long sequences the part with most energy.",
    1: "One bar per feature, around zero.",
}


def preferences(nads: NADs, sample: Sample) -> Section:
    """Describe the first NADs, and which are known."""
    shape, groups = sample.shape, interchangeable(nads)[:_SHOWN]
    known = (nads.certainty >= CERTAIN).nonzero().flatten().tolist()
    if known:
        sentences = [
            f"NADs known with a certainty of at least {CERTAIN}: {listed(known)}. More networks "
            "hardly change these, but can turn others."
        ]
    else:
        sentences = [
            "No NAD is known yet.",
            f"The certainty of NAD 0 is {fixed(float(nads.certainty[0]), 2)}, and {CERTAIN} is "
            "needed. Draw more networks: --minutes of the command, or num_networks in Python. No "
            "number of networks separates equal eigenvalues. Where a few networks hold most of "
            "the energy, equal_weights=True in Python gives all the same weight.",
        ]
    if equal := [listed(of) for of in groups if len(of) > 1 and of[0] in known]:
        maps = ", ".join(nads.provenance.get("symmetries", [])).replace("_", " ")
        sentences.append(
            f"Interchangeable NADs: {'; '.join(equal)}. The symmetries of the network ({maps}) map "
            "those of each set to one another: their energies are equal, and what has a meaning "
            "is their span."
        )
    # The mean energy is known better than that of any direction: its error is left out
    mean = float(sample.energies.mean()) / math.prod(shape)
    value, error = (float(of[0]) / mean for of in (nads.eigenvalues, nads.eigenvalue_std))
    along = Measured(value, error, len(sample.x))
    if 0 in known and differs(along, 1):
        sentences.insert(0, f"Along NAD 0 the energy is {along} times that of a random direction.")
    numbers = {
        "known": known,
        "certainty": nads.certainty[:_SHOWN].tolist(),
        "eigenvalues": nads.eigenvalues[:_SHOWN].tolist(),
        "first to mean": along,
    }
    pictures = []
    for of in groups:
        if (certainty := float(nads.certainty[of[0]])) >= _DRAWN:
            note = f"certainty {fixed(certainty, 2)}"
            pictures.append(picture(nads[of[0]].numpy(), f"NAD {listed(of)}", note))
    caption = f"{_CAPTION} {_SIGNS[len(shape)]}"
    figures = [Figure(pictures, caption, least_width(104, shape))] if pictures else []
    opening = sentences[0] if known else ""
    return Section("What your network prefers", sentences, figures, numbers, opening)


def interchangeable(nads: NADs) -> list[range]:
    """Return the indices of all NADs, those together that the symmetries map to one another: their
    eigenvalue is one number.
    """
    _, counts = unique_consecutive(nads.eigenvalues, return_counts=True)
    return [range(*ends) for ends in pairwise([0, *counts.cumsum(0).tolist()])]


def listed(indices: Sequence[int]) -> str:
    """Return ascending indices as text, such as "0–2, 5, 8–9"; of many ranges the first."""
    present = set(indices)
    starts = [i for i in indices if i - 1 not in present]
    ends = [i for i in indices if i + 1 not in present]
    pairs = zip(starts, ends, strict=True)
    texts = [f"{start:,}–{end:,}" if end > start else f"{start:,}" for start, end in pairs]
    return ", ".join(texts[:_LISTED]) + ", …" * (len(texts) > _LISTED)
