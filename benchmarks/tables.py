"""The tables of this folder's README.md, made from the results files: python benchmarks/tables.py.

Each stands between ``<!-- table NAME -->`` and ``<!-- end -->``, where NAME is a key of `TABLES`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nads_book.benchmarks import load_costs
from nads_book.benchmarks.measuring import CASES
from nads_book.benchmarks.stored import results_folder

from nads_core.networks.architectures import ARCHITECTURES

PAGE = Path(__file__).with_name("README.md")
_BLOCK = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def _table(head: str, rows: Iterable[Sequence[str]]) -> str:
    head_lines = [f"| {head} |", f"|---|{'--:|' * head.count(' | ')}"]
    return "\n".join([*head_lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _short(value: float | None) -> str:
    """Return a number with two to three digits, nothing for None."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.995 else f"{value:.2g}"


def _where(*results: dict[str, Any]) -> str:
    dates = sorted({one["date"] for one in results})
    return f"*{results[0]['device']}, {' and '.join(dates)}*"


def _stored(name: str) -> Any:
    return json.loads((results_folder() / f"{name}.json").read_text("utf8"))


def costs() -> str:
    """Return milliseconds per network of each estimator, the parts of those for 16 inputs first."""
    rows = []
    for name in ARCHITECTURES:
        found = [_stored(f"cost-{name}-{case}-cpu") for case in CASES]
        cost = found[0]
        times = [max(cost["limit_seconds"].values()), *cost["parts"].values()]
        times += [one["seconds_per_network"] for one in found]
        memory = max(one["peak_memory_bytes"] for one in found) / 1e9
        rows.append([name, *(_short(1e3 * seconds) for seconds in times), _short(memory)])
    head = " | ".join(["network | limit | draw | gradients | moments", *CASES, "most memory, GB"])
    return f"{_table(head, rows)}\n\n{_where(cost)}"


def pixels() -> str:
    """Return the costs of torchvision's ResNet-18 at growing inputs."""
    results, rows = load_costs("scale"), []
    for result in sorted(results, key=lambda result: result["image_shape"]):
        last = result["eigenvectors"]
        rows.append(
            [
                " × ".join(map(str, result["image_shape"])),
                _short(1e3 * max(result["limit_seconds"].values())),
                _short(1e3 * result["seconds_per_network"]),
                {"dense": "D × D", "gram": "vectors"}[last["kind"]],
                _short(last["seconds"]),
                _short(last["bytes"] / 1e9),
            ]
        )
    head = f"input | limit, ms | measured | stored | eigenvectors of {last['num_vectors']}, s | GB"
    return f"{_table(head, rows)}\n\n{_where(*results)}"


def large() -> str:
    """Return what the first NADs at 3 x 224 x 224 took, and what halves of the networks share."""
    (result,) = load_costs("large")
    seconds, first = result["seconds"], result["first_directions"]
    shared = ", ".join(
        f"first {count} {one['half_overlap']:.1e} ({one['chance']:.1e})"
        for count, one in first.items()
    )
    return (
        f"The {result['problem']}: {result['num_networks']} networks in {result['dtype']} took "
        f"{seconds['networks']:.0f} s, the eigenvectors {seconds['eigenvectors']:.0f} s. Overlap "
        f"between halves of the networks (by chance): {shared}. {_where(result)}"
    )


def equal_error() -> str:
    """Return the times to the dipole's error."""
    results, rows = load_costs("equal_error"), []
    for result in results:
        ratios = dict(zip(result["measures"], result["times_less"], strict=True))
        reached = dict(zip(result["measures"], result["dipole"], strict=True))
        for measure in dict.fromkeys(name.partition(", ")[0] for name in ratios):
            rows.append(
                [
                    f"{result['dipole_networks']:,} × {result['problem'].split()[2]} "
                    + result["dtype"].removeprefix("torch."),
                    measure,
                    _short(result["dipole_seconds"]),
                    f"{reached[f'{measure}, against published directions']:.4f}",
                    _short(ratios[f"{measure}, against published directions"]) or "not reached",
                    _short(ratios[f"{measure}, against its own long run"]) or "not reached",
                ]
            )
    head = "dipoles, our type | measure | s | reached | times as fast | against its own long run"
    return f"{_table(head, rows)}\n\n{_where(*results)}"


