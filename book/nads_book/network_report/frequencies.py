"""At which frequencies networks are sensitive, or to which features of a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nads_book.experiments.formatting import LABELS, fixed
from nads_book.network_report.parts import Figure, Section, chart, heat_maps
from nads_book.network_report.sample import Sample, differs

FINE = 1 / 4  # cycles per pixel, above which a wave is fine: shorter than four pixels
_EDGES = np.array([0, *(2.0**k / 256 for k in range(3)), *(k / 32 for k in range(1, 17)), 1])
_CENTRES = np.convolve([0, *_EDGES[:-1], 0.5**0.5], [0.5, 0.5], "valid")  # of rings of frequencies


def frequencies(sample: Sample, name: str) -> Section:
    """Describe the energy of waves of images or sequences, or that of the features of rows."""
    if len(sample.shape) == 1:
        return _features(sample)
    grid, spectra = sample.grid, sample.spectra()
    is_fine = radii(grid) > FINE + 1e-9  # not those of four pixels, whatever the rounding
    (fine,) = sample.estimate(spectra, lambda e: e[is_fine].sum(keepdims=True) / e.sum())
    rings = sample.estimate(spectra, lambda e: profile(e)[1] / e.mean())
    centres, _ = profile(spectra[0])
    curves: dict[str, tuple[np.ndarray, Any]] = {name: (centres, [[*ring] for ring in rings])}
    unit, figures = "sample", []
    if len(grid) == 2:
        unit = "pixel"
        # Energies relative to their mean: `Sample.spectra` of 512 LeNets with 16 inputs each and
        # eight readouts, and of 512 ResNet-18 with four. Those of shipped NADs have a floor.
        with np.load(Path(__file__).with_name("references.npz")) as file:
            references = {LABELS[key]: file[key].astype(float) for key in file}
        figures.append(heat_maps({name: spectra.mean(0)} | references, _CAPTION, 136))
        curves |= {label: profile(one) for label, one in references.items()}
    drawn = chart(curves, f"cycles per {unit}", f"energy by frequency in {name}")
    below = "Mean over waves of similar frequency, with the 95 % band."
    figures.append(Figure([drawn], below, 0))
    sentences = []
    if differs(fine, is_fine.mean()):
        sentences.append(
            f"Waves shorter than four {unit}s hold a share of {fine} of the energy; their "
            f"share of all waves is {fixed(is_fine.mean(), 2)}."
        )
    return Section(
        "At which frequencies",
        sentences,
        figures,
        {"fine": fine, "rings": [*zip(centres.tolist(), rings, strict=True)]},
        "".join(sentences),
    )


_CAPTION = (
    "Energy of each wave: how strongly random networks respond to it, relative to the mean over "
    "all waves. The frequency 0 is in the middle; at the edges a wave has two pixels."
)


def _features(sample: Sample) -> Section:
    """Describe the energy of the features of rows, which have no frequency."""
    shares = sample.estimate(sample.spectra(), lambda e: e / e.mean(), sample.shape[0])
    outside = [share for share in shares if not share.interval[0] <= 1 <= share.interval[1]]
    sentences = []
    if outside:
        least, *_, most = np.argsort([share.value for share in shares])
        sentences.append(
            f"{len(outside)} of {len(shares)} features differ from the mean energy of a feature "
            f"(all intervals together, 95 %): feature {least} has {shares[least]} times the mean, "
            f"feature {most} {shares[most]}."
        )
    return Section("To which features", sentences, [], {"features": shares}, "".join(sentences))


def radii(grid: tuple[int, ...]) -> np.ndarray:
    """Return the frequency of each wave in cycles per pixel, in the order of `Sample.spectra`."""
    axes = np.meshgrid(*map(np.fft.fftfreq, grid), indexing="ij")
    return np.linalg.norm(axes, axis=0)


def profile(energies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle frequencies of rings, and the mean energy of the waves in each, (k,)."""
    ring = np.searchsorted(_EDGES, radii(energies.shape).ravel() - 1e-9)
    numbers, place, counts = np.unique(ring, return_inverse=True, return_counts=True)
    return _CENTRES[numbers], np.bincount(place, energies.ravel()) / counts
