"""Parameters of the chapters, which a reader or papermill sets: they are checked in the first cell,
before any work.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from nads_book.studies.presets import PRESETS, SIZES
from nads_core.networks.architectures import ARCHITECTURES, Architecture, architecture_named
from nads_core.runtime.arguments import require_choice, require_image_shape, require_integers


def check_parameters(
    *, seed: Any = 0, architecture: Any = "lenet", image_shape: Any = None, num_networks: Any = 0
) -> None:
    """Raise an error that names the parameter, unless a chapter can run with these.

    Args:
        seed: seed, from 0.
        architecture: name of one of the paper's architectures; with an ``image_shape``, what
            `compute_nads` takes.
        image_shape: shape of the input of any architecture; None for a chapter about the paper's.
        num_networks: number of random networks; 0 for that of the preset.

    Raises:
        ValueError: for a value that no chapter can use.
    """
    require_integers(0, seed=seed, num_networks=num_networks)
    if image_shape is None:
        require_choice("architecture", architecture, ARCHITECTURES)
    elif isinstance(architecture, str):
        architecture_named(architecture, require_image_shape(image_shape))


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
