"""How long NADs take on a laptop and on GPUs, to a given certainty: measured, or marked as
estimated.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nads_book.atlas.entries import ATLAS
from nads_book.atlas.similarity import load_entry_nads
from nads_book.benchmarks.roofline import DATA_SHEETS, Work, count_work
from nads_book.benchmarks.stored import results_folder
from nads_book.report import readable
from nads_core.directions import SmoothedGradient, load_nads
from nads_core.networks import Networks
from nads_core.networks.architectures import ARCHITECTURES

CERTAINTY = 0.99
FEWEST = 64  # networks: from fewer, no run knows its certainty
GPUS = ("T4", "H100", "H200")
DEFAULTS = {"dtype": "float32", "kernels": "torch"}
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


def networks_for(certainty: float, num_networks: int, certainty_then: float) -> int:
    """Return how many networks are needed, if the error of the leading directions falls as one over
    their number.

    The result is at least `FEWEST`.

    Args:
        certainty: certainty that is wanted, such as 0.9.
        num_networks: number of networks of a run.
        certainty_then: certainty that the run reached.

    Raises:
        ValueError: for certainties outside (0, 1).
    """
    if not 0 < certainty < 1 or not 0 < certainty_then < 1:
        raise ValueError(
            f"certainties must be between 0 and 1, got {certainty} and {certainty_then}"
        )
    return max(FEWEST, round(num_networks * (1 - certainty_then) / (1 - certainty)))


def gpu_durations(
    count: int, work: Work, network: str, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Duration]:
    """Return the time of ``count`` networks on each of `GPUS`: measured, or by the limits of the
    data sheet, at the largest share of them that the network has reached on a GPU.

    Args:
        count: number of networks.
        work: work of one network.
        network: name of the network in the rows.
        rows: rows of ``tools/on_a_gpu.py``, the newest first, with network, device, dtype, kernels,
            evaluation, networks_per_second and roofline_share. Those of defaults count.
    """
    default = DEFAULTS | {"network": network}
    default["evaluation"] = "graph" if network == "densenet121" else "vmap"
    timed = {
        row["device"]: row
        for row in reversed(rows)
        if row | default == row and "networks_per_second" in row
    }
    share = max(row["roofline_share"] for row in timed.values())
    durations = {}
    for gpu in GPUS:
        estimate = Duration(count * work.seconds(DATA_SHEETS[gpu], "tf32") / share)
        measured = (
            Duration(count / row["networks_per_second"], device)
            for device, row in timed.items()
            if gpu in device
        )
        durations[gpu] = next(measured, estimate)
    return durations


def gpu_rows(part: str) -> list[dict[str, Any]]:
    """Return the rows of a part of ``tools/on_a_gpu.py``."""
    rows: list[dict[str, Any]] = _read(f"gpu-{part}")["rows"]
    return rows


def _read(name: str) -> Any:
    return json.loads((results_folder() / f"{name}.json").read_text("utf8"))


def times(certainty: float = CERTAINTY) -> dict[str, tuple[int, dict[str, Duration]]]:
    """Return for each of `NETWORKS` the number of networks for a certainty, and its time on each
    device.

    Args:
        certainty: certainty of the subspace of the first NADs.
    """
    loops, rows = _read("own_loop-counts"), gpu_rows("networks")
    durations = {}
    for name, (_, leading) in NETWORKS.items():
        shipped = name in ARCHITECTURES
        nads = load_nads(name) if shipped else load_entry_nads(name)
        assert nads.uncertainty is not None, "NADs that ship know their certainty"
        reached = float(nads.uncertainty.leading_certainty[leading - 1])
        count = networks_for(certainty, nads.provenance["num_networks"], reached)
        if shipped:
            found = _read(f"cost-{name}-smoothed-16-cpu")
            timed, work = found["seconds_per_network"], Work(**found["work"])
        else:
            build = partial(ATLAS[name].architecture.build, 1, 32, 1)
            work = count_work(Networks(build, (1, 32, 32)), SmoothedGradient(16))
        if case := loops["cases"].get(name):  # whole calls of compute_nads
            found = loops
            timed = case["library, 1 readout"]["seconds"][-1] / case["networks"][-1]
        laptop = Duration(count * timed, f"{found['device']} of {found['processor']}")
        durations[name] = count, {"laptop": laptop} | gpu_durations(count, work, name, rows)
    return durations


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
