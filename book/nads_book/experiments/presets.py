"""How large the experiments of the book are: names, what they stand for, and a choice for the machine at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from nads_core.networks.architectures import ARCHITECTURES, Architecture
from nads_core.training import CIFAR10_RECIPE, SEPARABLE_RECIPE, Recipe

PRESETS = ("smoke", "demo", "paper")
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
        paired_seeds: ``seeds`` of the experiments on injection and on transforms.
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
        architecture = ARCHITECTURES[name]
        if self.thinned is None:
            return architecture
        if name not in self.thinned:
            raise ValueError(f"this preset is for {', '.join(self.thinned)}, not for {name}: choose another one")
        return architecture.variant(name=name, symmetries=architecture.symmetries, **self.thinned[name])


_LAPTOP = TrainingSize(
    # A fifth of the paper's passes over images is enough where steps are smaller and more.
    10_000, 4_000, replace(SEPARABLE_RECIPE, epochs=4, batch_size=48, learning_rate=0.2),
    stop_perfect=True, paired_test=True,
)  # fmt: skip

SIZES = {  # of the jobs that run for long, which chapters only show
    "smoke": Size(
        separable=TrainingSize(1_000, 1_000, replace(SEPARABLE_RECIPE, epochs=4)),
        photos=TrainingSize(500, 200, replace(CIFAR10_RECIPE, epochs=2)),
        num_directions=6,
        poison_indices=(0, 1000),
        num_waves=6,
        num_transforms=6,
        mixture_indices=(1000,),
    ),
    "demo": Size(
        separable=TrainingSize(4_000, 4_000, replace(SEPARABLE_RECIPE, epochs=10), stop_perfect=True),
        photos=TrainingSize(5_000, 2_000, replace(CIFAR10_RECIPE, epochs=10)),
        num_directions=9,
        poison_indices=(0, 10, 30, 1000),
        num_waves=12,
        injection_conditions=tuple(range(9)),
        num_transforms=12,
        injection=TrainingSize(2_000, 1_000, replace(CIFAR10_RECIPE, epochs=6)),
    ),
    "laptop": Size(
        separable=_LAPTOP,
        photos=TrainingSize(10_000, 10_000, replace(CIFAR10_RECIPE, epochs=10)),
        num_directions=18,  # of which 16 differ
        poison_indices=(0, 10, 30, 100, 300, 1000),
        stratified=True,
        injection_indices=(0, 1, 3, 10, 20, 30, 60, 100, 200, 300, 600, 1000),
        mixture_indices=(0, 60, 1000),
        paired_seeds=(3, 4, 5),
        seeds=(3,),  # none of paper's, so that the two can be compared, nor that of the trials that chose this size
    ),
    "narrow": Size(  # the deepest networks at a quarter of their width, where they are minutes a network
        separable=_LAPTOP,
        photos=TrainingSize(5_000, 5_000, replace(CIFAR10_RECIPE, epochs=10)),
        num_directions=16,
        poison_indices=(0, 300, 1000),
        injection_indices=(0, 300, 1000),
        injection_conditions=(1, 2, 6, 9, 11),
        paired_seeds=(3, 4, 5),
        num_transforms=16,  # one of every kind
        stratified=True,
        seeds=(3,),
        thinned={"resnet18": {"width": 16}, "densenet121": {"growth": 8}},
    ),
    "paper": Size(
        separable=TrainingSize(10_000, 10_000, SEPARABLE_RECIPE),
        photos=TrainingSize(50_000, 10_000, CIFAR10_RECIPE),
        num_directions=64,
        poison_indices=(0, 5, 10, 20, 30, 50, 75, 100, 200, 300, 400, 600, 800, 1000),
        seeds=(0, 1),
        injection_indices=(0, 1, 3, 10, 20, 30, 60, 100, 200, 300, 600, 1000),
        mixture_indices=(0, 60, 1000),
        paired_seeds=(0, 1, 2),
    ),
}  # fmt: skip


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
