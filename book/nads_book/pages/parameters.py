"""Parameters of the chapters, which a reader or papermill sets: they are checked in the first cell,
before any work.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nads_book.photos import DatasetNotFoundError, load_images
from nads_book.studies.presets import PRESETS, SIZES
from nads_core.networks.architectures import ARCHITECTURES, Architecture, architecture_named
from nads_core.runtime.arguments import require_choice, require_image_shape, require_integers

DATASETS = ("auto", "cifar10", "generated")
NUM_NADS = 1024
# float32 separates the carriers' values +-strength from rounding; no image in [0, 1] has a larger
# coordinate than 32.
_STRENGTHS = 1e-3, 32.0


def check_parameters(
    *,
    preset: str = "auto",
    seed: Any = 0,
    architecture: Any = "lenet",
    second: Any = "",
    index: Any = 0,
    last_index: int = NUM_NADS - 1,
    strength: Any = 0.05,
    dataset: Any = None,
    data_root: str | os.PathLike[str] | None = None,
    image_shape: Any = None,
    num_networks: Any = 0,
) -> None:
    """Raise an error that names the parameter, unless a chapter can run with these.

    Args:
        preset: preset that was chosen. At "paper" no generated images take the place of photos.
        seed: seed, from 0.
        architecture: name of one of the paper's architectures; with an ``image_shape``, what
            `compute_nads` takes.
        second: name of another one, or "".
        index: index of a NAD.
        last_index: largest index that is allowed.
        strength: strength of carriers, in units of a pixel in [0, 1].
        dataset: member of `DATASETS`; None if the chapter needs no photos.
        data_root: folder with photos; that of ``NADS_DATA`` by default.
        image_shape: shape of the input of any architecture; None for a chapter about the paper's.
        num_networks: number of random networks; 0 for that of the preset.

    Raises:
        ValueError: for a value that no chapter can use.
        DatasetNotFoundError: for a folder that does not exist, or photos that are asked for and not
            there.
    """
    require_integers(0, seed=seed, index=index, num_networks=num_networks)
    for name, number, most in (("seed", seed, 2**32 - 1), ("index", index, last_index)):
        if number > most:
            raise ValueError(f"{name} must be at most {most}, got {number!r}")
    least, largest = _STRENGTHS
    is_number = isinstance(strength, (int, float)) and not isinstance(strength, bool)
    if not is_number or not least <= strength <= largest:  # nor is NaN
        allowed = f"a number from {least:g} to {largest:g}, in units of a pixel in [0, 1]"
        raise ValueError(f"strength must be {allowed}, got {strength!r}")
    require_choice("second", second, ("", *ARCHITECTURES))
    if image_shape is None:
        require_choice("architecture", architecture, ARCHITECTURES)
    elif isinstance(architecture, str):
        architecture_named(architecture, require_image_shape(image_shape))
    if dataset is not None:
        require_choice("dataset", dataset, DATASETS)
        _require_photos("cifar10" if (dataset, preset) == ("auto", "paper") else dataset, data_root)


def _require_photos(dataset: str, data_root: str | os.PathLike[str] | None) -> None:
    """Raise a DatasetNotFoundError if a folder is named that does not exist, or photos are asked
    for and not there.
    """
    if dataset == "generated":
        return
    name, folder = "data_root", data_root
    if not folder:
        name, folder = "NADS_DATA", os.environ.get("NADS_DATA")
    if folder and not Path(folder).expanduser().exists():
        raise DatasetNotFoundError(
            f"{name} is {str(folder)!r}, which does not exist: name a folder of photos"
        )
    if dataset == "cifar10" or data_root:
        load_images(dataset, root=data_root, num_images=1, progress=False)


def choose_preset(
    preset: str = "auto", *, gpu: str = "demo", presets: Sequence[str] = tuple(PRESETS)
) -> str:
    """Return the preset to run at; for "auto" choose one for this machine, and print which and why.

    At "smoke" it prints that results need a larger one.

    Args:
        preset: "smoke", "demo" or "paper" stay as they are; "auto" becomes "demo" without a GPU.
        gpu: preset that "auto" becomes on a CUDA GPU: "paper" where that takes minutes there.
        presets: presets of the chapter.

    Returns:
        One of ``presets``.

    Raises:
        ValueError: for an unknown preset.

    Example:
        >>> choose_preset("paper")
        'paper'
    """
    require_choice("preset", preset, ("auto", *presets))
    require_choice("preset", gpu, presets)
    if preset == "smoke":
        print("preset smoke only checks that the code runs: take demo for results")
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


def choose_network(name: str, preset: str = "paper") -> Architecture | Callable[[], nn.Module]:
    """Return one of the paper's architectures, or the function that "module:function" names.

    At "smoke" the deepest architectures are thin, so that they take seconds.

    Raises:
        ValueError: for another name.
    """
    if isinstance(name, str) and ":" in name:
        return architecture_named(name, (3, 32, 32))
    require_choice("architecture", name, ARCHITECTURES)
    return SIZES[preset].architecture(name)
