"""How large the experiments of the book are: names, and a choice for the machine at hand."""

from __future__ import annotations

import torch

PRESETS = ("smoke", "demo", "paper")
SIZES = ("smoke", "demo", "laptop", "paper")  # of the jobs that run for long, which chapters only show


def choose_preset(preset: str = "auto", *, gpu: str = "demo") -> str:
    """Return the preset to run at; for "auto" choose one for this machine, and print which and why.

    Args:
        preset: "smoke", "demo" or "paper" stay as they are; "auto" becomes "demo" without a GPU.
        gpu: what "auto" becomes on a CUDA GPU: "paper" where that takes minutes there.

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
