"""Kill a job at random moments, let it go on, and compare what it ends with with an uninterrupted run.

.venv/bin/python .ci/interruptions.py --job fig1-vgg11 --preset smoke --kills 10
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nads_book.experiments import Results


def measured(path: Path) -> list[dict]:
    """Return the rows without their seconds."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in Results.load(path).rows]


def main() -> int:
    """Print a line a kill, and whether the numbers are those of an uninterrupted run."""
    parser = argparse.ArgumentParser(description="Kill a job at random moments, and see what it ends with.")
    parser.add_argument("--job", default="fig1-vgg11")
    parser.add_argument("--preset", default="smoke")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder) / "whole.json", Path(folder) / "killed.json"
        command = [sys.executable, "-m", "nads_core", "run", options.job, "--preset", options.preset, "--device", "cpu"]
        start = time.monotonic()
        subprocess.run([*command, "--out", str(whole)], check=True, capture_output=True)
        alone = time.monotonic() - start
        rows = Results.load(whole).rows
        longest = max(row["seconds"] for row in rows)
        print(f"uninterrupted: {len(rows)} networks in {alone:.0f} s, {longest:.0f} s the longest", flush=True)
        spent = 0.0
        for number in range(1, options.kills + 1):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = subprocess.Popen([*command, "--out", str(killed)], start_new_session=True, **quiet)
            begun, patience = time.monotonic(), rng.uniform(0.5, 1.5) * alone / options.kills
            while time.monotonic() - begun < patience and process.poll() is None:
                time.sleep(0.05)
            done = process.poll() is not None
            os.killpg(process.pid, signal.SIGKILL) if not done else None
            process.wait()
            spent += time.monotonic() - begun
            states = [time.time() - path.stat().st_mtime for path in Path(folder).glob(".*.part")]
            kept = len(Results.load(killed).rows) if killed.exists() else 0
            ages = ", ".join(f"{age:.1f}" for age in states) or "none"
            print(
                f"kill {number:>2} after {patience:5.1f} s: {kept} networks kept, states written {ages} s before",
                flush=True,
            )
            if done:
                break
        start = time.monotonic()
        subprocess.run([*command, "--out", str(killed)], check=True, capture_output=True)
        spent += time.monotonic() - start
        same = measured(killed) == measured(whole)
        verdict = "the same numbers" if same else "OTHER NUMBERS"
        print(f"{verdict}; {spent:.0f} s in all, {spent - alone:.0f} s of them lost")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
