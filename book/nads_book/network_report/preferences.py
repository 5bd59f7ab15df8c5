"""What a network prefers: first NADs with certainty, channels, and similar known NADs."""

from __future__ import annotations

import math

import torch

from nads_book.atlas.measures import Measured
from nads_book.atlas.similarity import FEWEST, most_similar
from nads_book.network_report.pictures import figures, picture
from nads_book.network_report.profiles import label, similar_profiles
from nads_book.network_report.sample import FEWEST_NETWORKS, Sample
from nads_book.network_report.sections import Section, as_json, decided, shown, table
from nads_core.directions import NADs
from nads_core.directions.nads import SubspaceSimilarity
from nads_core.directions.run import DENSE_LIMIT
from nads_core.directions.uncertainty import CERTAIN

_SHOWN, _OF_CHANNEL = 10, 4
_SIMILAR = 0.1  # certainty from which on a direction is drawn
_COMPARED = 64  # leading directions that ship of each architecture, at most
_MOST_NAMED = 6


def preferences(nads: NADs, sample: Sample) -> Section:
    """Describe the first NADs, joint and of each channel."""
    sentences = _known(nads)
    opening = sentences[0]
    dimension, traces = nads.basis.shape[0], (sample.x * sample.y).sum(2).mean(1).double()
    mean = sample.estimate(traces.numpy()[:, None] / dimension, lambda energy: energy)[0]
    first = _ratio(float(nads.eigenvalues[0]), float(nads.eigenvalue_std[0]), mean)
    if decided(first, 1) and _known_alone(nads, 0):
        along = f"Along NAD 0 the energy is {shown(first)} times that along a random direction."
        sentences.append(along)
        opening = along
    content = {
        "certainty": [round(float(value), 4) for value in nads.certainty[:_SHOWN]],
        "eigenvalues": [float(f"{value:.5g}") for value in nads.eigenvalues[:_SHOWN]],
        "first to mean": as_json(first),
    }
    if sample.unmeasured is None and len(sample) >= FEWEST_NETWORKS:
        effective = sample.effective_directions()
        content["effective directions"] = as_json(effective)
        if effective.interval[0] > 1:
            sentences.append(
                f"Of {dimension:,} directions, {shown(effective)} count (effective number of "
                f"eigenvalues)."
            )
    certain = [i for i in range(min(_SHOWN, len(nads))) if _known_alone(nads, i)]
    drawn = [i for i in range(min(_SHOWN, len(nads))) if worth_drawing(nads, i)]
    drawn = certain if dimension > DENSE_LIMIT else drawn
    pictures = [
        picture(
            nads[i].numpy(),
            f"NAD {i}<br>certainty {_two_digits(float(nads.certainty[i]))}",
            f"NAD {i}",
        )
        for i in drawn
    ]
    body = figures(pictures, _CAPTION[nads.directions.dim()]) if pictures else ""
    if nads.directions.dim() == 4 and nads.directions.shape[1] > 1:
        channels = sample.estimate(
            sample.channels(), lambda e: e / e[..., :-1].sum(-1, keepdims=True)
        )
        content["channels"] = [as_json(one) for one in channels]
        sentences += _of_channels(channels, dimension)
        if dimension <= DENSE_LIMIT or certain:
            body += _channel_figures(nads)
    return Section("What your network prefers", sentences, body, content, opening)


_CAPTION = {
    4: "The directions to which random networks respond most, in order. Colours around grey, or "
    "red and blue, have opposite signs; the sign of the whole has no meaning. One of low certainty "
    "will change with more networks.",
    3: "The directions to which random networks respond most, in order; of long sequences the part "
    "with most energy.",
    2: "The directions to which random networks respond most, in order: one bar for each feature.",
}


def worth_drawing(nads: NADs, index: int) -> bool:
    """Whether more networks would give a similar direction, or one in the same known band."""
    in_band = any(band.certainty >= CERTAIN and index in band.indices for band in nads.bands)
    return in_band or float(nads.certainty[index]) >= _SIMILAR


def _known_alone(nads: NADs, index: int) -> bool:
    return float(nads.certainty[index]) >= CERTAIN


def _two_digits(certainty: float) -> str:
    return f"{math.floor(100 * certainty) / 100:.2f}"  # 1.00 only where it is exactly 1


def _ratio(value: float, error: float, mean: Measured) -> Measured:
    """Return a number over a mean, with errors in first order."""
    relative = math.hypot(error / value if value else math.nan, mean.error / mean.value)
    return Measured(value / mean.value, value / mean.value * relative, mean.num_parts)


