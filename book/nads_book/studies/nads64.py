"""Which NADs of LeNet at 64 x 64 can be known? A forecast from few networks, and two independent
runs.

The runs' own files are not committed.
"""

import json
import time
from dataclasses import asdict
from pathlib import Path

import nads_core as nc
from nads_book.analysis.forecasting import forecast
from nads_book.experiments import Context, Facts, FileStudy, Row, StudyFile, Unit, write_compact
from nads_book.studies.calibration import agreement
from nads_book.studies.pairs import scratch
from nads_core.directions import NADs

SHAPE = (1, 64, 64)  # one channel: those of a random network are exchangeable, with random signs
FEW, MANY, FORECASTS = 2_048, 16_384, (16_384, 65_536, 262_144)
SEEDS = (0, 1)
COUNTS = (4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048)


def paths(seed: int, count: int) -> tuple[Path, Path]:
    """Return the checkpoint and the result of a run."""
    return scratch() / f"nads64-{seed}.checkpoint", scratch() / f"nads64-{seed}-{count}.npz"


def draw(seed: int, num_networks: int) -> None:
    """Draw networks of a run, with a forecast after the first of them."""
    facts = scratch() / f"nads64-{seed}.json"
    found: Facts = (
        json.loads(facts.read_text("utf8")) if facts.exists() else {"seconds": {}, "forecasts": {}}
    )
    for count in (each for each in (FEW, MANY) if each <= num_networks):
        checkpoint, path = paths(seed, count)
        if path.exists():
            continue
        start = time.process_time()
        nc.compute_nads(
            nc.LENET, count, image_shape=SHAPE, seed=seed, device="cpu", checkpoint=checkpoint
        ).save(path)
        found["seconds"][str(count)] = round(time.process_time() - start, 1)
        found["forecasts"][str(count)] = [
            asdict(each)
            for each in forecast(checkpoint, [count, *FORECASTS])
            if each.num_networks >= count
        ]
        write_compact(facts, found)


def compared(first: NADs, second: NADs) -> Facts:
    """Return how well two runs agree, leading subspaces and directions that are certain, beside
    what the first run predicts.
    """
    known = first.uncertainty
    assert known is not None
    leading = [
        {
            "count": k,
            "overlap": round(first.overlap(second, k), 4),
            "certainty": round(float(known.leading_certainty[k - 1]), 4),
        }
        for k in COUNTS
    ]
    certain = known.certainty >= 0.9
    found = {"agreement_predicted": known.agreement, "agreement_found": agreement(first, second)[1]}
    return {
        "num_certain": int(certain.sum()),
        **{
            name: round(float(values[certain].mean()), 4) if certain.any() else None
            for name, values in found.items()
        },
        "leading": leading,
    }


class NADs64(FileStudy):
    """Which NADs of LeNet at 64 x 64 can be known? Two runs after few and after many networks
    (``nads64.toml``).
    """

    name = "nads64"
    on_gpu = False
    design = {"num_networks": (FEW, MANY)}
    runs_key = "provenance"  # the file's "runs" are seconds and forecasts of the two runs
    constants = {"few": FEW, "many": MANY, "shape": list(SHAPE)}

    def content(self, results: StudyFile) -> Facts:
        """Return the content of the file, with seconds and forecasts of both runs."""
        facts = [scratch() / f"nads64-{seed}.json" for seed in SEEDS]
        if all(path.exists() for path in facts):
            results.facts["runs"] = [json.loads(path.read_text("utf8")) for path in facts]
        return super().content(results)

    run_many = FileStudy.run_in_turn  # the second unit continues both runs of the first

    def run(self, unit: Unit, context: Context) -> Row:
        for seed in SEEDS:
            draw(seed, unit["num_networks"])
        first, second = (NADs.load(paths(seed, unit["num_networks"])[1]) for seed in SEEDS)
        return compared(first, second)
