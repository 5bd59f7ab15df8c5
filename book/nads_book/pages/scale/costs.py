"""Time and memory of NADs: stored measurements, and those of an architecture that a reader
names.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from matplotlib.figure import Figure

import nads_core as nc
from nads_book import figures, report
from nads_book.benchmarks import load_costs, measure_network, prepared, roofline
from nads_book.evidence import Evidence, evidence
from nads_book.figures.style import legend, log_ticks, name_rows, styled, subplots
from nads_core.directions import Estimator

OURS, AUTHORS = 2_000, 10_000  # networks of a default run, and of the authors' computation
KINDS = {  # estimator -> name of its stored costs, estimator, purpose
    "smoothed, 16 inputs": ("smoothed-16", nc.SmoothedGradient(16), "one last layer"),
    "the default": (
        "smoothed-16-readouts-8",
        nc.SmoothedGradient(16, readouts=8),
        "eight last layers",
    ),
    "point": ("point", nc.PointGradient(), "one input; prefers hardly any wave"),
    "mixed, 16 inputs": ("mixed-16", nc.MixedDerivative(16), "how training turns the gradient"),
    "dipole": ("dipole", nc.Dipole(), "the authors' computation"),
}
DURATIONS = {
    "1 s": 1,
    "10 s": 10,
    "1 min": 60,
    "10 min": 600,
    "1 h": 3_600,
    "10 h": 36_000,
    "4 days": 345_600,
}
RUNS = {  # stored costs -> number of networks of a run
    "smoothed gradient": ("smoothed-16", OURS),
    "the same in bfloat16": ("smoothed-16-bfloat16", OURS),
    "authors' dipole": ("dipole", AUTHORS),
}


@cache
def costs() -> dict[tuple[str, str], Any]:
    """Return the stored costs of the paper's architectures: (architecture, method) -> cost."""
    return {(cost["architecture"], cost["method"]): cost for cost in load_costs("cost")}


@cache
def costs_by_pixels() -> list[Any]:
    """Return the stored costs of torchvision's ResNet-18, by image size."""
    return sorted(load_costs("scale"), key=lambda cost: math.prod(cost["image_shape"]))


def seconds_of(architecture: str, method: str) -> float:
    """Return the stored seconds of one network."""
    return float(costs()[architecture, method]["seconds_per_network"])


# An architecture that the reader names


def time_network(
    architecture: Any,
    image_shape: tuple[int, ...] = (1, 32, 32),
    estimator: Estimator | None = None,
    seconds: float = 1.0,
) -> float:
    """Return the seconds of one random network with its gradients, measured on this machine.

    Args:
        architecture: architecture, function that returns a new network, or the name of either.
        image_shape: shape of its input.
        estimator: estimator; 16 inputs and one last layer by default.
        seconds: duration of the measurement; at least three networks.
    """
    run = prepared(architecture, image_shape, estimator or nc.SmoothedGradient(16))
    found = measure_network(run, None, seconds)
    return float(found["seconds_per_network"])


def show_passes(architecture: Any, image_shape: tuple[int, ...] = (1, 32, 32)) -> None:
    """Display the operations of each estimator for one network; nothing is computed."""
    networks = prepared(architecture, image_shape, nc.PointGradient(), device="cpu").networks
    works = {label: roofline.count_work(networks, kind[1]) for label, kind in KINDS.items()}
    operations = {label: work.forward + work.backward for label, work in works.items()}
    unit = operations["smoothed, 16 inputs"]
    rows = [
        [label, f"{report.readable(count / 1e9, 3)}", report.readable(count / unit)]
        for label, count in operations.items()
    ]
    report.table(rows, ["estimator", "operations (billions)", "relative"])


# Figures


