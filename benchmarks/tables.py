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
GAIN = 1.2  # of whole calls by a kernel that becomes the default
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
    made = sorted({f"{one['date']} at {(one['commit'] or 'unknown')[:7]}" for one in results})
    return f"*{results[0]['device']}, {' and '.join(made)}*"


def _stored(name: str) -> Any:
    return json.loads((results_folder() / f"{name}.json").read_text("utf8"))


def costs() -> str:
    """Return milliseconds per network of each estimator, the parts of those for 16 inputs first."""
    rows = []
    for name in ARCHITECTURES:
        found = [_stored(f"cost-{name}-{case}-cpu") for case in CASES]
        cost = found[0]
        times = [*cost["parts"].values(), *(one["seconds_per_network"] for one in found)]
        memory = max(one["peak_memory_bytes"] for one in found) / 1e9
        rows.append([name, *(_short(1e3 * seconds) for seconds in times), _short(memory)])
    head = " | ".join(["network | draw | gradients | moments", *CASES, "most memory, GB"])
    return f"{_table(head, rows)}\n\n{_where(cost)}"


def pixels() -> str:
    """Return the costs of torchvision's ResNet-18 at growing inputs."""
    results, rows = load_costs("scale"), []
    for result in sorted(results, key=lambda result: result["image_shape"]):
        last = result["eigenvectors"]
        rows.append(
            [
                " × ".join(map(str, result["image_shape"])),
                _short(1e3 * result["seconds_per_network"]),
                {"dense": "D × D", "gram": "vectors"}[last["kind"]],
                _short(last["seconds"]),
                _short(last["bytes"] / 1e9),
            ]
        )
    head = f"input | measured, ms | stored | eigenvectors of {last['num_vectors']}, s | GB"
    return f"{_table(head, rows)}\n\n{_where(*results)}"


def own_loop() -> str:
    """Return seconds of equal numbers of networks."""
    result = _stored("own_loop-library")
    rows = []
    for row in result["rows"]:
        own, library = row["own loop"], row["library"]
        seconds = f"{_short(own)} | {_short(library)} | {own / library:.2f}"
        rows.append([row["network"], f"{row['networks']:,}", str(row["readouts"]), seconds])
    head = "network | networks | readouts | own loop, s | library, s | own loop / library"
    return f"{_table(head, rows)}\n\n{_where(result)}"


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


def zoo() -> str:
    """Return how many models of each source ran, and their largest difference from a plain loop."""
    models, rows = _stored("zoo"), []
    for source in dict.fromkeys(name.partition(":")[0] for name in models):
        own = [row for name, row in models.items() if name.startswith(source)]
        ran = [row for row in own if row["result"] == "ran"]
        scores = [row.get(key) or 0.0 for row in ran for key in ("z_trace", "z_energy")]
        numbers = f"{len(own)} | {len(ran)} | {len(own) - len(ran)}"
        rows.append([source, numbers, f"{max(map(abs, scores)):.1f}"])
    return _table("source | models | ran | rejected | largest difference, standard errors", rows)


def cards() -> str:
    """Return seconds of whole calls and of a plain loop on each GPU, and what the kernel gains."""
    head = "network | networks | plain loop, s | library | with kernel | loop / library"
    head = f"{head} | library / with kernel | parts of a call without the kernel"
    tables = []
    for path in sorted(results_folder().glob("card-*.json")):
        if rows := [row for row in _stored(path.stem)["rows"] if row["part"] == "calls"]:
            table, gains = _calls(rows)
            tables.append(f"{_table(head, table)}\n\n{_where(*rows)}. {gains}")
    return "\n\n".join(tables)


def _calls(rows: Sequence[dict[str, Any]]) -> tuple[list[list[str]], str]:
    """Return the rows of a card's table, and for which networks the kernel gains a fifth, with what
    failed.
    """
    calls: dict[str, dict[str, dict[str, Any]]] = {}
    failed = [f"{row['network']} ({row['method']})" for row in rows if "error" in row]
    for row in rows:
        if "seconds" in row:
            calls.setdefault(row["network"], {})[row["method"]] = row
    table, tried, gains = [], [], []
    for name, found in calls.items():
        loop, ours, kernel = (
            found.get(method, {}).get("seconds") for method in ("plain loop", "torch", "triton")
        )
        against, gain = (a / b if a and b else None for a, b in ((loop, ours), (ours, kernel)))
        tried += [name] if gain else []
        gains += [name] if gain and gain >= GAIN else []
        parts = found.get("torch", {}).get("parts", {})
        count = next(iter(found.values()))["networks"]
        shares = (f"{part} {100 * count * x / ours:.0f} %" for part, x in parts.items())
        numbers = map(_short, (loop, ours, kernel, against, gain))
        table.append([name, f"{count:,}", *numbers, ", ".join(shares)])
    names = (", ".join(some) or "none" for some in (tried, gains, failed))
    told = "With the kernel: {}. At least 1.2 times as fast: {}. Failed: {}."
    return table, told.format(*names)


TABLES = {each.__name__: each for each in (costs, pixels, own_loop, playground, zoo, cards)}


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
