"""What NADs cost: stored measurements of time and of operations."""

from functools import cache
from typing import Any

from matplotlib.figure import Figure

from nads_book import report
from nads_book.benchmarks import load_costs
from nads_book.evidence import Evidence, evidence
from nads_book.figures.style import legend, log_ticks, name_rows, styled, subplots

OURS, AUTHORS = 2_000, 10_000  # networks of a default run, and of the authors' computation
DURATIONS = {"1 s": 1, "10 s": 10, "1 min": 60, "10 min": 600, "1 h": 3_600, "10 h": 36_000}
DURATIONS |= {"4 days": 345_600}
RUNS = {  # stored costs -> number of networks of a run
    "smoothed gradient": ("smoothed-16", OURS),
    "the same in bfloat16": ("smoothed-16-bfloat16", OURS),
    "authors' dipole": ("dipole", AUTHORS),
}


@cache
def costs() -> dict[tuple[str, str], Any]:
    """Return the stored costs of the paper's architectures: (architecture, method) -> cost."""
    return {(cost["architecture"], cost["method"]): cost for cost in load_costs("cost")}


@styled
def plot_run_times() -> Figure:
    """Draw the time of a whole run of each architecture on two CPU cores."""
    figure, ((axis,),) = subplots(height=2.4, grid="x")
    for (label, (method, count)), marker in zip(RUNS.items(), "os^", strict=True):
        seconds = [costs()[name, method]["seconds_per_network"] for name in report.LABELS]
        times = [count * one for one in seconds]
        axis.plot(times, range(len(times)), marker, label=label, markersize=6)
    axis.set_xlabel("time of a run")
    log_ticks(axis, list(DURATIONS.values()), DURATIONS)
    name_rows(axis, report.LABELS.values())
    legend(figure, axis, ncols=len(RUNS))
    return figure


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