@styled
def plot_run_times(own: Mapping[str, float] | None = None) -> Figure:
    """Draw the time of a whole run of each architecture, stored, and of networks that a reader has
    timed.

    Args:
        own: label -> seconds of one network with 16 inputs.
    """
    rows = {
        label: {kind: count * seconds_of(name, method) for kind, (method, count) in RUNS.items()}
        for name, label in report.LABELS.items()
    }
    for label, seconds in (own or {}).items():
        rows[label] = {"measured here": OURS * seconds}
    figure, ((axis,),) = subplots(height=0.9 + 0.3 * len(rows), grid="x")
    kinds = list(dict.fromkeys(kind for durations in rows.values() for kind in durations))
    for kind, marker in zip(kinds, "os^D", strict=False):
        places = [place for place, durations in enumerate(rows.values()) if kind in durations]
        seconds = [durations[kind] for durations in rows.values() if kind in durations]
        axis.plot(seconds, places, marker, label=kind, markersize=6)
    axis.set_xlabel("time of a run")
    log_ticks(axis, list(DURATIONS.values()), DURATIONS)
    name_rows(axis, rows)
    legend(figure, axis, ncols=len(kinds))
    return figure


def plot_pixels(live: Mapping[int, float]) -> Figure:
    """Draw the time of one network against the number of pixels: torchvision's ResNet-18 with four
    inputs.

    Args:
        live: side of the images -> seconds of one network, measured here.
    """
    stored = costs_by_pixels()
    pixels = [math.prod(cost["image_shape"]) for cost in stored]
    fewest = [cost["parts"]["draw"] + max(cost["limit_seconds"].values()) for cost in stored]
    curves: dict[str, tuple[str, Sequence[float], Sequence[float]]] = {
        "stored": ("stored", pixels, [cost["seconds_per_network"] for cost in stored]),
        "drawing and the least time for its operations": ("model", pixels, fewest),
        "measured here": ("live", [3.0 * side**2 for side in live], list(live.values())),
    }
    return figures.plot_scaling({"seconds per network": curves})


# Tables


def show_estimators() -> None:
    """Display what each estimator is for, and its stored time relative to 16 inputs."""
    unit = seconds_of("resnet18", "smoothed-16")
    rows = [
        [label, purpose, report.readable(seconds_of("resnet18", method) / unit)]
        for label, (method, _, purpose) in KINDS.items()
    ]
    report.table(rows, ["estimator", "", "time of one ResNet-18, relative"])


def table_costs() -> str:
    """Return the stored seconds of one network of each architecture, and its ratio to the limit."""
    rows = []
    for name, label in report.LABELS.items():
        of_kinds = [seconds_of(name, method) for method, _, _ in KINDS.values()]
        limit = f"{costs()[name, 'smoothed-16']['times_limit']:.2f}"
        rows.append([label, *map(report.readable, of_kinds), limit])
    head = ["seconds of one network", *KINDS, "times the limit, 16 inputs"]
    return report.markdown_table(rows, head)


# Memory


def memory_needed(dimension: float, num_vectors: int, kind: str) -> float:
    """Return the bytes that the eigenvectors need.

    Args:
        dimension: number of pixels, D.
        num_vectors: number of networks.
        kind: "dense" for the D × D matrix C, "gram" for the networks' vectors.
    """
    if kind == "dense":
        return 8 * 8 * dimension**2
    return 8 * num_vectors * dimension + 40 * (2 * num_vectors) ** 2


# Claims


def fewer_passes() -> Evidence:
    """Decide whether a dipole along every pixel takes 50 to 80 times the operations of 16
    inputs.
    """
    dipole, smoothed = (costs()["resnet18", method]["work"] for method in ("dipole", "smoothed-16"))
    factor = dipole["forward"] / (smoothed["forward"] + smoothed["backward"])
    return evidence(50 < factor < 80, factor)


def certainty_not_bought() -> Evidence:
    """Decide whether 64 networks leave the first directions at 3 × 224 × 224 unknown."""
    runs = load_costs("large")
    common = max(one["half_overlap"] for run in runs for one in run["first_directions"].values())
    falls = max(run["eigenvalues"][0] / run["eigenvalues"][-1] for run in runs)
    return evidence(common < 0.05 and falls < 10, common, size="paper")