def _known(nads: NADs) -> list[str]:
    """Return what is known of the first directions, single, in a band, or together."""
    first = range(min(_SHOWN, len(nads)))
    certain = [i for i in first if _known_alone(nads, i)]
    total = int((nads.certainty >= CERTAIN).sum())
    sentences = []
    if certain:
        names = ", ".join(map(str, certain))
        sentences.append(
            f"{total} NADs are known, each with a certainty of at least {CERTAIN}; of the first "
            f"{len(first)}: {names}."
        )
    for band in nads.bands:
        inside = [i for i in band.indices if i in first]
        if band.certainty >= CERTAIN and len(inside) > 1 and len(band.indices) <= _SHOWN:
            names = f"{', '.join(map(str, band.indices[:-1]))} and {band.indices[-1]}"
            sentences.append(
                f"NADs {names} cannot be distinguished from each other, but their span is known "
                f"({_two_digits(band.certainty)})."
            )
            break
    uncertainty = nads.uncertainty
    assert uncertainty is not None
    few = min(_COMPARED, nads.basis.shape[0] // 10)  # a larger span is known by chance
    together = (uncertainty.leading_certainty[:few] >= CERTAIN).nonzero()
    if not certain and len(together):
        count = int(together[-1]) + 1
        value = float(uncertainty.leading_certainty[count - 1])
        sentences.append(
            f"No single NAD is known, but the span of the first {count} is ({_two_digits(value)})."
        )
    if not sentences:
        number = nads.provenance.get("num_networks", "this number of")
        sentences.append(f"No NAD is known after {number:,} networks.")
    return sentences


def _of_channels(channels: list[Measured], dimension: int) -> list[str]:
    """Return what is decided of the shares of the channels, and of what they have in common."""
    *each, common = channels
    even, sentences = 1 / len(each), []
    other = [number for number, one in enumerate(each) if decided(one, even)]
    shares = ", ".join(shown(one, " %", 100) for one in each)
    if other:
        sentences.append(f"The channels hold {shares} of the energy.")
    elif all(high - low < even / 2 for low, high in (one.interval for one in each)):
        sentences.append(f"No channel is preferred: they hold {shares} of the energy.")
    if decided(common, even):
        verb = "more" if common.value > even else "less"
        sentences.append(
            f"What the channels have in common (grey) holds {shown(common, ' %', 100)}, {verb} "
            f"than channels with "
            f"independent weights would give ({100 * even:.0f} %)."
        )
    return sentences


def _channel_figures(nads: NADs) -> str:
    """Draw the first eigenvectors of each channel's own block of the second moment."""
    channels, rows = nads.directions.shape[1], []
    if "channels" in nads.provenance.get("symmetries", ()):
        return (
            "<p>The channels are exchangeable, by symmetry or by the test below: each channel "
            "alone has the same "
            "directions.</p>"
        )
    weights = nads.eigenvalues.double().clamp(min=0).sqrt()[:, None]
    for channel in range(min(channels, 4)):
        block = weights * nads.directions[:, channel].flatten(1).double()  # (n, H W)
        gram = block.T @ block if block.shape[0] >= block.shape[1] else block @ block.T
        vectors = torch.linalg.eigh(gram).eigenvectors.flip(1).T[:_OF_CHANNEL]
        if block.shape[0] < block.shape[1]:
            vectors = vectors @ block
        for number, vector in enumerate(vectors):
            image = vector.view(1, *nads.directions.shape[2:]).numpy()
            rows.append(
                picture(
                    image, f"channel {channel}, {number}", f"channel {channel}, direction {number}"
                )
            )
    return figures(rows, "The first directions of each channel alone, the others held fixed.", 90)


def similar_networks(nads: NADs, sample: Sample, name: str) -> Section | None:
    """Compare the first NADs with those that ship, or profiles for inputs of another shape."""
    if nads.directions.dim() != 4:
        return None
    if tuple(nads.directions.shape[1:]) != (1, 32, 32):
        return similar_profiles(sample, name)
    uncertainty = nads.uncertainty
    assert uncertainty is not None
    certainty = uncertainty.leading_certainty[:_COMPARED].clone()
    certainty[: FEWEST - 1] = 0
    k = int(certainty.argmax()) + 1
    if float(certainty[k - 1]) < CERTAIN:
        return similar_profiles(sample, name)
    found = most_similar(nads, k)
    best = found[0]
    equal = [label(other.name) for other in found[1:] if other.interval[1] >= best.interval[0]]
    closest = (
        f"The first {k} NADs are closest to those of {label(best.name)}: overlap {_overlap(best)}, "
        f"by chance {best.chance:.2f}."
    )
    sentences = [closest] if best.interval[0] > best.chance else []
    if sentences and equal:
        names = ", ".join(equal[:_MOST_NAMED]) + (
            f" and {len(equal) - _MOST_NAMED} more" if len(equal) > _MOST_NAMED else ""
        )
        sentences.append(f"The intervals do not exclude that others are closer: {names}.")
    if not sentences:
        sentences = [f"{nads.provenance.get('num_networks')} networks do not decide this."]
    rows = [[label(other.name), _overlap(other)] for other in found[:6]]
    content = {
        "k": k,
        "overlap": {
            other.name: [round(x, 4) for x in (other.overlap, *other.interval)] for other in found
        },
    }
    body = table(["known network", f"overlap of the first {k} NADs"], rows)
    return Section(
        "Which known networks it resembles", sentences, body, content, closest if not equal else ""
    )


def _overlap(similarity: SubspaceSimilarity) -> str:
    low, high = similarity.interval
    return f"{similarity.overlap:.2f} ({low:.2f} to {high:.2f})"
