"""The paper's sweeps as named jobs: ``fig1-lenet``, ``fig7-resnet18``.

A job is a list of units, each the training of one network. How it runs is `runner`'s, where its results are kept
`results`'s, and how large it is at which preset `presets`'s.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nads_book.experiments.presets import SIZES, Size
from nads_book.experiments.shortcut_injection import COMMON
from nads_book.experiments.transform_experiments import NADS_VERSION, map_units, nads_of
from nads_book.experiments.waves import grid_frequencies, spread, stratified_frequencies
from nads_core.data.fourier import fourier_direction
from nads_core.directions import NADs, load_nads
from nads_core.networks.architectures import ARCHITECTURES, Architecture
from nads_core.runtime.provenance import RNG_VERSION
from nads_core.runtime.seeds import seed_sequence
from nads_core.training import Recipe, seconds_per_step

FIGURES = {
    "fig1": "test accuracy over the DFT directions of the published grid, sigma = 3",
    "fig1full": "the same over all DFT directions",
    "fig2": "iterations to a small training loss over the published grid, sigma = 0.5",
    "fig3": "test accuracy over the published grid without pooling, sigma = 3",
    "fig3full": "the same over all DFT directions",
    "fig6": "test accuracy over the NADs, sigma = 1",
    "random": "test accuracy over random directions, sigma = 1 (not in the paper)",
    "fig7": "clean accuracy after training on CIFAR-10 that is poisoned at a NAD",
    "fig8": "accuracy on CIFAR-10 and on its flipped version",
    "maps": "accuracy on CIFAR-10 under maps that match a network's NADs or don't (not in the paper)",
    "notes": "share of photos that follow a wrong note along a NAD, and what is missing there (not in the paper)",
}
LOSSES = (0.3, 0.1, 0.03)  # what "a small training loss" may mean in Fig. 2; training stops at the last
_NOTES_IN_MIXTURE = (("kept", "replaced", 0.05), ("emptied", "added", 0.2), ("emptied", "none", None))
USE_INDICES = (0, 1, 2, 3, 5, 8, 12, 20, 30, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1000)
_NOISE_STD = {  # sigma of D(v); its margin is 1
    "fig1": 3.0, "fig1full": 3.0, "fig2": 0.5, "fig3": 3.0, "fig3full": 3.0, "fig6": 1.0, "random": 1.0,
}  # fmt: skip
_ON_PHOTOS = ("fig7", "fig8", "maps", "notes")  # and not on D(v)
_ABOUT_NADS = ("fig6", "fig7", "fig8", "notes")
THIN = ("width", "growth")  # options of networks that make them thin
NOTE_SIZES = (0.05, 0.2, 0.5)
_NOTES = (  # how photos are prepared, and what is written, how large: None is the photos' own deviation there
    *((background, "added", size) for background in ("emptied", "scaled") for size in NOTE_SIZES),
    ("kept", "replaced", 0.05), ("kept", "added", 0.05), ("kept", "added", None),
    ("kept", "hole", None), ("kept", "hole at mean", None),
    *((background, "none", None) for background in ("emptied", "scaled")),
)  # fmt: skip

Unit = dict[str, Any]  # what is trained: its direction or carrier, and its seed


@dataclass(frozen=True)
class Experiment:
    """One job at one size; `experiment` makes them.

    Args:
        figure: one of `FIGURES`.
        architecture: of the networks that are trained.
        preset: the size that the other fields follow from.
        units: what is trained, in the order of training: any beginning of it covers the plane or the NADs evenly.
        recipe: of the training.
        num_train, num_test: samples.
        noise_std: sigma of D(v); its margin is 1.
        nads_version: of the NADs that Figs. 6 to 8 are about, see `load_nads`.
        stop_perfect: end a training when no test image is wrong any more, see `train_networks`.
        paired_test: test on pairs, see `SeparableDatasets`.
    """

    figure: str
    architecture: Architecture
    preset: str
    units: tuple[Unit, ...]
    recipe: Recipe
    num_train: int
    num_test: int
    noise_std: float = 0.0
    nads_version: int | None = None
    stop_perfect: bool = False
    paired_test: bool = False

    @property
    def name(self) -> str:
        """Such as ``fig1-lenet``."""
        return f"{self.figure}-{self.architecture.name}"

    @property
    def on_photos(self) -> bool:
        """Whether the networks learn CIFAR-10 and not D(v)."""
        return self.figure in _ON_PHOTOS

    def seconds_per_step(self, mixed_precision: bool, device: torch.device | str = "cpu") -> float:
        """Measure a step of one of its trainings here, see `nads_core.training.seconds_per_step`."""
        shape, classes = ((3, 32, 32), 10) if self.on_photos else ((1, 32, 32), 2)
        build = partial(self.architecture.build, shape[0], shape[1], classes)
        return seconds_per_step(build, shape, self.recipe, mixed_precision=mixed_precision, device=device)

    @property
    def nads(self) -> NADs | None:
        """The directions that Figs. 6 to 8 are about; None for the others."""
        return None if self.nads_version is None else _nads(self.architecture.name, self.nads_version)

    def require_nads(self) -> NADs:
        """Return the directions that Figs. 6 to 8 are about; raise a ValueError for the others."""
        if self.nads is None:
            raise ValueError(f"{self.name} is not about NADs")
        return self.nads

    def settings(self, photos: str | None = None) -> dict[str, Any]:
        """Return all that decides about the results, as JSON: two files can be merged if these agree.

        Args:
            photos: where the images of Figs. 7 and 8 come from, `ImageSet.source`.
        """
        settings = {"recipe": asdict(self.recipe), "num_train": self.num_train, "num_test": self.num_test}
        settings["numbers"] = RNG_VERSION
        settings |= {name: True for name in ("stop_perfect", "paired_test") if getattr(self, name)}
        if self.on_photos:
            settings["photos"] = photos
        else:
            settings |= {"margin": 1.0, "noise_std": self.noise_std}
        settings |= {name: self.architecture.options[name] for name in THIN if name in self.architecture.options}
        if self.figure == "notes":
            settings["common_deviation"] = COMMON
        if self.figure == "maps":
            bases = sorted({unit["target"] for unit in self.units} & set(ARCHITECTURES))
            settings["bases"] = {
                name: {"version": NADS_VERSION, "fingerprint": nads_of(name).fingerprint} for name in bases
            }
        if self.nads is not None:
            name, version = self.architecture.name, self.nads_version
            settings["nads"] = {"name": name, "version": version, "fingerprint": self.nads.fingerprint}
        return settings


def experiment(name: str, preset: str = "demo", nads_version: int | None = None) -> Experiment:
    """Return a job by its name, such as ``fig1-lenet``.

    Args:
        name: a key of `FIGURES` and an architecture, joined by a hyphen.
        preset: "smoke" and "demo" are smaller, for tests and the live book; "paper" has the paper's sizes; "laptop" is
            a fifth of the paper's training, at which LeNets learn waves in the order of the paper's size, to a lower
            level (``benchmarks/laptop.py``): for deep networks without a GPU. Its waves come in an order of which any
            beginning is a stratified sample. "narrow" is as long, and has ResNet-18 and DenseNet-121 alone, of a
            quarter of their width.
        nads_version: of the NADs that Figs. 6 to 8 are about; the newest by default.

    Raises:
        ValueError: for an unknown name, preset or version.
    """
    figure, _, model = name.partition("-")
    if figure not in FIGURES or model not in ARCHITECTURES:
        raise ValueError(
            f"unknown job {name!r}: join one of {', '.join(FIGURES)} and one of {', '.join(ARCHITECTURES)}"
        )
    if preset not in SIZES:
        raise ValueError(f"unknown preset {preset!r}: choose from {tuple(SIZES)}")
    architecture, size = ARCHITECTURES[model], SIZES[preset]
    if size.thinned is not None:
        if model not in size.thinned:
            raise ValueError(f"preset {preset!r} is for {', '.join(size.thinned)}, not for {model}: choose another one")
        architecture = architecture.variant(name=model, symmetries=architecture.symmetries, **size.thinned[model])
    if figure.startswith("fig3") and model != "logreg":
        architecture = architecture.variant(pooling="none", name=model)
    if nads_version is not None and figure not in _ABOUT_NADS:
        raise ValueError(f"{name} is not about NADs: leave nads_version out")
    nads_version = _nads(model, nads_version).provenance["version"] if figure in _ABOUT_NADS else None
    seeds = size.note_seeds if figure in ("maps", "notes") else size.seeds
    training = size.photos if figure in _ON_PHOTOS else size.separable
    training = size.notes or training if figure == "notes" else training
    targets = _targets(figure, model, size, nads_version)
    return Experiment(
        figure, architecture, preset, tuple({**target, "seed": seed} for seed in seeds for target in targets),
        training.recipe, training.num_train, training.num_test, _NOISE_STD.get(figure, 0.0), nads_version,
        stop_perfect=training.stop_perfect and figure != "fig2", paired_test=training.paired_test,
    )  # fmt: skip


def _targets(figure: str, architecture: str, size: Size, nads_version: int | None) -> list[dict[str, Any]]:
    """Return what the networks of one seed are about: each a frequency, an index, or whether photos are flipped."""
    if figure == "fig8":
        return [{"flipped": flipped} for flipped in (False, True)]
    if figure == "maps":
        return map_units(architecture)[: size.num_maps]
    if figure == "notes":
        return _noted(
            size.note_indices,
            size.mixture_indices,
            _NOTES if size.note_kinds is None else tuple(_NOTES[kind] for kind in size.note_kinds),
        )
    if figure == "fig7":
        indices = [size.poison_indices[i] for i in spread(np.log1p(size.poison_indices)[:, None])]
        return [{"index": index} for index in (None, *indices)]  # the first without poison
    if figure == "fig6":
        num_nads = len(_nads(architecture, nads_version))
        return [{"index": index} for index in _spread_indices(size.num_directions, num_nads)]
    if figure == "random":
        return [{"index": index} for index in range(size.num_directions)]
    if figure.endswith("full"):
        frequencies = grid_frequencies(step=1)
    else:
        frequencies = stratified_frequencies(architecture) if size.stratified else grid_frequencies()
    return [{"frequency": list(k)} for k in frequencies[: size.num_waves]]


def _noted(indices: tuple[int, ...], of_mixture: tuple[int, ...], kinds: tuple[Any, ...]) -> list[Unit]:
    """Return the notes: index by index in an even order, all kinds at each, after photos as they are."""

    def unit(index: int | None, images: str, background: str, written: str, size: float | None) -> Unit:
        return {"index": index, "images": images, "background": background, "written": written, "size": size}

    units = [unit(None, "photos", "kept", "none", None)]
    units += [unit(None, "mixture", "kept", "none", None)] * bool(of_mixture)
    for place in spread(np.log1p(indices)[:, None]):
        index = indices[place]
        units += [unit(index, "photos", *kind) for kind in kinds]
        if index in of_mixture:
            units += [unit(index, "mixture", *kind) for kind in _NOTES_IN_MIXTURE]
    return units


def _spread_indices(count: int, num_nads: int) -> list[int]:
    """Return about ``count`` NAD indices, half of them evenly and half geometrically spaced, in an even order."""
    even, geometric = np.linspace(0, num_nads - 1, count // 2), np.geomspace(1, num_nads, count - count // 2) - 1
    indices = np.unique(np.concatenate([even, geometric]).round().astype(int))
    return [int(indices[i]) for i in spread(np.log1p(indices)[:, None])]


@lru_cache(maxsize=4)
def _nads(name: str, version: int | None) -> NADs:
    return load_nads(name, version)


def direction_of(job: Experiment, unit: Unit) -> Tensor:
    """Return the unit image (1, 32, 32) that a unit's data are separated along."""
    if "frequency" in unit:
        return fourier_direction(tuple(unit["frequency"]), 32)
    if job.figure == "random":
        generator = torch.Generator().manual_seed(seed_sequence(0, 4, unit["index"]))
        noise = torch.randn(1, 32, 32, generator=generator)
        return noise / noise.norm()
    return job.require_nads().directions[unit["index"]]
