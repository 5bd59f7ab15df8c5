"""Do certificates come true? Runs of one architecture, each judged by all the others together.

.venv/bin/python benchmarks/reliability.py lenet --num-networks 5120 --runs 40
.venv/bin/python benchmarks/reliability.py resnet18 --parts resnet18.*.ckpt  # successive checkpoints of one run
.venv/bin/python benchmarks/reliability.py deep-linear --runs 40  # whose C is known exactly: a new filter for each run

The runs' checkpoints stay in _build/reliability/, so that an interrupted call goes on; the diagram is added to
book/results/studies/reliability.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path

import torch
from nads_book.experiments.calibration import (
    Comparison,
    agreement,
    between,
    compare_runs,
    compare_with_exact,
    summary,
)
from nads_book.experiments.stored import study_path

import nads_core as nc
from nads_core.directions.checkpoints import read_checkpoint, restored
from nads_core.directions.eigenpairs import find_eigenpairs
from nads_core.directions.first_networks import FirstNetworks
from nads_core.directions.moments import DenseMoments
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment
from nads_core.theory.deep_linear import DeepLinear, gradient_covariance

ROOT = Path(__file__).resolve().parent.parent
FILE = study_path("reliability.json")
AGREEMENT = FILE.with_name("agreement.json")
PIXELS = 32 * 32
FREQUENCIES, TAPS = 256, 9  # of the deep linear models, and of their filters
Run = tuple[DenseMoments, FirstNetworks]


def separate(architecture: nc.Architecture, num_networks: int, count: int, folder: Path) -> list[Run]:
    """Compute runs of different seeds, or take up those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = []
    for number in range(count):
        path = folder / f"{architecture.name}-{num_networks}-{number}.ckpt"
        print(f"run {number + 1} of {count}", file=sys.stderr)
        nc.compute_nads(architecture, num_networks, seed=1_000 + number, num_directions=1, checkpoint=path)
        runs.append(restored(read_checkpoint(path)))
    return runs


def parts(paths: list[Path]) -> list[Run]:
    """Return what one run added from each of its checkpoints to the next; all share the first networks of the run."""
    states = [restored(read_checkpoint(path)) for path in paths]
    states.sort(key=lambda run: run[0].num_networks)
    moments = [states[0][0], *(between(a[0], b[0]) for a, b in zip(states, states[1:], strict=False))]
    return [(part, states[0][1]) for part in moments]


def deep_linear(num_networks: int, count: int, folder: Path) -> list[Comparison]:
    """Compare runs of deep linear models, each with the response of a random filter of its own, with their exact C."""
    folder.mkdir(parents=True, exist_ok=True)
    comparisons = []
    for seed in range(count):
        taps = torch.randn(TAPS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        response = torch.fft.rfft(taps, 2 * FREQUENCIES)[:FREQUENCIES].abs()
        path = folder / f"deep-linear-{num_networks}-{seed}.ckpt"
        nc.compute_nads(
            partial(DeepLinear, response), num_networks, image_shape=(FREQUENCIES,), estimator=nc.PointGradient(),
            seed=1_000 + seed, num_directions=1, checkpoint=path, progress=False,
        )  # fmt: skip
        run = restored(read_checkpoint(path))
        comparisons += compare_with_exact([run], gradient_covariance(response), (FREQUENCIES,))
        print(f"run {seed + 1} of {count}", file=sys.stderr)
    return comparisons


def against_shipped(architecture: nc.Architecture, runs: list[Run]) -> dict[str, object]:
    """Compare the NADs that ship with those of all runs together, whose networks are others."""
    shipped, together = nc.load_nads(architecture.name), runs[0][0].empty()
    for moments, _ in runs:
        together.merge(moments)
    found = find_eigenpairs(together, runs[0][1], PIXELS, (1, 32, 32), symmetries=architecture.symmetries_at(32))
    other = nc.NADs(found.directions.float().view(-1, 1, 32, 32), found.eigenvalues.float(), {}, found.certificates)
    by_index, by_name = agreement(shipped, other)
    place = {name: index for index, name in enumerate(other.names)}
    foretold = shipped.certainty * other.certainty[[place[name] for name in shipped.names]]
    rounded = {"by_index": by_index, "by_name": by_name, "foretold": foretold}
    return {
        "version": shipped.provenance["version"], "fingerprint": shipped.fingerprint,
        "num_networks": [shipped.provenance["num_networks"], together.num_networks],
        "overlaps": {str(k): round(shipped.overlap(other, k), 4) for k in (10, 50, 100, 300)},
        **{name: [round(value, 3) for value in values.tolist()] for name, values in rounded.items()},
        **environment(torch.device("cpu")),
    }  # fmt: skip


def keep(path: Path, key: str, found: dict[str, object], indent: int | None) -> None:
    """Add an entry to a file that ships."""
    known = json.loads(path.read_text("utf8")) if path.exists() else {}
    with atomic_write(path, "w") as file:
        json.dump(known | {key: found}, file, indent=indent)
        file.write("\n")


def main() -> int:
    """Measure, write, and print one diagram."""
    parser = argparse.ArgumentParser(description="Measure whether certificates come true.")
    parser.add_argument("architecture", choices=[*nc.ARCHITECTURES, "deep-linear"])
    parser.add_argument("--num-networks", type=int, default=5_120)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--parts", type=Path, nargs="+", help="checkpoints of one run instead")
    parser.add_argument("--shipped", action="store_true", help="instead: hold the NADs that ship against all the runs")
    parser.add_argument("--folder", type=Path, default=ROOT / "_build" / "reliability")
    options = parser.parse_args()
    num_networks = options.num_networks
    if options.architecture == "deep-linear":
        comparisons = deep_linear(num_networks, options.runs, options.folder)
    else:
        architecture = nc.ARCHITECTURES[options.architecture]
        if options.parts:
            runs = parts(options.parts)
        else:
            runs = separate(architecture, num_networks, options.runs, options.folder)
        if options.shipped:
            keep(AGREEMENT, architecture.name, against_shipped(architecture, runs), None)
            return 0
        num_networks = min(moments.num_networks for moments, _ in runs)
        comparisons = compare_runs(runs, (1, 32, 32), architecture.symmetries_at(32))
    found = summary(
        comparisons, architecture=options.architecture, num_networks=num_networks,
        seeds="parts of one run" if options.parts else f"1000 to {999 + options.runs}",
        **environment(torch.device("cpu")),
    )  # fmt: skip
    keep(FILE, f"{options.architecture}-{num_networks}", found, 1)
    for entry in found["bins"]:
        print(
            f"{entry['promised']:.3f} promised, {entry['kept']:.3f} ± {entry['error']:.3f} kept, {entry['share']:.1%}"
        )
    print(f"{found['coverage']:.1%} of {found['eigenvalues']} eigenvalues within 1.96 standard deviations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
