"""Which floor of the shrinking orders the tail best? Directions of one run, judged by the unbiased C of all others.

.venv/bin/python benchmarks/tail.py    # takes the checkpoints that benchmarks/reliability.py leaves
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from nads_book.analysis.forecasting import restored
from reliability import PIXELS, ROOT
from result_files import write_result

import nads_core as nc
from nads_core.directions.accumulation import read_checkpoint
from nads_core.directions.covariance import debias, leading_eigenpairs
from nads_core.directions.symmetry import symmetrize

CASES = [("none", 0.1), ("subtract", 0.1), *(("shrink", floor) for floor in (0.01, 0.03, 0.1, 0.3, 1.0))]
RANGES = {"first 10": slice(10), "first 50": slice(50), "last 200": slice(-200, None), "last 50": slice(-50, None)}


def main() -> int:
    """Measure, write and print the table."""
    parser = argparse.ArgumentParser(description="Compare ways to finish the second moment by other networks.")
    parser.add_argument("--num-networks", type=int, nargs="+", default=[512, 5_120])
    parser.add_argument("--folder", type=Path, default=ROOT / "_build" / "reliability")
    options = parser.parse_args()
    symmetries = nc.LENET.symmetries_at(32)
    result = {}
    for size in options.num_networks:
        pairs = []
        for path in sorted(options.folder.glob(f"lenet-{size}-*.ckpt")):
            moments = restored(read_checkpoint(path))[0].moments()
            pairs.append([symmetrize(matrix, (1, 32, 32), symmetries) for matrix in moments])
        if len(pairs) < 3:
            raise SystemExit(f"fewer than three runs of {size} networks in {options.folder}: run reliability.py first")
        whole = sum(seen - noise for seen, noise in pairs)
        for how, floor in CASES:
            shares = []
            for seen, noise in pairs:
                judge = (whole - (seen - noise)) / (len(pairs) - 1)
                _, rows = leading_eigenpairs(debias(seen, noise, how, floor), PIXELS)
                energies = (rows @ judge * rows).sum(1) / judge.trace()
                shares.append([float(energies[part].sum()) for part in RANGES.values()])
            mean, error = np.mean(shares, 0), np.std(shares, 0, ddof=1) / len(shares) ** 0.5
            label = how if how != "shrink" else f"shrink, floor {floor:g}"
            result[f"{size}, {label}"] = {
                part: [round(float(m), 6), round(float(e), 6)] for part, m, e in zip(RANGES, mean, error, strict=True)
            }
            print(
                f"{size:>6} {label:<20}",
                *(f"{100 * m:9.4f} ± {100 * e:.4f} %" for m, e in zip(mean, error, strict=True)),
            )
    write_result("tail-lenet", {"energy shares": result})
    return 0


if __name__ == "__main__":
    sys.exit(main())
