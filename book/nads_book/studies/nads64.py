"""Which NADs of LeNet at 64 x 64 can be known? A forecast from few networks, and two independent
runs.

The runs' own files are not committed.
"""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import torch

import nads_core as nc
from nads_book.analysis.forecasting import forecast
from nads_book.experiments import Context, FileStudy, Row, StudyFile, Unit, write_compact
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
    found: dict[str, Any] = (
        json.loads(facts.read_text("utf8")) if facts.exists() else {"seconds": {}, "forecasts": {}}
    )
    for count in (each for each in (FEW, MANY) if each <= num_networks):
        checkpoint, path = paths(seed, count)
        if path.exists():
            continue
        start = time.process_time()
        nc.compute_nads(nc.LENET, count, image_shape=SHAPE, seed=seed, checkpoint=checkpoint).save(
            path
        )
        found["seconds"][str(count)] = round(time.process_time() - start, 1)
        found["forecasts"][str(count)] = [
            asdict(each)
            for each in forecast(checkpoint, [count, *FORECASTS])
            if each.num_networks >= count
        ]
        write_compact(facts, found)


def compared(first: NADs, second: NADs) -> dict[str, Any]:
    """Return how well two runs agree: leading subspaces, single directions, bands; each beside what
    a run predicts.
    """
    known, other = first.uncertainty, second.uncertainty
    assert known is not None and other is not None
    places = {name: place for place, name in enumerate(other.names)}
    a, b = first.directions.flatten(1).double(), second.directions.flatten(1).double()
    products = (a @ b.T).square()
    # With the direction of the same name; 0 if there is none.
    squares = torch.zeros(len(a), dtype=torch.float64)
    for row, name in enumerate(known.names):
        if name in places:
            squares[row] = products[row, places[name]]
    leading = [
        {
            "count": k,
            "overlap": round(float(products[:k, :k].sum() / k), 4),
            "certainty": round(float(known.leading_certainty[k - 1]), 4),
        }
        for k in COUNTS
    ]
    bands = []
    for band in known.bands:
        others = [places[known.names[i]] for i in band.indices if known.names[i] in places]
        overlap = products[list(band.indices)][:, others].sum() / len(band.indices)
        bands.append(
            {
                "type": known.types[band.indices[0]],
                "first": min(band.indices),
                "last": max(band.indices),
                "size": len(band.indices),
                "certainty": round(float(band.certainty), 4),
                "overlap": round(float(overlap), 4),
            }
        )
    certain = known.certainty >= 0.9
    of_certain: dict[str, Any] = dict.fromkeys(
        ("agreement_predicted", "agreement_found", "lowest_of_certain", "last_certain")
    )
    if certain.any():
        of_certain = {
            "agreement_predicted": round(float(known.agreement[certain].mean()), 4),
            "agreement_found": round(float(squares[certain].mean()), 4),
            "lowest_of_certain": round(float(squares[certain].min()), 4),
            "last_certain": int(certain.nonzero().max()),
        }
    return (
        {"num_certain": int(certain.sum())}
        | of_certain
        | {
            "certainty": [round(x, 3) for x in known.certainty[:512].tolist()],
            "squares": [round(x, 3) for x in squares[:512].tolist()],
            "leading": leading,
            "bands": bands,
        }
    )


class NADs64(FileStudy):
    """Which NADs of LeNet at 64 x 64 can be known? Two runs after few and after many networks
    (``nads64.toml``).
    """

    name = "nads64"
    design: ClassVar = {"num_networks": (FEW, MANY)}
    runs_key = "provenance"  # the file's "runs" are seconds and forecasts of the two runs

    def facts(self) -> dict[str, Any]:
        return {"few": FEW, "many": MANY, "shape": list(SHAPE)}

    def content(self, results: StudyFile) -> dict[str, Any]:
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