def own_loop() -> str:
    """Return seconds of equal numbers of networks."""
    result, rows = _stored("own_loop-counts"), []
    methods = ("own loop", "library, 1 readout", "library")
    for name, case in result["cases"].items():
        of_methods = (case[method]["seconds"] for method in methods)
        for count, *seconds in zip(case["networks"], *of_methods, strict=True):
            ratio = seconds[0] / seconds[1]
            rows.append([name, f"{count:,}", *map(_short, seconds), f"{ratio:.2f}"])
    head = f"network | networks | own loop, s | 1 readout | {result['readouts']} readouts"
    return f"{_table(f'{head} | own loop / 1 readout', rows)}\n\n{_where(result)}"


def goals() -> str:
    """Return seconds until the overlap with a long run is the goal."""
    results = [one for one in load_costs("own_loop") if "readouts" not in one]
    rows = sorted(
        [name, *(_seconds_to_goal(case[method]) for method in ("own loop", "library"))]
        for result in results
        for name, case in result["cases"].items()
        if "curve" in case["library"]
    )
    head = f"network | own loop, s to {results[0]['goal']} | library"
    return f"{_table(head, rows)}\n\n{_where(*results)}"


def _seconds_to_goal(method: dict[str, Any]) -> str:
    curve, reached = method["curve"], method["seconds_to_goal"]
    if reached is None:
        return f"{curve[-1]['overlap']:.3f} after {_short(curve[-1]['seconds'])}"
    return "≤ " * (reached <= curve[0]["seconds"]) + _short(reached)


def grid() -> str:
    """Return error x time over the best, of the second moment and of the first ten directions."""
    results = [_stored(f"estimator_{kind}-cpu") for kind in ("grid", "leading")]
    columns = {
        f"{name}{addition}": {(row["inputs"], row["readouts"]): row for row in case["rows"]}
        for result, addition in zip(results, ("", ", first 10"), strict=True)
        for name, case in result["cases"].items()
    }
    pairs = sorted({pair for rows in columns.values() for pair in rows})
    rows = [
        [f"{pair[0]} | {pair[1]}"]
        + [f"{rows[pair]['relative']:.2f}" if pair in rows else "" for rows in columns.values()]
        for pair in pairs
    ]
    return f"{_table(' | '.join(['inputs', 'readouts', *columns]), rows)}\n\n{_where(*results)}"


def steps() -> str:
    """Return the times of a step of training, and the share of a core's limit."""
    rows, precisions = [], ("float32", "bfloat16")
    for name in ARCHITECTURES:
        found = [_stored(f"training_step-{name}-{precision}-cpu") for precision in precisions]
        cells = [
            f"{_short(1e3 * one['seconds_per_step'])} | {one['share_of_limit']:.0%}"
            for one in found
        ]
        rows.append([found[0]["problem"], *cells])
    head = "network | float32, ms per step | of the limit | bfloat16 | of the limit"
    return f"{_table(head, rows)}\n\n{_where(*found)}"


def trainings() -> str:
    """Return the times of whole trainings."""
    results = sorted(load_costs("train_networks"), key=lambda result: -result["seconds"])
    rows = [
        [one["method"], _short(one["seconds_per_network"]), f"{one['mean_test_accuracy']:.3f}"]
        for one in results
    ]
    head = f"{results[0]['num_networks']} × {results[0]['problem']} | s per network | accuracy"
    return f"{_table(head, rows)}\n\n{_where(*results)}"


def sharing() -> str:
    """Return what two processes gain."""
    results = load_costs("processes")
    rows = [
        [
            one["problem"],
            _short(one["seconds_alone"]),
            _short(one["seconds_together"]),
            f"{one['throughput_gained']:.2f}",
            f"{one['relative_difference']:.0e}",
        ]
        for one in results
    ]
    head = f"networks | one process, s | {results[0]['method']} | speed-up | difference"
    return f"{_table(head, rows)}\n\n{_where(*results)}"


def busy() -> str:
    """Return the times of LeNets beside another program."""
    result, rows = _stored("busy"), []
    for place, label in (("idle", "idle machine"), ("busy", "beside another program")):
        medians = result["medians"][place]
        rows.append([label, _short(medians["default"]), _short(medians["1"])])
    head = f"{result['networks']} LeNets | default threads, s | one thread"
    return f"{_table(head, rows)}\n\n{_where(result)}"


