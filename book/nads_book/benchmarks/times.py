"""How long NADs take on a laptop and on GPUs, to a given certainty: measured, or marked as
estimated.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nads_book.benchmarks.stored import results_folder
from nads_book.report import readable

FEWEST = 64  # networks: from fewer, no run knows its certainty
GPUS = ("T4", "H100", "H200")
# Name: label, and number of first NADs whose subspace is to be certain: the ViT's eigenvalues come
# in groups of 16.
NETWORKS = {
    "lenet": ("LeNet", 10),
    "cnn": ("small CNN", 10),
    "resnet18": ("ResNet-18", 10),
    "vit": ("small ViT", 16),
    "densenet121": ("DenseNet-121", 10),
}


@dataclass(frozen=True)
class Duration:
    """Seconds of one computation, and where they come from.

    Args:
        seconds: seconds.
        source: device on which the seconds were measured; empty where they are estimated.
    """

    seconds: float
    source: str = ""

    def __str__(self) -> str:
        if self.seconds < 1:  # what is left out takes longer
            return "< 1 s" if self.source else "≈ < 1 s"
        unit, size = next(
            (unit, size)
            for unit, size in (("h", 3600), ("min", 60), ("s", 0.0))
            if self.seconds >= 2 * size
        )
        return f"{'' if self.source else '≈ '}{readable(self.seconds / (size or 1))} {unit}"


def gpu_rows(part: str) -> list[dict[str, Any]]:
    """Return the rows of a part of ``tools/on_a_gpu.py``."""
    rows: list[dict[str, Any]] = _read(f"gpu-{part}")["rows"]
    return rows


def _read(name: str) -> Any:
    return json.loads((results_folder() / f"{name}.json").read_text("utf8"))


def sources(found: Mapping[str, tuple[int, Mapping[str, Duration]]], certainty: float) -> str:
    """Return what the times were measured on, and what they are estimated from, as paragraphs."""
    text = (
        f"Time until the subspace of the first NADs has a certainty of {certainty}, with 16 inputs "
        "and one last layer per network. The number of networks follows from the runs that ship, "
        f"since the error falls as one over it; it is at least {FEWEST}."
    )
    where = {
        device: sorted({by_device[device].source for _, by_device in found.values()} - {""})
        for device in ("laptop", *GPUS)
    }
    measured = [f"{device} ({'; '.join(places)})" for device, places in where.items() if places]
    text += f"\n\nMeasured: {', '.join(measured)}."
    if estimated := [device for device, places in where.items() if not places]:
        text += (
            f" Estimated (≈): {', '.join(estimated)}, from the counted operations and bytes and "
            "the limits of the data sheet. The same network is assumed to reach the share of the "
            "limits that it reaches on the GPU that was measured. A slower GPU may reach more."
        )
    return f"{text}\n\n{whole_calls(gpu_rows('own_loop'))}"


def whole_calls(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how long whole calls for LeNets took on a GPU, and the same loop of one's own.

    Args:
        rows: rows of ``tools/on_a_gpu.py`` with network, variant, networks, seconds and device, the
            newest first.
    """
    calls = {row["variant"]: row for row in reversed(rows) if row["network"] == "lenet"}
    plain = calls["library"]
    return (
        "Times on GPUs are those of the networks alone. A whole call also tests the factory, "
        f"audits networks and computes eigenvectors: on the {plain['device']}, "
        f"{plain['networks']:,} LeNets took {plain['seconds']:.2g} s, "
        f"{calls['library, triton']['seconds']:.2g} s with "
        "the Triton kernel for convolutions, and "
        f"{calls['own loop']['seconds']:.2g} s by a loop of one's own."
    )
