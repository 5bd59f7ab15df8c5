"""How large the experiments of the book are: names, what they stand for, and a choice for the current machine."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nads_core.networks.architectures import ARCHITECTURES, SYMMETRIES, Architecture
from nads_core.runtime.arguments import is_integer
from nads_core.training import CIFAR10_RECIPE, SEPARABLE_RECIPE, Recipe

PRESETS = ("smoke", "demo", "paper")


def _small_cnn(in_channels: int, image_size: int, num_classes: int) -> nn.Module:
    """Return the atlas' small CNN: three times convolution, ReLU and max pooling, and one linear layer."""
    parts = [[nn.Conv2d(width, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)] for width in (in_channels, 16, 16)]
    return nn.Sequential(*sum(parts, []), nn.Flatten(), nn.Linear(16 * (image_size // 8) ** 2, num_classes))


MODELS = ARCHITECTURES | {"cnn": Architecture("cnn", _small_cnn, symmetries=SYMMETRIES, flip_multiple=8)}
ON_CPUS = ("laptop", "narrow")  # sizes for a CPU at its limit, at which deep networks train in bfloat16


@dataclass(frozen=True)
class TrainingSize:
    """How much one network learns, and from what.

    Args:
        num_train, num_test: numbers of samples.
        recipe: recipe of the training.
        stop_perfect: whether a training ends when no test image is wrong, see `train_networks`.
        paired_test: whether test samples come in pairs, see `SeparableDatasets`.
    """

    num_train: int
    num_test: int
    recipe: Recipe
    stop_perfect: bool = False
    paired_test: bool = False


@dataclass(frozen=True)
class Size:
    """How large the jobs of a preset are, see `nads_book.experiments.experiment`.

    Args:
        separable: size of a training on D(v).
        photos: size of a training on CIFAR-10.
        num_directions: number of NADs of Fig. 6, and of random directions.
        poison_indices: NADs of Fig. 7.
        num_waves: number of waves of Figs. 1 to 3, from the beginning of their order; None for all.
        stratified: whether any beginning of the waves of the published grid is a stratified sample.
        seeds: seeds with each of which all units are trained.
        injection: size of a training on photos with injected shortcuts; None for ``photos``.
        injection_indices: NADs along which shortcuts are injected.
        mixture_indices: NADs among these at which a Gaussian mixture replaces the photos too.
        injection_conditions: positions of the conditions in their list; None for all.
        num_transforms: number of orthogonal transforms, from the beginning of their list; None for all.
        paired_seeds: ``seeds`` of the experiments on injection and on transforms, which compare networks that begin
            with equal weights.
        thinned: the only architectures of this size, with the options that make them thin; None for all, as they are.
    """

    separable: TrainingSize
    photos: TrainingSize
    num_directions: int
    poison_indices: tuple[int, ...]
    num_waves: int | None = None
    stratified: bool = False
    seeds: tuple[int, ...] = (0,)
    injection_indices: tuple[int, ...] = (0, 1000)
    mixture_indices: tuple[int, ...] = ()
    paired_seeds: tuple[int, ...] = (0,)
    injection_conditions: tuple[int, ...] | None = None
    num_transforms: int | None = None
    injection: TrainingSize | None = None
    thinned: dict[str, dict[str, int]] | None = None

    def architecture(self, name: str) -> Architecture:
        """Return an architecture at this size.

        Raises:
            ValueError: for an architecture that this size does not have.
        """
        architecture = MODELS[name]
        if self.thinned is None:
            return architecture
        if name not in self.thinned:
            raise ValueError(f"this preset is for {', '.join(self.thinned)}, not for {name}: choose another one")
        return architecture.variant(name=name, symmetries=architecture.symmetries, **self.thinned[name])


_RECIPES = {"separable": SEPARABLE_RECIPE, "photos": CIFAR10_RECIPE, "injection": CIFAR10_RECIPE}


def _training(kind: str, values: dict[str, Any]) -> TrainingSize:
    """Return the size of a training: the recipe of its kind, with the values that a preset changes."""
    return TrainingSize(**(values | {"recipe": replace(_RECIPES[kind], **values.get("recipe", {}))}))


def _size(values: dict[str, Any]) -> Size:
    """Return the size that a table of ``presets.toml`` describes."""
    fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    return Size(**(fields | {kind: _training(kind, values[kind]) for kind in _RECIPES if kind in values}))


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf8"))


def _table(name: str) -> dict[str, Any]:
    """Return a table of ``presets.toml``, completed by the table that it is like."""
    table = dict(_TABLES[name])
    like = table.pop("like", None)
    return (_table(like) if like else {}) | table


# Sizes of the jobs that run for long, which chapters only show.
SIZES = {name: _size(_table(name)) for name in _TABLES}


def choose_preset(preset: str = "auto", *, gpu: str = "demo") -> str:
    """Return the preset to run at; for "auto" choose one for this machine, and print which and why.

    Args:
        preset: "smoke", "demo" or "paper" stay as they are; "auto" becomes "demo" without a GPU.
        gpu: preset that "auto" becomes on a CUDA GPU: "paper" where that takes minutes there.

    Returns:
        "smoke", "demo" or "paper".

    Raises:
        ValueError: for an unknown preset.

    Example:
        >>> choose_preset("smoke")
        'smoke'
    """
    for name, allowed in ((preset, ("auto", *PRESETS)), (gpu, PRESETS)):
        if name not in allowed:
            raise ValueError(f"unknown preset {name!r}: choose from {allowed}")
    if preset != "auto":
        return preset
    if not torch.cuda.is_available():
        print("preset demo, since there is no GPU; set preset for another size")
        return "demo"
    device = torch.cuda.get_device_properties(0)
    facts = f"{device.name} with {device.total_memory / 2**30:.0f} GB"
    if device.major < 8:  # such as the T4 of a free Colab session
        facts += " and no bfloat16, so networks train in float32"
    print(f"preset {gpu} on a {facts}; set preset for another size")
    return gpu


def choose_architecture(name: str) -> Architecture:
    """Return one of the paper's architectures; raise a ValueError for another name."""
    if name not in ARCHITECTURES:
        raise ValueError(f"architecture must be one of {', '.join(ARCHITECTURES)}, got {name!r}")
    return ARCHITECTURES[name]


def choose_carriers(indices: Any, strength: Any, num_nads: int = 1024) -> list[int]:
    """Return the NAD indices of carriers for ten classes.

    Args:
        indices: one index, or several.
        strength: strength of the carriers.
        num_nads: number of NADs.

    Raises:
        ValueError: for anything that is no index of such a carrier, or a strength that is no positive number.
    """
    chosen = list(indices) if isinstance(indices, (list, tuple)) else [indices]
    last = num_nads - 2  # four of the ten classes use the next NAD
    if not chosen or not all(is_integer(index) and 0 <= index <= last for index in chosen):
        raise ValueError(f"indices must be NADs from 0 to {last}, such as [0, 10], got {indices!r}")
    if isinstance(strength, bool) or not isinstance(strength, (int, float)) or not strength > 0:
        raise ValueError(f"strength must be a positive number, in units of a pixel in [0, 1], got {strength!r}")
    return chosen
