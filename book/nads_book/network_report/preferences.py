"""What a network prefers: its first NADs with their certainty, and the share of each channel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse.linalg import svds
from torch import Tensor

from nads_book.network_report.parts import Figure, Section, least_width, line_legend, picture
from nads_book.network_report.sample import NEGLIGIBLE, Estimate, Sample
from nads_book.report import percent
from nads_core.directions import NADs
from nads_core.directions.run import DENSE_LIMIT
from nads_core.directions.uncertainty import CERTAIN, DegenerateCluster

_SHOWN, _OF_CHANNEL = 10, 4  # directions that are drawn, and of each channel
_NAMED = 4  # channels of a sequence that have a legend, at most
_SPAN = "the space of all their combinations (their span)"
_SIMILAR = 0.1  # certainty from which on a direction is drawn
_FEWEST = 30  # networks of equal weight from which on certainties are told
COMPARED = 64  # leading directions whose span is of interest, at most


def preferences(nads: NADs, sample: Sample) -> Section:
    """Describe the first NADs, joint and of each channel."""
    shape, first = sample.shape, range(min(_SHOWN, len(nads)))
    effective = float(nads.provenance.get("effective_networks", math.inf))
    enough = effective >= _FEWEST  # a few networks span directions that others do not share
    certain = [i for i in first if enough and nads.certainty[i] >= CERTAIN]
    sentences = _what_is_known(nads, certain) if enough else []
    # The mean energy is known better than that of any direction: its error is left out
    mean = float((sample.x * sample.y).sum(2).mean()) / math.prod(shape)
    value, error = (float(of[0]) / mean for of in (nads.eigenvalues, nads.eigenvalue_std))
    along = Estimate.student(value, error, len(sample))
    if 0 in certain and along.differs_from(1):
        sentences.insert(0, f"Along NAD 0 the energy is {along} times that of a random direction.")
    numbers: dict[str, Any] = {
        "certainty": nads.certainty[:_SHOWN].tolist(),
        "eigenvalues": nads.eigenvalues[:_SHOWN].tolist(),
        "first to mean": along,
    }
    if sample.relative_errors is None:  # these are networks
        numbers["inequality"] = inequality = sample.inequality()
        if enough and not sentences and inequality.low <= 1 < inequality.high < 1 + NEGLIGIBLE:
            sentences = [
                "No preference is seen: within their errors the eigenvalues are equal. They differ "
                f"from their mean by at most {percent(math.sqrt(inequality.high - 1))} (root mean "
                "square, 95 %), which leaves room for a few directions that differ by more."
            ]
    opening = "".join(sentences[:1])
    if not sentences:
        sentences = ["No NAD is known yet."]
        if not enough:
            sentences.append(f"The networks count as {effective:.2g} of equal weight, too few.")
    drawn = first if math.prod(shape) <= DENSE_LIMIT else certain
    pictures = [
        picture(nads[i].numpy(), f"NAD {i}", f"certainty {_two_digits(nads.certainty[i])}")
        for i in drawn
        if enough and _worth_drawing(nads, i)
    ]
    figures = []
    if pictures:
        caption, legend = f"{_CAPTION} {_SIGNS[len(shape)]}", None
        if len(shape) == 2 and 1 < shape[0] <= _NAMED:
            legend = line_legend([f"channel {channel}" for channel in range(shape[0])]), ()
        figures.append(Figure(pictures, caption, least_width(104, shape), scale=legend))
    if len(shape) > 1 and shape[0] > 1:
        *shares, common = sample.estimate(
            sample.channels(), lambda energy: energy / energy[..., :-1].sum(-1, keepdims=True)
        )
        numbers |= {"channels": shares, "common": common}
        sentences += _of_channels(shares, common)
        if pictures:
            figures.append(_each_channel(nads))
    title = "What your network prefers"
    return Section(title, sentences, figures, numbers=numbers, opening=opening)


_CAPTION = (
    "The directions to which random networks respond most, in order. The sign of a whole direction "
    "has no meaning. One of low certainty will change with more networks."
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


def _known_bands(nads: NADs) -> list[DegenerateCluster]:
    """Return the bands among the first directions whose span is known."""
    few = min(_SHOWN, nads.basis.shape[0] // 2)  # a larger span is known by chance
    bands = [band for band in nads.bands if max(band.indices) < few]
    return [band for band in bands if band.certainty >= CERTAIN]


def _two_digits(certainty: float | Tensor) -> str:
    return f"{math.floor(100 * float(certainty)) / 100:.2f}"  # 1.00 only where it is exactly 1


def _what_is_known(nads: NADs, certain: list[int]) -> list[str]:
    """Return what is known of the first directions: single ones, a band, or a span."""
    sentences = []
    if certain:
        total = int((nads.certainty >= CERTAIN).sum())
        sentences.append(
            f"NADs that are known with a certainty of at least {CERTAIN}: {total:,}; of the first "
            f"{_SHOWN}: {', '.join(map(str, certain))}."
        )
    for band in _known_bands(nads)[:1]:
        *others, last = band.indices
        sentences.append(
            f"NADs {', '.join(map(str, others))} and {last} cannot be distinguished from each "
            f"other, but {_SPAN} is known (certainty {_two_digits(band.certainty)})."
        )
    if not sentences:
        few = min(COMPARED, nads.basis.shape[0] // 10)  # a larger span is known by chance
        assert nads.uncertainty is not None
        spans = nads.uncertainty.leading_certainty[:few]
        known = (spans >= CERTAIN).nonzero().flatten().tolist()
        if any(known):  # of one direction there is nothing to combine
            span = _two_digits(spans[known[-1]])
            sentences.append(
                f"No single NAD is known. Of the first {known[-1] + 1}, {_SPAN} is known "
                f"(certainty {span})."
            )
    return sentences


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


def _each_channel(nads: NADs) -> Figure:
    """Draw the first eigenvectors of each channel's own block of the second moment."""
    channels, *grid = nads.directions.shape[1:]
    weights = np.sqrt(nads.eigenvalues.double().clamp(min=0).numpy())[:, None]
    pictures = []
    for channel in range(min(channels, 4)):
        block = weights * nads.directions[:, channel].flatten(1).double().numpy()  # (n, H W)
        fewer = min(block.shape)
        start = np.random.default_rng(0).normal(size=fewer)
        *_, vectors = svds(block, min(_OF_CHANNEL, fewer - 1), v0=start)  # in ascending order
        pictures += [
            picture(vector.reshape(1, *grid), f"channel {channel}", f"direction {number}")
            for number, vector in enumerate(vectors[::-1])
        ]
    caption = (
        "The first directions of each channel, the others held fixed; channels that are "
        "exchangeable have the same."
    )
    return Figure(pictures, caption, least_width(90, (channels, *grid)))
