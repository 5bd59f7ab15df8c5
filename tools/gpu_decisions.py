"""What is the default on GPUs, decided by a rule from the results of `tools/on_a_gpu.py`.

What makes the networks of `compute_nads` at least 1.2 times faster as a whole is the default; what
does not, after its tiles are tuned, is replaced or removed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

RULE = 1.2  # times as fast as a whole, from which something becomes the default
GOALS = {"lenet": 5.0, "cnn": 5.0}  # networks per second of the own loop on the same card
ROOFLINE_GOAL = 0.3  # share of the limit of the arithmetic

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Decision:
    """One decision.

    Args:
        subject: subject of the decision, such as "evaluation of lenet".
        decision: consequence; "not known" where a time is missing.
        reason: the figures behind it.
    """

    subject: str
    decision: str
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.decision} ({self.reason})"


def _rate(rows: Iterable[Row], **wanted: Any) -> float | None:
    """Return the networks per second of the row with these values, None where it is missing or
    failed.
    """
    for row in rows:
        if all(row.get(name) == value for name, value in wanted.items()):
            return row.get("networks_per_second")
    return None


def decide(networks: list[Row], own_loops: list[Row]) -> list[Decision]:
    """Decide evaluations, kernels and goals.

    Args:
        networks: rows of part "networks": network, evaluation, dtype, kernels, networks_per_second,
            roofline_share.
        own_loops: rows of part "own_loop": network, method ("own loop", "library", ...),
            networks_per_second.

    Returns:
        Decisions for each network that either part names, then those about the kernels.
    """
    names = list(dict.fromkeys(row["network"] for row in (*networks, *own_loops)))
    decisions = [_evaluation(name, networks) for name in names]
    decisions += [_kernels(name, own_loops) for name in names]
    return decisions + [_goal(name, networks, own_loops) for name in names if name in GOALS]


def _evaluation(name: str, rows: list[Row]) -> Decision:
    subject = f"evaluation of {name}"
    plain = {"network": name, "dtype": "float32", "kernels": "torch"}
    rates = {kind: _rate(rows, evaluation=kind, **plain) for kind in ("vmap", "graph", "loop")}
    known = {kind: rate for kind, rate in rates.items() if rate is not None}
    if not known:
        return Decision(subject, "not known", "no evaluation was timed")
    best = max(known, key=lambda kind: known[kind])
    figures = ", ".join(f"{kind} {rate:,.1f} networks/s" for kind, rate in known.items())
    if "vmap" not in known:
        return Decision(subject, best, f"{figures}; vmap failed")
    if known[best] >= RULE * known["vmap"]:
        return Decision(subject, best, f"{figures}; {known[best] / known['vmap']:.2f} >= {RULE}")
    return Decision(subject, "vmap", f"{figures}; nothing is {RULE} times as fast")


def _kernels(name: str, rows: list[Row]) -> Decision:
    subject = f"kernels for {name}"
    of_network = [row for row in rows if row["network"] == name]
    newest = [row for row in of_network if _run_of(row) == _run_of(of_network[0])]
    ours, theirs = (_rate(newest, variant=variant) for variant in ("library, triton", "library"))
    if ours is None or theirs is None:
        return Decision(subject, "not known", "one of the two was not timed")
    rates = f"triton {ours:,.1f}, torch {theirs:,.1f} networks/s"
    reason = f"whole calls: {rates}, {ours / theirs:.2f} times"
    return Decision(subject, "triton" if ours >= RULE * theirs else "torch", reason)


def _run_of(row: Row) -> tuple[Any, Any]:
    """Return what tells a run of the script from others: times of two are not compared."""
    return row.get("commit"), row.get("device")


def _goal(name: str, networks: list[Row], own_loops: list[Row]) -> Decision:
    subject = f"goal of {name}"
    own = [row for row in own_loops if row["network"] == name and "networks_per_second" in row]
    ratios = []  # of each run: processors differ, and the own loop draws networks on one
    for run in {_run_of(row) for row in own}:
        loops, libraries = (
            [
                row["networks_per_second"]
                for row in own
                if _run_of(row) == run and (row["method"] == "own loop") == is_loop
            ]
            for is_loop in (True, False)
        )
        ratios += [max(libraries) / max(loops)] if loops and libraries else []
    if not ratios:
        return Decision(subject, "not known", "the own loop or the library was not timed")
    ratio = min(ratios)
    shares = [
        row["roofline_share"]
        for row in networks
        if row["network"] == name and row.get("roofline_share") is not None
    ]
    share = max(shares, default=None)
    reached = ratio >= GOALS[name] and share is not None and share >= ROOFLINE_GOAL
    roofline = "no share" if share is None else f"{100 * share:.0f} %"
    reason = (
        f"{ratio:.1f} of {GOALS[name]:.0f} times the own loop, {roofline} of the roofline "
        f"({100 * ROOFLINE_GOAL:.0f} % wanted)"
    )
    return Decision(subject, "reached" if reached else "missed", reason)