def audits() -> str:
    """Return what audits cost and find."""
    result = _stored("audits")
    rows = [
        [name, _short(one["network_ms"]), _short(one["audit_ms"]), f"{100 * one['share']:.1f} %"]
        for name, one in result["costs"].items()
    ]
    found = ", ".join(
        f"{100 * rate:.0f} % (at {100 * float(share):.0f} %)"
        for share, rate in result["rejected"].items()
    )
    head = f"network | ms per network | ms per audit | share of {result['networks']:,} networks"
    return f"{_table(head, rows)}\n\nRejected: {found} of the factories. {_where(result)}"


def playground() -> str:
    """Return how long a reader of the playground waits."""
    result = _stored("playground")
    names = ("picture", "stable", "all", "training")
    rows = [
        [f"{row['workers']}", *(_short(row[name]) for name in names)]
        for row in result["rows"]
        if row["slowdown"] == 1
    ]
    head = "workers | first picture, s | stable NAD 0 | all networks | a training"
    return f"{_table(head, rows)}\n\n{_where(result)}"


def heavy_tails() -> str:
    """Return how far promises are from what two runs share, for heavy-tailed gradients."""
    result = _stored("heavy_tails")
    rows = []
    for kind, label in (("before", "number"), ("after", "effective number")):
        excess = {
            name: case[kind]["mean_promised"] - case[kind]["mean_kept"]
            for name, case in result["cases"].items()
        }
        ends = [end(excess, key=excess.__getitem__) for end in (max, min)]
        rows.append([label, *(f"{excess[name]:+.2f} ({name})" for name in ends)])
    head = f"promised by the | most too high, of {len(excess)} | most too low"
    return f"{_table(head, rows)}\n\n{_where(result)}"


def few_networks() -> str:
    """Return what claims of few networks would keep, and what claims with the limit keep."""
    result, rows = _stored("few_networks"), []
    for name, kinds in result["cases"].items():
        for kind, found in kinds.items():
            today = found.pop("with the limit")  # other keys: "LOW to HIGH networks"
            few = [found[key] for key in found if float(key.split()[2]) <= result["limit"]]
            rows.append([name, kind])
            for group in (few, [today]):
                count = sum(row["claims"] for row in group)
                rows[-1].append(f"{count:,}")
                for key in ("claimed", "measured"):
                    total = sum(row["claims"] * row.get(key, 0) for row in group)
                    rows[-1].append(f"{total / count:.2f}" if count else "")
    columns = "claims | claimed | measured"
    head = f"network | kind | below {result['limit']}: {columns} | with the limit: {columns}"
    return f"{_table(head, rows)}\n\n{_where(result)}"


def zoo() -> str:
    """Return how many models of each source ran, and their largest difference from a plain loop."""
    models, rows = _stored("zoo"), []
    for source in dict.fromkeys(name.partition(":")[0] for name in models):
        own = [row for name, row in models.items() if name.startswith(source)]
        ran = [row for row in own if row["result"] == "ran"]
        scores = [row[key] or 0.0 for row in ran for key in ("z_trace", "z_energy")]
        numbers = f"{len(own)} | {len(ran)} | {len(own) - len(ran)}"
        rows.append([source, numbers, f"{max(map(abs, scores)):.1f}"])
    return _table("source | models | ran | rejected | largest difference, standard errors", rows)


def cases() -> str:
    """Return how many cases there are, how far ratios are from 1, and what else was as expected."""
    rows = _stored("cases")["rows"]
    ratios = [row for row in rows if "ratio" in row]
    scores = [abs(row["ratio"] - 1) / row["standard_error"] for row in ratios]
    right = sum(row["as_expected"] for row in rows)
    return (
        f"{len({row['case'] for row in rows})} cases, {right} of {len(rows)} outcomes as expected; "
        f"{len(ratios)} ratios, at most {max(scores):.1f} standard errors from 1."
    )


