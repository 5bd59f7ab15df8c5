"""Run the tests that wait for something many times in a row, and name those that do not pass every time.

.venv/bin/python .ci/flakes.py --rounds 20
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Tests of processes, signals, files, generators and a browser. What follows from its arguments alone passes or fails
# every time, and chapters take minutes: both are left out, so that a round stays under five minutes.
WAITING = (
    "command_line", "distributed", "doctor", "experiments", "explorer", "memory", "provenance", "publishing", "queue",
    "seeds", "training",
)  # fmt: skip


def main() -> int:
    """Print a line a round, and at the end every test that failed, with how often."""
    parser = argparse.ArgumentParser(description="Look for tests that do not pass every time.")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("options", nargs="*", help="further options of pytest, after --")
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile"]
    command += [*(f"tests/test_{name}.py" for name in WAITING), *arguments.options]
    failures: Counter[str] = Counter()
    for number in range(1, arguments.rounds + 1):
        start = time.perf_counter()
        result = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", result.stdout, re.MULTILINE)
        if result.returncode and not failed:
            failed = [f"pytest ended with status {result.returncode}"]
        failures.update(failed)
        last = result.stdout.strip().rpartition("\n")[2].strip("= ")
        print(f"{number:>3}  {time.perf_counter() - start:4.0f} s  {last}", *failed, sep="\n       ", flush=True)
    for name, count in failures.most_common():
        print(f"{name} failed in {count} of {arguments.rounds} rounds")
    print("no flake" if not failures else f"{len(failures)} tests did not pass every time")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
