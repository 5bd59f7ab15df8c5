"""``nads-book doctor``: list available optional features."""

import argparse
import os
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

import torch

from nads_book.photos.on_disk import (
    PUBLISHED,
    data_root,
    open_published,
)
from nads_core.runtime.arguments import available_memory, usable_device
from nads_core.runtime.processes import num_cores
from nads_core.runtime.provenance import environment


def describe() -> Iterator[str]:
    """Yield one line per optional feature of this machine."""
    facts: dict[str, object] = dict(environment(usable_device()))
    free = available_memory("cpu")
    facts["cores"] = f"{num_cores()}" + (f", {free / 2**30:.1f} GB of memory free" if free else "")
    triton = find_spec("triton")
    facts["Triton"] = "available" if triton else "not installed: kernels stay at torch"
    facts["GPU"] = "none: chapters run at preset demo; preset paper needs one"
    if torch.cuda.is_available():
        device = torch.cuda.get_device_properties(0)
        facts["GPU"] = f"{device.name}, {device.total_memory / 2**30:.0f} GB"
    facts |= {name: _found(name) for name in PUBLISHED}
    absent = (
        "the leading 64 of LeNet and ResNet-18; NADS_REFERENCE names a folder with complete sets"
    )
    facts["references"] = os.environ.get("NADS_REFERENCE") or absent
    for name, value in facts.items():
        yield f"{name:<13} {value}"


def _found(name: str) -> str:
    """Describe a data set on this machine: number of images, or what is wrong."""
    try:
        root = data_root()
        train, test = (open_published(name, root, part) for part in (True, False))
    except (OSError, ValueError, ImportError) as error:
        return str(error)
    return (
        f"{train.source}, {len(train.labels):,} training and {len(test.labels):,} test images "
        f"in {root} or installed"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of ``nads-book doctor``: there are none."""


def run() -> int:
    """Print the features and return 0."""
    with warnings.catch_warnings(action="ignore"):  # of torch, where it finds no usable GPU
        for line in describe():
            print(line, flush=True)
    return 0