def gpu_networks() -> str:
    """Return networks per second by evaluation, on a GPU."""
    rows = _stored("gpu-networks")["rows"]
    # Two runs, the newer first; the older one drew the blocks of a CPU
    today, *_, before = dict.fromkeys(row["commit"] for row in rows)
    columns = {
        "`loop`": f"loop, float32, torch, {today}",
        "`graph`": f"graph, float32, torch, {today}",
        "`vmap`": f"vmap, float32, torch, {today}",
        "in bfloat16": f"vmap, bfloat16, torch, {today}",
        "kernel for convolutions": f"vmap, float32, triton, {today}",
        "earlier: `vmap`": f"vmap, float32, torch, {before}",
        "three kernels": f"vmap, float32, triton, also for weights and moments, {before}",
    }
    keys = ("network", "evaluation", "dtype", "kernels", "commit")
    rates = {", ".join(row[key] for key in keys): row for row in rows if "network" in row}
    table = []
    for name in dict.fromkeys(row["network"] for row in rates.values()):
        found = [rates.get(f"{name}, {choice}") for choice in columns.values()]
        share = 100 * rates[f"{name}, vmap, float32, torch, {today}"]["roofline_share"]
        speeds = [f"{row['networks_per_second']:,.0f}" if row else "" for row in found]
        table.append([name, *speeds, f"{share:.1f} %"])
    head = " | ".join(["networks per second", *columns, "share of the limits"])
    return f"{_table(head, table)}\n\n{_where(rows[0])}"


def gpu_kernels() -> str:
    """Return the times of kernels and of PyTorch, on a GPU."""
    rows, table = _stored("gpu-kernels")["rows"], []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        of_problem = [row for row in rows if row["problem"] == problem]
        found = {row["method"]: row for row in of_problem}
        kernels = [row for row in of_problem if row["method"].startswith("triton")]
        tile = "triton, PIXELS 256, warps 4"  # the one that is used
        kernel = found.get(tile) or min(kernels, key=lambda row: row["seconds"])
        plain = found.get("vmap") or found["torch, as shipped"]
        block = found.get("torch, one block")
        times = [kernel["seconds"], plain["seconds"], block and block["seconds"]]
        cells = [_short(seconds and 1e6 * seconds) for seconds in times]
        table.append([problem, *cells, f"{100 * kernel['share_of_limit']:.0f} %"])
    head = "problem | kernel, µs | PyTorch | PyTorch, one block | kernel's share of the limits"
    return f"{_table(head, table)}\n\n{_where(rows[0])}"


def gpu_calls() -> str:
    """Return seconds of whole calls and of an own loop, on a GPU."""
    rows, table = _stored("gpu-own_loop")["rows"], []
    for name in dict.fromkeys(row["network"] for row in rows):
        found = [row for row in rows if row["network"] == name]
        own, ours, kernel = (
            min((row["seconds"] for row in found if row["method"] == method), default=None)
            for method in ("own loop", "library", "library, triton")
        )
        count, seconds = found[0]["networks"], map(_short, (own, ours, kernel))
        table.append([name, f"{count:,}", *seconds, f"{own / ours:.1f}"])
    head = "network | networks | own loop, s | library | with kernel | own loop / library"
    return f"{_table(head, table)}\n\n{_where(rows[0])}"


def gpu_rest() -> str:
    """Return the outcomes of the other parts of ``tools/on_a_gpu.py``."""
    tests = [row["outcome"] for row in _stored("gpu-tests")["rows"]]
    *_, before, last = _stored("gpu-large")["rows"]
    shared, promised = last["overlap_of_two_seeds"], last["certainty"]
    more = last["networks"] - before["networks"]
    return "\n".join(
        [
            f"- **Tests.** {tests.count('PASSED')} of {len(tests)} passed.",
            f"- **1 × 128 × 128.** {more:,} further LeNets took {max(last['seconds']):.0f} s. "
            f"Two runs of {last['networks']:,} share {_short(shared['1'])} of the first NAD and "
            f"{_short(shared['50'])} of the first 50; their certainties are "
            f"{_short(promised['1'])} and {_short(promised['50'])}.",
        ]
    )


TABLES = {
    each.__name__: each
    for each in (
        costs,
        pixels,
        large,
        equal_error,
        own_loop,
        goals,
        grid,
        steps,
        trainings,
        sharing,
        busy,
        audits,
        playground,
        heavy_tails,
        few_networks,
        zoo,
        cases,
        gpu_networks,
        gpu_kernels,
        gpu_calls,
        gpu_rest,
    )
}


def rewrite(text: str) -> str:
    """Return a page with its tables made anew.

    Raises:
        ValueError: if a table is missing on the page.
    """
    if missing := TABLES.keys() - {name for _, name, _ in _BLOCK.findall(text)}:
        raise ValueError(f"the page lacks <!-- table NAME --> for {', '.join(sorted(missing))}")
    return _BLOCK.sub(lambda block: f"{block[1]}{TABLES[block[2]]()}\n{block[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(rewrite(PAGE.read_text("utf8")), "utf8")
