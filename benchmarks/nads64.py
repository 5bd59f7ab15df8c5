"""Which NADs of LeNet at 64 x 64 can be known? A forecast from few networks, and two independent runs.

``python benchmarks/nads64.py run`` draws the networks of both runs, and resumes; ``--seed`` names one of the two, so
that they can run in parallel. Then ``python benchmarks/nads64.py compare`` compares them. Results go to
``book/results/studies/nads64.json``; the runs' own files are not committed.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from nads_book.analysis.forecasting import forecast
from nads_book.experiments.stored import study_path
from other_data import FOLDER
from result_files import write_compact
from tqdm import tqdm

import nads_core as nc
from nads_core.directions import NADs
from nads_core.runtime.provenance import environment

FILE = study_path("nads64.json")
SHAPE = (1, 64, 64)  # of one channel: channels of a random network are exchangeable and have random signs
FEW, MANY, FORECASTS = 2_048, 16_384, (16_384, 65_536, 262_144)
SEEDS = (0, 1)
COUNTS = (4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048)


def paths(seed: int, count: int) -> tuple[Path, Path]:
    """Return the checkpoint and the result of a run."""
    return FOLDER / f"nads64-{seed}.checkpoint", FOLDER / f"nads64-{seed}-{count}.npz"


def draw(seed: int) -> None:
    """Draw the networks of a run, with a forecast after the first of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    facts = FOLDER / f"nads64-{seed}.json"
    found: dict[str, Any] = json.loads(facts.read_text("utf8")) if facts.exists() else {"seconds": {}, "forecasts": {}}
    for count in (FEW, MANY):
        checkpoint, path = paths(seed, count)
        if path.exists():
            continue
        start = time.process_time()
        nc.compute_nads(nc.LENET, count, image_shape=SHAPE, seed=seed, checkpoint=checkpoint).save(path)
        found["seconds"][str(count)] = round(time.process_time() - start, 1)
        found["forecasts"][str(count)] = [asdict(each) for each in forecast(checkpoint, [count, *FORECASTS])
                                          if each.num_networks >= count]  # fmt: skip
        write_compact(facts, found)


def named(first: NADs, second: NADs) -> torch.Tensor:
    """Return the squared cosine of each direction with that of the same name in another run, 0 if it has none."""
    assert first.certificates is not None and second.certificates is not None
    places = {name: place for place, name in enumerate(second.certificates.names)}
    a, b = first.directions.flatten(1).double(), second.directions.flatten(1).double()
    cosines = torch.zeros(len(a))
    for row, name in enumerate(first.certificates.names):
        if name in places:
            cosines[row] = (a[row] @ b[places[name]]) ** 2
    return cosines


def compared(first: NADs, second: NADs) -> dict[str, Any]:
    """Return how well two runs agree: leading subspaces, single directions, bands; each beside what a run predicts."""
    known, squares = first.certificates, named(first, second)
    assert known is not None and second.certificates is not None
    a, b = first.directions.flatten(1).double(), second.directions.flatten(1).double()
    products = (a @ b.T).square()
    leading = [
        {"count": k, "overlap": round(float(products[:k, :k].sum() / k), 4),
         "certainty": round(float(known.leading_certainty[k - 1]), 4)}
        for k in COUNTS
    ]  # fmt: skip
    certain = known.certainty >= 0.9
    places = {name: place for place, name in enumerate(second.certificates.names)}
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
        "agreement_predicted": round(float(known.agreement[certain].mean()), 4) if certain.any() else None,
        "agreement_found": round(float(squares[certain].mean()), 4) if certain.any() else None,
        "lowest_of_certain": round(float(squares[certain].min()), 4) if certain.any() else None,
        "last_certain": int(certain.nonzero().max()) if certain.any() else None,
        "certainty": [round(x, 3) for x in known.certainty[:512].tolist()],
        "squares": [round(x, 3) for x in squares[:512].tolist()],
        "leading": leading,
        "bands": bands,
    }


def compare() -> None:
    """Compare the two runs after few and after many networks, and store what each had forecast."""
    content: dict[str, Any] = {"few": FEW, "many": MANY, "shape": SHAPE, "rows": []}
    for count in tqdm((FEW, MANY), unit="number of networks"):
        first, second = (NADs.load(paths(seed, count)[1]) for seed in SEEDS)
        content["rows"].append({"num_networks": count, **compared(first, second)})
    content["runs"] = [json.loads((FOLDER / f"nads64-{seed}.json").read_text("utf8")) for seed in SEEDS]
    write_compact(FILE, content | {"environment": environment(torch.device("cpu"))})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "compare"))
    parser.add_argument("--seed", type=int, choices=SEEDS, help="one of the runs; both by default")
    options = parser.parse_args()
    if options.what == "compare":
        compare()
    else:
        for seed in SEEDS if options.seed is None else (options.seed,):
            draw(seed)
