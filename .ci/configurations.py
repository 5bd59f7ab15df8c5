"""Run all tests, and the book at `smoke`, in six configurations with every pair of what differs between machines.

    .venv/bin/python .ci/configurations.py --rows 1 2

Each row is a fresh clone of what is committed, under this Python. Photos come from NADS_DATA, published directions from
NADS_REFERENCE. The table, and the output of every row, are written to `_build/configurations/` as they come.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FACTORS = {
    "instructions": ("native", "restricted"),
    "threads": ("1", "2"),
    "photos": ("with", "without"),
    "references": ("with", "without"),
    "Chromium": ("with", "without"),
}
# Any two of these sets of rows meet, none holds another, and all leave out row 1: so each pair of factors takes all of
# its four pairs of values.
SECOND = dict(zip(FACTORS, ({2, 3, 4}, {3, 4, 5}, {4, 5, 6}, {5, 6, 2}, {6, 2, 3}), strict=True))
ROWS = {row: {factor: values[row in SECOND[factor]] for factor, values in FACTORS.items()} for row in range(1, 7)}


def environment(row: dict[str, str], home: Path) -> dict[str, str]:
    """Return the variables of one configuration; ``home`` is an empty folder, without photos fetched earlier."""
    variables = {name: value for name, value in os.environ.items() if name not in ("NADS_STRICT", "NADS_RESULTS")}
    variables |= {"NADS_TEST_THREADS": row["threads"], "OMP_NUM_THREADS": row["threads"], "OMP_WAIT_POLICY": "PASSIVE"}
    if row["photos"] == "without":
        variables.pop("NADS_DATA", None)
        variables |= {"NADS_DOWNLOAD": "0", "HOME": str(home)}
    if row["references"] == "without":
        variables.pop("NADS_REFERENCE", None)
    if row["Chromium"] == "without":
        variables["NADS_CHROMIUM"] = ""
    if row == ROWS[1]:
        variables["NADS_STRICT"] = "1"  # everything is at hand: no test but those of a GPU may be skipped
    return variables


def run(command: list[str], row: dict[str, str], clone: Path, home: Path, log: Path) -> tuple[bool, float, str]:
    """Run a Python program in a clone; return whether it succeeded, its seconds, and its last lines."""
    prefix = [".ci/another-machine"] if row["instructions"] == "restricted" else []
    start = time.perf_counter()
    with log.open("w") as file:
        status = subprocess.run(
            [*prefix, sys.executable, *command],
            cwd=clone,
            env=environment(row, home) | {"PYTHONPATH": str(clone)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        ).returncode
    return status == 0, time.perf_counter() - start, log.read_text(errors="replace")[-5_000:]


def counts(output: str) -> str:
    """Return what pytest counted, such as "3 failed, 1280 passed, 4 skipped"."""
    found = re.findall(r"\d+ (?:failed|passed|skipped|errors?)\b", output.strip().rpartition("\n")[2])
    return ", ".join(found) or "no tests"


def main() -> int:
    """Run the rows that are asked for, and write the table after each."""
    parser = argparse.ArgumentParser(description="Run the tests and the book in six configurations.")
    parser.add_argument("--rows", type=int, nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "configurations")
    arguments = parser.parse_args()
    for name in ("NADS_DATA", "NADS_REFERENCE"):
        if not Path(os.environ.get(name) or "/nowhere").is_dir():
            parser.error(f"{name} must name a folder: half of the configurations need it")
    arguments.out.mkdir(parents=True, exist_ok=True)
    lines = ["| | " + " | ".join(FACTORS) + " | tests | minutes | book at smoke | minutes |", "|---" * 10 + "|"]
    print("\n".join(lines), flush=True)
    fine = True
    for number in arguments.rows:
        row = ROWS[number]
        with tempfile.TemporaryDirectory() as folder:
            clone, home = Path(folder) / "clone", Path(folder) / "home"
            home.mkdir()
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
            tests = ["-m", "pytest", "-n", "auto", "--dist", "loadfile"]
            passed, seconds, said = run(tests, row, clone, home, arguments.out / f"{number}-tests.log")
            # Goes on from the chapters that the tests have executed. One at a time has both cores; two have one each.
            book = ["book/build.py", "--preset", "smoke", "--folder", "_build/test"]
            book += ["--jobs", "1"] if row["threads"] == "2" else []
            built, more, _ = run(book, row, clone, home, arguments.out / f"{number}-book.log")
            if (clone / "_build" / "screenshots").is_dir():
                shutil.copytree(
                    clone / "_build" / "screenshots", arguments.out / f"{number}-screenshots", dirs_exist_ok=True
                )
        fine = fine and passed and built
        cells = [counts(said), f"{seconds / 60:.1f}", "built" if built else "failed", f"{more / 60:.1f}"]
        lines.append("| " + " | ".join([str(number), *row.values(), *cells]) + " |")
        print(lines[-1], flush=True)
        (arguments.out / "table.md").write_text("\n".join(lines) + "\n")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
