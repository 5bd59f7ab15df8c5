"""The tables of this folder's README.md, made from the results files alone: python
benchmarks/tables.py.
"""

from __future__ import annotations

from pathlib import Path

from nads_book.benchmarks import load_costs
from nads_book.benchmarks.measuring import CASES
from nads_book.benchmarks.roofline import DATA_SHEETS, Limits, Work

from nads_core.networks.architectures import ARCHITECTURES

PAGE = Path(__file__).with_name("README.md")
START, END = "<!-- made by python benchmarks/tables.py -->", "<!-- end -->"


def _table(rows: list[list[str]], head: list[str]) -> str:
    alignment = ["---", "---", *["--:"] * (len(head) - 2)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, alignment, *rows))


def _short(value: float) -> str:
    """Return a number with two to three digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.995 else f"{value:.2g}"


def _work_table(costs: list[dict]) -> str:
    sheet, rows = DATA_SHEETS["H200"], []
    for cost in costs:
        work = Work(**cost["work"])
        bound = [
            work.operations_seconds(sheet, precision)
            for precision in ("float32", "tf32", "bfloat16")
        ]
        if work.precision == "bfloat16":
            bound[:2] = None, None
        times = [
            "" if seconds is None else _short(1e6 * seconds)
            for seconds in (*bound, work.bytes_seconds(sheet))
        ]
        count = [work.weights / 1e6, work.forward / 1e9, work.backward / 1e9, work.moments / 1e9]
        sizes = [work.weight_bytes / 1e6, work.activation_bytes / 1e6]
        rows.append(
            [cost["architecture"], cost["method"], *map(_short, count), *map(_short, sizes), *times]
        )
    head = [
        "",
        "",
        "weights drawn, M",
        "forward, Gflop",
        "backward",
        "outer products",
        "weights, MB",
        "activations",
    ]
    return _table(rows, [*head, "H200: float32, µs", "TF32", "bfloat16", "bytes"])


def _measured_table(costs: list[dict]) -> str:
    rows = []
    for cost in costs:
        parts, least = cost["parts"], cost.get("limit_seconds", {})
        times = [
            least.get("operations"),
            least.get("bytes"),
            cost["seconds_per_network"],
            *parts.values(),
        ]
        memory = cost["peak_memory_bytes"]
        rows.append(
            [
                cost["architecture"],
                cost["method"],
                *("" if t is None else _short(1e3 * t) for t in times),
                _short(cost["times_limit"]) if least else "",
                "" if memory is None else _short(memory / 1e9),
            ]
        )
    head = [
        "",
        "",
        "limit: operations, ms",
        "bytes",
        "measured, ms",
        "draw",
        "gradients",
        "moments",
    ]
    return _table(rows, [*head, "measured / limit", "peak memory, GB"])


def _scale_table(results: list[dict]) -> str:
    rows = []
    for result in sorted(results, key=lambda r: r["image_shape"]):
        shape, last = result["image_shape"], result["eigenvectors"]
        used = "" if last["bytes"] is None else _short(last["bytes"] / 1e9)
        least = max(result["limit_seconds"].values()) if "limit_seconds" in result else None
        rows.append(
            [
                " × ".join(map(str, shape)),
                f"{shape[0] * shape[1] * shape[2]:,}",
                "" if least is None else _short(1e3 * least),
                _short(1e3 * result["seconds_per_network"]),
                {"dense": "D × D", "gram": "vectors"}[last["kind"]],
                _short(last["seconds"]),
                used,
            ]
        )
    eigenvectors = f"eigenvectors of {last['num_vectors']}, s"
    head = ["input", "D", "limit, ms per network", "measured", "stored", eigenvectors, "GB"]
    return _table(rows, head)


def _large_lines(results: list[dict]) -> str:
    lines = []
    for result in results:
        seconds, memory = result["seconds"], result["peak_memory_bytes"]
        known = ", ".join(
            f"first {k}: {found['half_overlap']:.2g} (by chance {found['chance']:.1g})"
            for k, found in result["first_directions"].items()
        )
        lines.append(
            f"The {result['problem']}, on {result['device']} ({result['date']}), `{result['method']}` in "
            f"{result['dtype']}: {result['num_networks']} networks in {seconds['networks']:.0f} s and the eigenvectors "
            f"in {seconds['eigenvectors']:.1f} s; "
            + ("" if memory is None else f"peak memory {memory / 1e9:.1f} GB. ")
            + f"Overlap between halves of the networks: {known}."
        )
    return "\n\n".join(lines)


def _equal_error_table(results: list[dict]) -> str:
    rows = [
        [
            f"{result['dipole_networks']:,} dipoles of {result['problem'].split()[2].rstrip(',')}",
            measure,
            _short(result["dipole_seconds"]),
            f"{value:.4f}",
            "not reached" if less is None else _short(result["dipole_seconds"] / less),
            "" if less is None else _short(less),
        ]
        for result in results
        for measure, value, less in zip(
            result["measures"], result["dipole"], result["times_less"], strict=True
        )
    ]
    return _table(rows, ["against", "measure", "dipole, s", "reaches", "ours, s", "speed-up"])


def _runs_table(results: list[dict]) -> str:
    """Return the table of durations, for results without further columns."""
    rows = [
        [
            result["problem"],
            result["method"],
            _short(result["seconds_alone"]),
            _short(result["seconds_together"]),
            f"{result['throughput_gained']:.2f}",
            f"{result['relative_difference']:.1g}",
        ]
        for result in results
    ]
    return _table(
        rows, ["problem", "method", "one process, s", "together, s", "speed-up", "difference"]
    )


def _training_table(results: list[dict]) -> str:
    rows = [
        [
            result["problem"],
            result["method"],
            f"{result['num_networks']}",
            _short(result["seconds"]),
            _short(result["seconds_per_network"]),
            f"{result['mean_test_accuracy']:.3f}",
        ]
        for result in sorted(results, key=lambda r: -r["seconds"])
    ]
    return _table(
        rows, ["problem", "method", "networks", "s", "s per network", "mean test accuracy"]
    )


def _steps_table(results: list[dict]) -> str:
    names = list(ARCHITECTURES)
    rows = [
        [
            result["problem"],
            result["precision"],
            _short(1e3 * result["seconds_per_step"]),
            _short(result["flop"] / 1e9),
            _short(result["limit_flop_per_second"] / 1e9),
            f"{result['share_of_limit']:.0%}",
        ]
        for result in sorted(
            results, key=lambda r: (names.index(r["architecture"]), r["precision"] != "float32")
        )
    ]
    return _table(
        rows,
        ["problem", "precision", "ms per step", "Gflop", "limit, Gflop/s", "share of the limit"],
    )


def _own_loop_table(results: list[dict]) -> str:
    methods, rows = ("own loop", "library, 1 readout", "library"), []
    # The first runs do not name the readouts of the default.
    cases = [(run.get("readouts", 4), *case) for run in results for case in run["cases"].items()]
    for readouts, name, case in cases:
        if isinstance(case["networks"], list):
            for count, *seconds in zip(
                case["networks"], *(case[who]["seconds"] for who in methods), strict=True
            ):
                ratios = [f"{seconds[0] / each:.2f}" for each in seconds[1:]]
                rows.append([name, f"{count:,}", f"{readouts}", *map(_short, seconds), *ratios])
    head = [
        "network",
        "networks",
        "default readouts",
        "own loop, s",
        "1 readout, s",
        "default, s",
        "own loop / 1 readout",
    ]
    return _table(rows, [*head, "/ default"])


def _goals_table(results: list[dict]) -> str:
    rows = []
    for result in results:
        for name, case in result["cases"].items():
            if "curve" not in case["library"]:
                continue
            row = [name, f"{result['date']}"]
            for who in ("own loop", "library"):
                last, first = case[who]["curve"][-1], case[who]["curve"][0]
                reached = case[who]["seconds_to_goal"]
                if reached is None:
                    row.append(f"{last['overlap']:.3f} after {_short(last['seconds'])}")
                else:
                    row.append("≤ " * (reached <= first["seconds"]) + _short(reached))
            rows.append(row)
    return _table(rows, ["network", "date", f"own loop, s to {results[0]['goal']}", "library"])


def _grid_table(results: list[dict]) -> str:
    cases = results[0]["cases"]
    pairs = [(row["inputs"], row["readouts"]) for row in next(iter(cases.values()))["rows"]]
    found = {
        name: {(row["inputs"], row["readouts"]): f"{row['relative']:.2f}" for row in case["rows"]}
        for name, case in cases.items()
    }
    rows = [[f"{k}", f"{r}", *(case[k, r] for case in found.values())] for k, r in pairs]
    return _table(rows, ["inputs", "readouts", *found])


def _order(cost: dict) -> tuple[int, int]:
    return list(ARCHITECTURES).index(cost["architecture"]), list(CASES).index(cost["method"])


def _where(result: dict) -> str:
    limits = result.get("limits")
    what = (
        f"{result['device']} of {result['processor']}"
        if "processor" in result
        else result["device"]
    )
    if limits is None:
        return f"{what}, torch {result['torch']}, {result['date']}"
    rates = Limits(**limits).rates
    share = limits["cores"] or 1
    each = ", ".join(
        f"{name} {_short(rate / share / 1e9)}"
        for name, rate in rates.items()
        if name != "tf32" or not limits["cores"]
    )
    per = "Gflop/s per core" if limits["cores"] else "Gflop/s"
    memory = f"{_short(limits['bandwidth'] / 1e9)} GB/s"
    return f"{what}, torch {result['torch']}, {result['date']}; limits: {each} {per}, {memory}"


def tables(folder: Path | None = None) -> str:
    """Return all tables as Markdown: work per network, measurements on each device, and growing
    inputs.
    """
    costs = sorted(load_costs("cost", folder), key=_order)
    parts, devices = [], sorted({cost["device"] for cost in costs})
    unique = {(cost["architecture"], cost["method"]): cost for cost in costs}
    if costs:
        parts += [
            "**What a network needs**, at 1 × 32 × 32, and the minimum time on an H200.",
            _work_table(list(unique.values())),
        ]
    for device in devices:
        here = [cost for cost in costs if cost["device"] == device]
        parts += [f"**Measured**: {_where(here[0])}.", _measured_table(here)]
    scale = load_costs("scale", folder)
    for device in sorted({result["device"] for result in scale}):
        here = [result for result in scale if result["device"] == device]
        title = f"**Growing inputs**: torchvision's ResNet-18, `{here[0]['method']}`; {_where(here[0])}."
        parts += [title, _scale_table(here)]
    for kind, title, write in (
        ("large", "**Large inputs**", _large_lines),
        ("equal_error", "**Time to the same error**, by `equal_error.py`", _equal_error_table),
        ("processes", "**Several processes**, by `processes.py`", _runs_table),
        ("train_networks", "**Training**, by `train_networks.py`", _training_table),
        (
            "training_step",
            "**A step of training on one core**, by `training_step.py`",
            _steps_table,
        ),
        (
            "own_loop",
            "**Equal numbers of networks, library and own loop**, by `own_loop.py`",
            _own_loop_table,
        ),
        ("own_loop", "**Time to the overlap that is the goal**", _goals_table),
        (
            "estimator_grid",
            "**Error of the second moment × time, over the best**, by `estimator_grid.py`",
            _grid_table,
        ),
        (
            "estimator_leading",
            "**Error of the first ten directions × time, over the best**",
            _grid_table,
        ),
    ):
        if results := load_costs(kind, folder):
            parts += [f"{title}; {_where(results[0])}.", write(results)]
    return "\n\n".join(parts)


def rewrite(text: str, folder: Path | None = None) -> str:
    """Return a page with the tables between its two markers replaced.

    Raises:
        ValueError: if the page has no markers.
    """
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(
            f"the page lacks the lines {START!r} and {END!r}, between which the tables go"
        )
    return f"{before}{START}\n\n{tables(folder)}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(rewrite(PAGE.read_text("utf8"), PAGE.with_name("results")), "utf8")
    print(f"-> {PAGE}")
