"""Which NADs of LeNet at 64 x 64 can be known? A forecast from few networks, and two independent runs.

The runs' own files are not committed.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import nads_core as nc
from nads_book.analysis.forecasting import forecast
from nads_book.experiments.study import Context, Keep, Row, Unit
from nads_book.experiments.study_files import FileStudy, StudyFile, write_compact
from nads_book.studies.pairs import scratch
from nads_core.directions import NADs

SHAPE = (
    1,
    64,
    64,
)  # of one channel: channels of a random network are exchangeable and have random signs
FEW, MANY, FORECASTS = 2_048, 16_384, (16_384, 65_536, 262_144)
SEEDS = (0, 1)
COUNTS = (4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048)


def paths(seed: int, count: int) -> tuple[Path, Path]:
    """Return the checkpoint and the result of a run."""
    return scratch() / f"nads64-{seed}.checkpoint", scratch() / f"nads64-{seed}-{count}.npz"


def draw(seed: int, num_networks: int) -> None:
    """Draw networks of a run, with a forecast after the first of them."""
    scratch().mkdir(parents=True, exist_ok=True)
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
        found["forecasts"][str(count)] = [asdict(each) for each in forecast(checkpoint, [count, *FORECASTS])
                                          if each.num_networks >= count]  # fmt: skip
        write_compact(facts, found)


def named(first: NADs, second: NADs) -> torch.Tensor:
    """Return the squared cosine of each direction with that of the same name in another run, 0 if it has none."""
    assert first.uncertainty is not None and second.uncertainty is not None
    places = {name: place for place, name in enumerate(second.uncertainty.names)}
    a, b = first.directions.flatten(1).double(), second.directions.flatten(1).double()
    cosines = torch.zeros(len(a))
    for row, name in enumerate(first.uncertainty.names):
        if name in places:
            cosines[row] = (a[row] @ b[places[name]]) ** 2
    return cosines


def compared(first: NADs, second: NADs) -> dict[str, Any]:
    """Return how well two runs agree: leading subspaces, single directions, bands; each beside what a run predicts."""
    known, squares = first.uncertainty, named(first, second)
    assert known is not None and second.uncertainty is not None
    a, b = first.directions.flatten(1).double(), second.directions.flatten(1).double()
    products = (a @ b.T).square()
    leading = [
        {"count": k, "overlap": round(float(products[:k, :k].sum() / k), 4),
         "certainty": round(float(known.leading_certainty[k - 1]), 4)}
        for k in COUNTS
    ]  # fmt: skip
    certain = known.certainty >= 0.9
    places = {name: place for place, name in enumerate(second.uncertainty.names)}
    bands = []
    for band in known.bands:
        others = [places[known.names[i]] for i in band.indices if known.names[i] in places]
        overlap = products[list(band.indices)][:, others].sum() / len(band.indices)
        bands.append(
            {"type": known.types[band.indices[0]], "first": min(band.indices), "last": max(band.indices),
             "size": len(band.indices), "certainty": round(float(band.certainty), 4),
             "overlap": round(float(overlap), 4)}
        )  # fmt: skip
    return {
        "num_certain": int(certain.sum()),
        "agreement_predicted": round(float(known.agreement[certain].mean()), 4)
        if certain.any()
        else None,
        "agreement_found": round(float(squares[certain].mean()), 4) if certain.any() else None,
        "lowest_of_certain": round(float(squares[certain].min()), 4) if certain.any() else None,
        "last_certain": int(certain.nonzero().max()) if certain.any() else None,
        "certainty": [round(x, 3) for x in known.certainty[:512].tolist()],
        "squares": [round(x, 3) for x in squares[:512].tolist()],
        "leading": leading,
        "bands": bands,
    }


class NADs64(FileStudy):
    """Which NADs of LeNet at 64 x 64 can be known? Two runs after few and after many networks (``nads64.toml``)."""

    name = "nads64"
    file = "nads64.json"
    summary = "agreement of two runs of LeNet's NADs at 64 x 64, and forecasts"
    unit_fields = ("num_networks",)
    runs_key = "provenance"  # the file's "runs" are seconds and forecasts of the two runs

    def units(self) -> list[Unit]:
        return [{"num_networks": count} for count in (FEW, MANY)]

    def facts(self) -> dict[str, Any]:
        return {"few": FEW, "many": MANY, "shape": list(SHAPE)}

    def content(self, results: StudyFile) -> dict[str, Any]:
        """Return the content of the file, with seconds and forecasts of both runs."""
        facts = [scratch() / f"nads64-{seed}.json" for seed in SEEDS]
        if all(path.exists() for path in facts):
            results.facts["runs"] = [json.loads(path.read_text("utf8")) for path in facts]
        return super().content(results)

    def run_many(self, units: Sequence[Unit], context: Context, keep: Keep) -> None:
        """Compare both runs one unit after the other: the second one continues from the first."""
        self.run_in_turn(units, context, keep)

    def run(self, unit: Unit, context: Context) -> Row:
        for seed in SEEDS:
            draw(seed, unit["num_networks"])
        first, second = (NADs.load(paths(seed, unit["num_networks"])[1]) for seed in SEEDS)
        return compared(first, second)
