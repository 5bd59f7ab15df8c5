"""How long NADs take on a laptop and on GPUs, to a given certainty: measured, or marked as
estimated.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nads_book.atlas.entries import ATLAS
from nads_book.atlas.similarity import load_entry_nads
from nads_book.benchmarks.roofline import DATA_SHEETS, Work, count_work
from nads_book.benchmarks.stored import results_folder
from nads_book.report import readable, table
from nads_core.directions import SmoothedGradient
from nads_core.directions.nads import load_nads
from nads_core.networks.architectures import ARCHITECTURES
from nads_core.networks.ensembles import Ensemble

CERTAINTY = 0.99
FEWEST = 64  # networks: from fewer, no run knows its certainty
# Of its limits that a GPU is assumed to reach for a network that nobody has timed: the goal
SHARE = 0.3
GPUS = ("T4", "H100", "H200")
KERNELS = ("torch", "triton")  # rows may be of others, which were removed
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
        source: quantity that was measured, and its device; empty where the seconds are estimated.
    """

    seconds: float
    source: str = ""

    def __str__(self) -> str:
        if self.seconds < 1:  # what is left out takes longer
            return "< 1 s"
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
    """Return the time of ``count`` networks on each of `GPUS`: by the best row, else by the limits
    of the data sheet, at the share of them that the network has reached on any GPU.

    Args:
        count: number of networks.
        work: work of one network.
        network: name of the network in the rows.
        rows: rows of ``tools/on_a_gpu.py`` with network, device, dtype, kernels,
            networks_per_second and roofline_share.
    """
    durations = {}
    timed = [
        row
        for row in rows
        if row.get("network") == network
        and row["dtype"] == "float32"
        and row["kernels"] in KERNELS
        and "networks_per_second" in row
    ]
    share = max((row["roofline_share"] for row in timed), default=SHARE)
    for gpu in GPUS:
        rates = [
            (row["networks_per_second"], row["device"]) for row in timed if gpu in row["device"]
        ]
        if rates:
            rate, device = max(rates)
            durations[gpu] = Duration(count / rate, f"measured on {device}")
        else:
            durations[gpu] = Duration(count * work.seconds(DATA_SHEETS[gpu], "tf32") / share)
    return durations


def gpu_rows(part: str) -> list[dict[str, Any]]:
    """Return the rows of a part of ``tools/on_a_gpu.py``, none where no GPU was there."""
    # Opened in any case: the build sees that it was looked for.
    with contextlib.suppress(FileNotFoundError):
        content = (results_folder() / f"gpu-{part}.json").read_text("utf8")
        rows: list[dict[str, Any]] = json.loads(content)["rows"]
        return rows
    return []


def times(certainty: float = CERTAINTY) -> dict[str, tuple[int, dict[str, Duration]]]:
    """Return for each of `NETWORKS` the number of networks for a certainty, and its time on each
    device.

    Args:
        certainty: certainty of the subspace of the first NADs.
    """
    folder = results_folder()
    loops = json.loads((folder / "own_loop-counts.json").read_text("utf8"))
    rows = gpu_rows("networks")
    durations = {}
    for name, (_, leading) in NETWORKS.items():
        shipped = name in ARCHITECTURES
        nads = load_nads(name) if shipped else load_entry_nads(name)
        assert nads.uncertainty is not None, "NADs that ship know their certainty"
        reached = float(nads.uncertainty.leading_certainty[leading - 1])
        count = networks_for(certainty, nads.provenance["num_networks"], reached)
        if shipped:
            found = json.loads((folder / f"cost-{name}-smoothed-16-cpu.json").read_text("utf8"))
            timed, work = found["seconds_per_network"], Work(**found["work"])
        else:
            build = partial(ATLAS[name].architecture.build, 1, 32, 1)
            work = count_work(Ensemble(build, (1, 32, 32), device="cpu"), SmoothedGradient(16))
        if case := loops["cases"].get(name):  # whole calls of compute_nads
            found = loops
            timed = case["library, 1 readout"]["seconds"][-1] / case["networks"][-1]
        laptop = Duration(
            count * timed, f"measured on {found['device']} of {found['processor']}, {found['date']}"
        )
        durations[name] = count, {"laptop": laptop} | gpu_durations(count, work, name, rows)
    return durations


def show_times() -> None:
    """Display the times to NADs as a table; `sources` says what they were measured on."""
    rows = [
        [NETWORKS[name][0], f"{NETWORKS[name][1]}", f"{count:,}", *by_device.values()]
        for name, (count, by_device) in times().items()
    ]
    table(rows, ["1 × 32 × 32", "first NADs", "networks", "laptop, 1 or 2 cores", *GPUS])


def sources(found: Mapping[str, tuple[int, Mapping[str, Duration]]], certainty: float) -> str:
    """Return what the times were measured on, what they are estimated from, and what
    is not known.
    """
    everything = [duration for _, by_device in found.values() for duration in by_device.values()]
    measured = sorted({duration.source for duration in everything if duration.source})
    text = (
        f"Time until the subspace of the first NADs has a certainty of {certainty}, with 16 inputs "
        "and one last layer per network. The number of networks follows from the runs that ship: "
        f"the error falls as one over their number. Times without ≈ or < are {'; '.join(measured)}."
    )
    if any(not duration.source for duration in everything):
        text += (
            " The others are estimates: the limits of the data sheet for the operations and bytes "
            "that are counted, at the share of them that the same network has reached on a GPU that "
            f"was measured, else at {100 * SHARE:.0f} %. They are rather too long, because a slower "
            "GPU reaches more."
        )
    unknown = [
        gpu for gpu in GPUS if not any(by_device[gpu].source for _, by_device in found.values())
    ]
    if unknown:
        text += f" No {' and no '.join(unknown)} has timed these networks."
    return f"{text} {whole_calls(gpu_rows('own_loop'))}"


def whole_calls(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how long whole calls for LeNets took on a GPU, and the same loop of one's own."""
    seconds = {
        variant: [row for row in rows if row["network"] == "lenet" and row["variant"] == variant]
        for variant in ("library", "library, triton", "own loop")
    }
    if not all(seconds.values()):
        return ""
    plain, kernel, loop = (found[0] for found in seconds.values())
    return (
        "On GPUs the networks alone are timed. Whole calls also test the factory, audit networks "
        f"and find eigenvectors: on an {plain['device']} {plain['networks']:,} "
        f"LeNets took {plain['seconds']:.2g} s, {kernel['seconds']:.2g} s with the kernel for "
        f"convolutions, and {loop['seconds']:.2g} s by a loop of one's own."
    )
