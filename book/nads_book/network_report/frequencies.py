"""At which frequencies networks are sensitive, or to which features of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from nads_book.atlas.measures import Measured
from nads_book.network_report.pictures import Curve, chart, colour_bar, figures, heat_map
from nads_book.network_report.profiles import reference_maps
from nads_book.network_report.sample import FINE, Sample, profile, radii, ring_centres
from nads_book.network_report.sections import Section, as_json, decided, shown, table
from nads_book.report import LABELS, percent

_COARSE = 1 / 16  # cycles per pixel, up to which a wave is coarse: 16 pixels or longer
_STRIDES = (2, 4, 8, 16, 32)
_STANDS_OUT = 1.5  # ratio from which waves at multiples of a stride are mentioned
_SHOWN_REFERENCES = ("lenet", "resnet18")


def frequencies(sample: Sample, name: str) -> Section:
    """Describe the energy of waves of images or sequences, or that of the features of rows."""
    title, grid, spectra = "At which frequencies", sample.grid, sample.spectra()
    if len(sample.shape) == 1:
        return _features(sample, spectra)
    numbers, of_rings = profile(spectra, grid)
    masks, keys = _masks(grid)
    rows = np.concatenate([of_rings, spectra.reshape(len(spectra), -1) @ masks], axis=1)

    def ratios(energies: np.ndarray) -> np.ndarray:
        ring, others = np.split(energies, [len(numbers)], axis=-1)
        mean = others[..., :1]
        return np.concatenate([ring / mean, others[..., 1::2] / others[..., 2::2]], axis=-1)

    estimates = sample.estimate(rows, ratios)
    rings, found = (
        estimates[: len(numbers)],
        dict(zip(keys, estimates[len(numbers) :], strict=True)),
    )
    centres = ring_centres(numbers)
    images = len(grid) == 2
    curves: dict[str, Curve] = {name: _curve(centres, rings)}
    pictures = []
    if images:
        known = {LABELS[key]: reference_maps()[key] for key in _SHOWN_REFERENCES}
        for reference, waves in known.items():
            ring, values = profile(waves, waves.shape)
            curves[reference] = (ring_centres(ring), values, None, None)
        maps = {name: spectra.mean(0) / spectra.mean()} | known
        pictures = [heat_map(waves, key) for key, waves in maps.items()]
    unit = "cycles per pixel" if images else "cycles per sample"
    drawn = chart(curves, unit, "energy of a wave / mean", f"radial profile of {name}")
    caption = (
        "Energy of each wave: how strongly random networks respond to it, relative to the mean "
        "over all waves. The "
        "frequency 0 is in the middle; at the edges a wave has two pixels." + colour_bar()
    )
    body = figures(pictures, caption, 150) if pictures else ""
    below = "Mean over waves of similar frequency, with the 95 % band."
    body += f"<figure>{drawn}<figcaption>{below}</figcaption></figure>"
    sentences = _sentences(found, grid)
    fine = found["fine"]
    if images and decided(fine, float((radii(grid) > FINE).mean())):
        others = [f"{key} {percent(_fine_share(waves))}" for key, waves in known.items()]
        sentences[0] += f" For comparison, without intervals: {', '.join(others)}."
    content: dict[str, Any] = {key: as_json(one) for key, one in found.items()}
    content["rings"] = [
        {"frequency": round(float(centre), 4), "energy": as_json(ring)}
        for centre, ring in zip(centres, rings, strict=True)
    ]
    return Section(title, sentences, body, content, sentences[0] if sentences else "")


def _masks(grid: tuple[int, ...]) -> tuple[np.ndarray, list[str]]:
    """Return weights of waves for ratios, (waves, 1 + 2 k), and the names of the ratios (k,).

    The first column is the mean; others are numerator and denominator of each ratio.
    """
    radius = radii(grid)
    waves = [np.fft.fftfreq(size) for size in grid]
    mesh = np.meshgrid(*waves, indexing="ij")
    everything = np.ones(grid)
    fine, coarse = radius > FINE, (radius > 0) & (radius <= _COARSE)
    pairs = {"fine": (fine * 1.0, everything), "coarse to fine": (_mean(coarse), _mean(fine))}
    if len(grid) == 2:
        down, across = (np.abs(axis) for axis in mesh)
        pairs["rows to columns"] = (_mean(down > across), _mean(across > down))
    ring = np.unique(np.round(32 * radius), return_inverse=True)[1].reshape(grid)
    for stride in _STRIDES:
        if any(size % stride or size <= stride for size in grid):
            continue
        # Multiples of 1 / stride that are no multiples of 2 / stride
        steps = [np.round(axis * stride, 6) for axis in mesh]
        comb = np.all([step % 1 == 0 for step in steps], axis=0)
        comb &= np.any([step % 2 != 0 for step in steps], axis=0)
        comb &= np.isin(ring, ring[~comb])  # others of the same frequency, to compare with
        expected = np.zeros(grid)  # what these would give
        for number in np.unique(ring[comb]):
            share = (comb & (ring == number)).sum() / comb.sum()
            expected += share * _mean((ring == number) & ~comb)
        if comb.any():
            pairs[f"stride {stride}"] = (_mean(comb), expected)
    columns = [_mean(everything > 0), *(mask for pair in pairs.values() for mask in pair)]
    return np.stack([column.ravel() for column in columns], axis=1), list(pairs)


def _mean(mask: np.ndarray) -> np.ndarray:
    return mask / max(1, mask.sum())


def _fine_share(waves: np.ndarray) -> float:
    return float(waves[radii(waves.shape) > FINE].sum() / waves.sum())


def _sentences(found: dict[str, Measured], grid: tuple[int, ...]) -> list[str]:
    """Return what the intervals decide."""
    sentences, unit = [], "pixels" if len(grid) == 2 else "samples"
    share, fine = float((radii(grid) > FINE).mean()), found["fine"]
    if decided(fine, share):
        sentences.append(
            f"Waves shorter than four {unit} hold {shown(fine, ' %', 100)} of the energy; they are "
            f"{percent(share)} of all waves."
        )
    ratio = found["coarse to fine"]
    if decided(ratio, 1) and ratio.interval[0] > 0:
        sentences.append(
            f"A wave of 16 {unit} or longer has {shown(ratio)} times the energy of one shorter "
            f"than four {unit}."
        )
    if "rows to columns" in found and decided(turned := found["rows to columns"], 1):
        sentences.append(
            f"Waves that vary more from row to row have {shown(turned)} times the energy of those "
            f"that vary more from "
            "column to column."
        )
    strides = [
        key for key in found if key.startswith("stride") and found[key].interval[0] > _STANDS_OUT
    ]
    if strides:
        best = max(strides, key=lambda key: int(key.split()[1]))
        size, tried = best.split()[1], sum(key.startswith("stride") for key in found)
        sentences.append(
            f"Waves that repeat every {size} {unit}, and no shorter step, stand out: they have "
            f"{shown(found[best])} times the energy of others of the same frequency. This is the "
            f"longest such step of {tried} that were tried."
        )
    return sentences


def _curve(
    centres: np.ndarray, rings: list[Measured]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    values = np.array([(ring.value, *ring.interval) for ring in rings])
    return centres, *values.T


def _features(sample: Sample, energies: np.ndarray) -> Section:
    """Describe the energy of the features of rows, which have no frequency."""
    from scipy.stats import t

    shares = sample.estimate(energies, lambda mean: mean / mean.mean(-1, keepdims=True))
    least = float(t.ppf(1 - 0.025 / len(shares), max(1, len(sample) - 1)))
    other = [
        number for number, one in enumerate(shares) if abs(one.value - 1) > least * one.error > 0
    ]
    order = sorted(other, key=lambda number: -abs(np.log(max(1e-9, shares[number].value))))
    sentences = [
        f"Feature {number} has {shown(shares[number])} times the mean energy of a feature."
        for number in order[:3]
    ]
    if other:
        sentences.insert(
            0,
            f"{len(other)} of {len(shares)} features differ from the mean (all intervals together, "
            f"95 %).",
        )
    rows = [[str(number), shown(one)] for number, one in enumerate(shares[:32])]
    body = table(["feature", "energy / mean"], rows)
    content = {"features": [as_json(one) for one in shares]}
    return Section("To which features", sentences, body, content, sentences[0] if sentences else "")
