"""What a network prefers: its first NADs with their certainty, and the share of each channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from torch import Tensor, unique_consecutive

from nads_book.network_report.parts import Figure, Section, least_width, line_legend, picture
from nads_book.network_report.sample import NEGLIGIBLE, Estimate, Sample, outwards
from nads_book.report import fixed, percent
from nads_core.directions import DENSE_LIMIT, Band, NADs
from nads_core.directions.certainty import CERTAIN

_SHOWN = 10  # directions that are drawn; of interchangeable ones the first
_NAMED = 4  # channels of a sequence that have a legend, at most
_RANGES = 10  # of NADs that are listed
_SPAN = "the space of all their combinations (their span)"
_SIMILAR = 0.1  # certainty from which on a direction is drawn
COMPARED = 64  # leading directions whose span is of interest, at most


def preferences(nads: NADs, sample: Sample) -> Section:
    """Describe the first NADs, and the shares of the channels."""
    shape, groups = sample.shape, interchangeable(nads)[:_SHOWN]
    known = (nads.certainty >= CERTAIN).nonzero().flatten().tolist()
    sentences = _what_is_known(nads, known, groups)
    # The mean energy is known better than that of any direction: its error is left out
    mean = float(sample.energies.mean()) / math.prod(shape)
    value, error = (float(of[0]) / mean for of in (nads.eigenvalues, nads.eigenvalue_std))
    along = Estimate.student(value, error, len(sample))
    if 0 in known and along.differs_from(1):
        sentences.insert(0, f"Along NAD 0 the energy is {along} times that of a random direction.")
    numbers: dict[str, Any] = {
        "known": known,
        "certainty": nads.certainty[:_SHOWN].tolist(),
        "eigenvalues": nads.eigenvalues[:_SHOWN].tolist(),
        "first to mean": along,
    }
    if sample.relative_errors is None:  # these are groups of networks
        numbers["inequality"] = inequality = sample.inequality()
        if not sentences and inequality.low <= 1 < inequality.high < 1 + NEGLIGIBLE:
            most = outwards(math.sqrt(inequality.high - 1), 2, up=True)
            sentences = [
                "No preference is seen: within their errors the eigenvalues are equal. They differ "
                f"from their mean by at most {percent(most)} (root mean square, 95 %), which "
                "leaves room for a few directions that differ by more."
            ]
    opening = "".join(sentences[:1])
    sentences = sentences or _why_nothing_is_known(nads)
    if len(shape) > 1 and shape[0] > 1:
        *shares, common = sample.estimate(
            sample.channels(), lambda energy: energy / energy[..., :-1].sum(-1, keepdims=True)
        )
        numbers |= {"channels": shares, "common": common}
        sentences += _of_channels(shares, common)
    title, figures = "What your network prefers", _gallery(nads, groups)
    return Section(title, sentences, figures, numbers=numbers, opening=opening)


def _gallery(nads: NADs, groups: list[range]) -> list[Figure]:
    """Draw the first NAD of each group; of many pixels only those that are known."""
    shape = tuple(nads.directions.shape[1:])
    in_detail = math.prod(shape) <= DENSE_LIMIT
    pictures = []
    for group in groups:
        first, certainty = nads[group[0]].numpy(), nads.certainty[group[0]]
        if certainty >= CERTAIN or (in_detail and _worth_drawing(nads, group[0])):
            note = f"certainty {_two_digits(certainty)}"
            pictures.append(picture(first, f"NAD {_listed([group])}", note))
    if not pictures:
        return []
    legend = None
    if len(shape) == 2 and 1 < shape[0] <= _NAMED:
        legend = line_legend([f"channel {channel}" for channel in range(shape[0])]), ()
    caption = f"{_CAPTION} {_SIGNS[len(shape)]}"
    return [Figure(pictures, caption, least_width(104, shape), scale=legend)]


def interchangeable(nads: NADs) -> list[range]:
    """Return the indices of all NADs, those together that the symmetries map to one another: their
    eigenvalue is one number.
    """
    _, counts = unique_consecutive(nads.eigenvalues, return_counts=True)
    return [range(*ends) for ends in pairwise([0, *counts.cumsum(0).tolist()])]


def _listed(groups: list[range]) -> str:
    """Return indices as text, such as "0–2, 5 and 8–9"; of many groups the first."""
    texts = [f"{of[0]:,}" + f"–{of[-1]:,}" * (len(of) > 1) for of in groups[:_RANGES]]
    if len(groups) > _RANGES:
        texts.append(f"others up to {groups[-1][-1]:,}")
    *others, last = texts
    return " and ".join(filter(None, [", ".join(others), last]))


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


def _worth_drawing(nads: NADs, index: int) -> bool:
    """Whether more networks would give a similar direction, or one in the same known band."""
    in_band = any(index in band.indices for band in _known_bands(nads))
    return in_band or float(nads.certainty[index]) >= _SIMILAR


def _known_bands(nads: NADs) -> list[Band]:
    """Return the bands among the first directions whose span is known."""
    few = min(_SHOWN, nads.basis.shape[0] // 2)  # a larger span is known by chance
    bands = [band for band in nads.bands if max(band.indices) < few]
    return [band for band in bands if band.certainty >= CERTAIN]


def _two_digits(certainty: float | Tensor) -> str:
    return fixed(outwards(float(certainty), 2, up=False), 2)  # 1.00 only where it is 1


def _what_is_known(nads: NADs, known: list[int], groups: list[range]) -> list[str]:
    """Return what is known: single NADs, and which of these are interchangeable; a band; a span."""
    sentences = []
    if known:
        count = f"{len(known):,} NADs are" if len(known) > 1 else "One NAD is"
        sentences.append(
            f"{count} known with a certainty of at least {CERTAIN}: {_listed(_runs(known))}. More "
            f"networks hardly change {'these' if len(known) > 1 else 'it'}, but can turn others."
        )
    if equal := [of for of in groups if len(of) > 1 and of[0] in known]:
        maps = ", ".join(nads.provenance.get("symmetries", [])).replace("_", " ")
        sentences.append(
            f"Interchangeable NADs: {_listed(equal)}. The symmetries of the network ({maps}) map "
            "those of each set to one another: their energies are equal, and what has a meaning "
            "is their span."
        )
    for band in _known_bands(nads)[:1]:
        sentences.append(
            f"NADs {_listed(_runs(band.indices))} cannot be distinguished from each other, but "
            f"{_SPAN} is known (certainty {_two_digits(band.certainty)})."
        )
    if not sentences:
        few = min(COMPARED, nads.basis.shape[0] // 10)  # a larger span is known by chance
        assert nads.uncertainty is not None
        spans = nads.uncertainty.leading_certainty[:few]
        leading = (spans >= CERTAIN).nonzero().flatten().tolist()
        if any(leading):  # of one direction there is nothing to combine
            span = _two_digits(spans[leading[-1]])
            sentences.append(
                f"No single NAD is known. Of the first {leading[-1] + 1}, {_SPAN} is known "
                f"(certainty {span})."
            )
    return sentences


def _runs(indices: Sequence[int]) -> list[range]:
    """Return ascending indices as ranges of consecutive ones."""
    present = set(indices)
    starts = [i for i in indices if i - 1 not in present]
    ends = [i + 1 for i in indices if i + 1 not in present]
    return [range(start, end) for start, end in zip(starts, ends, strict=True)]


def _why_nothing_is_known(nads: NADs) -> list[str]:
    """Return why no NAD is known yet, and what helps."""
    return [
        "No NAD is known yet.",
        f"The certainty of NAD 0 is {_two_digits(nads.certainty[0])}, and {CERTAIN} is needed.",
        "Draw more networks: --minutes of the command, or num_networks in Python. No number of "
        "networks separates equal eigenvalues. Where a few networks hold most of the energy, "
        "equal_weights=True in Python gives all the same weight.",
    ]


def _of_channels(channels: list[Estimate], common: Estimate) -> list[str]:
    """Return what is decided of the shares of the channels, and of what they have in common."""
    even, sentences = 1 / len(channels), []
    if all(share.high - share.low < even for share in channels):
        listed = ", ".join(share.percent for share in channels)
        sentences.append(f"The channels hold {listed} of the energy.")
    if common.differs_from(even):
        sentences.append(
            f"What the channels have in common, their mean, holds {common.percent}, "
            f"{'more' if common.value > even else 'less'} than channels with independent weights "
            f"would give ({percent(even)})."
        )
    return sentences
