"""The atlas: what ships of it, and whether what random weights prefer is what training learns.

.venv/bin/python -m nads_book atlas --folder _build/atlas          # computes the entries: an hour of two cores
.venv/bin/python benchmarks/atlas.py ship _build/atlas             # measures them, for book/results/studies/
.venv/bin/python benchmarks/atlas.py again _build/atlas            # computes one entry with two other seeds
.venv/bin/python benchmarks/atlas.py predict _build/atlas       # predictions of the first-step law for 8 waves; before:
.venv/bin/python benchmarks/atlas.py train                         # the networks; resumes after an interrupt
.venv/bin/python benchmarks/atlas.py control                       # those that learned nothing, otherwise and longer
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import nads_book as nb
import numpy as np
import torch
from nads_book.analysis.prediction import Responses, predicted_accuracy
from nads_book.atlas import ATLAS, Atlas, Computed
from nads_book.atlas.measures import Measured, across, jackknife, products, wave_energies
from nads_book.experiments.presets import SIZES
from nads_book.experiments.stored import study_path
from result_files import write_compact

import nads_core as nc
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment
from nads_core.runtime.seeds import seed_sequence

BOOK = Path(__file__).resolve().parents[1] / "book"
PRECOMPUTED = Path(nc.__file__).parent / "precomputed"
TRAINED = study_path("atlas-trained.json")
SMALL = (
    "cnn", "cnn-average", "cnn-blurred", "cnn-strided", "cnn-nopool", "cnn-global", "cnn-poolfirst", "cnn-kernel1",
    "cnn-depth6", "cnn-valid", "mlp", "vit",
)  # fmt: skip
WAVES = ((0, 2), (4, 4), (0, 8), (6, 10), (8, 8), (12, 4), (16, 0), (14, 14))
NOISE_STD, SEED = 3.0, 11
FAILED, RATES = ("cnn-depth6", "cnn-global"), (0.025, 0.05, 0.1, 0.4)
REPEATED, OTHER_SEEDS = "resnet-tanh", (1, 2)  # a symmetry gives one of its measures exactly
LONGER = 40  # epochs, ten times as many, along the wave of most energy, one between, and the wave of least
LONGER_WAVES = (WAVES[0], WAVES[2], WAVES[3])


def alignment(own: np.ndarray, other: np.ndarray, between: np.ndarray) -> Measured:
    """Return the cosine of two second moments.

    Args:
        own: products of the parts of one, (m, m).
        other: products of the parts of the other, (m', m').
        between: products of the parts of both, (m, m').
    """

    def cosine(rows: np.ndarray, columns: np.ndarray) -> float:
        squares = across(own[np.ix_(rows, rows)]) * across(other[np.ix_(columns, columns)])
        return float(between[np.ix_(rows, columns)].mean() / np.sqrt(squares))

    rows, columns = np.arange(len(own)), np.arange(len(other))
    first = jackknife(lambda chosen: cosine(chosen, columns), len(own))
    second = jackknife(lambda chosen: cosine(rows, chosen), len(other))
    return Measured(first.value, float(np.hypot(first.error, second.error)), len(own))


def assemble(computed: Mapping[str, Computed]) -> Atlas:
    """Measure what needs several entries: alignments."""
    names = list(computed)
    products_within = {name: products(computed[name].parts, computed[name].parts) for name in names}
    measures = {name: dict(computed[name].measures) for name in names}
    cosines = np.eye(len(names))
    for i, first in enumerate(names):
        for j, second in enumerate(names[:i]):
            between = products(computed[first].parts, computed[second].parts)
            aligned = alignment(products_within[first], products_within[second], between)
            cosines[i, j] = cosines[j, i] = aligned.value
            for one, other in ((first, second), (second, first)):
                if ATLAS[one].base == other:
                    measures[one]["alignment"] = aligned
    waves = np.stack([wave_energies(computed[name].parts.mean(0, keepdim=True), 32)[0] for name in names])
    return Atlas(
        {name: ATLAS[name] for name in names}, measures,
        np.stack([computed[name].eigenvalues.numpy() for name in names]),
        (waves / waves.mean((1, 2), keepdims=True)).astype("<f4"), cosines.astype("<f4"),
        {name: computed[name].nads.provenance for name in names},
    )  # fmt: skip


FACTS = ("num_networks", "seconds", "processor", "torch", "commit", "date", "estimator", "numbers")


def described(facts: Mapping[str, Any], measures: Mapping[str, Measured]) -> dict[str, Any]:
    """Return facts and measures of an entry as they are stored."""
    rounded = {
        key: [float(f"{measured.value:.6g}"), float(f"{measured.error:.4g}"), measured.num_parts]
        for key, measured in measures.items()
    }
    return {"facts": {key: facts[key] for key in FACTS}, "measures": rounded}


def repeat(folder: Path) -> None:
    """Compute one entry from other networks and write ``atlas-again.json``, which tests its intervals."""
    found = []
    for seed in OTHER_SEEDS:
        computed = nb.atlas.compute_entry(ATLAS[REPEATED], folder / f"seed{seed}", seed=seed)
        found.append({"seed": seed} | described(computed.nads.provenance, computed.measures))
    write_compact(study_path("atlas-again.json"), {REPEATED: found}, depth=2)


def write_atlas(atlas: Atlas, folder: Path) -> None:
    """Write ``atlas.json`` and ``atlas.npz``, which `load_atlas` reads."""
    content = {name: described(atlas.facts[name], atlas.measures[name]) for name in atlas.entries}
    with atomic_write(folder / "atlas.json") as file:
        rows = ",\n ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items())
        file.write(f"{{\n {rows}\n}}\n")
    with atomic_write(folder / "atlas.npz", "wb") as file:
        np.savez_compressed(file, eigenvalues=atlas.eigenvalues, waves=atlas.waves, alignments=atlas.alignments)


def ship(folder: Path) -> None:
    """Measure all entries, and copy the NADs that the library ships."""
    computed = {}
    for name, entry in ATLAS.items():
        if not (folder / f"{name}.pt").exists():
            sys.exit(f"{folder} has no {name}: python -m nads_book atlas {name} --folder {folder}")
        computed[name] = nb.atlas.compute_entry(entry, folder)
    atlas = assemble(computed)
    write_atlas(atlas, TRAINED.parent)
    (PRECOMPUTED / "atlas").mkdir(exist_ok=True)
    files = [shutil.copy(folder / f"{name}.npz", PRECOMPUTED / "atlas") for name in computed]
    subprocess.run([sys.executable, BOOK / "shipping.py", *files], check=True)
    total = sum(path.stat().st_size for path in (PRECOMPUTED / "atlas").glob("*.npz"))
    print(f"{len(computed)} entries, {total / 1e6:.1f} MB of NADs -> {PRECOMPUTED}")


def predict(folder: Path) -> None:
    """Write the prediction of the second moments for each wave."""
    if TRAINED.exists():
        sys.exit(f"the prediction in {TRAINED} is committed and stays as it is")
    size, directions = SIZES["laptop"].separable, torch.stack([nc.fourier_direction(wave) for wave in WAVES])
    rows = []
    for name in SMALL:
        covariance = nb.atlas.compute_entry(ATLAS[name], folder).parts.double().mean(0)
        responses = Responses.of(covariance, directions)
        ratios = responses.signal_to_noise(size.num_train, NOISE_STD)
        mean = float(covariance.trace()) / len(covariance)
        rows += [
            {
                "entry": name, "wave": list(wave), "energy": float(f"{energy / mean:.5g}"),
                "law": round(float(predicted_accuracy(ratio)), 5),
            }
            for wave, energy, ratio in zip(WAVES, responses.energies, ratios, strict=True)
        ]  # fmt: skip
    facts = {"noise_std": NOISE_STD, "num_train": size.num_train, "num_test": size.num_test}
    content = {"prediction": facts | environment(torch.device("cpu")) | {"rows": rows}, "rows": []}
    write_compact(TRAINED, content, depth=2)


def train(
    seeds: tuple[int, ...],
    names: tuple[str, ...] = SMALL,
    waves: tuple[tuple[int, int], ...] = WAVES,
    **changes: Any,
) -> None:
    """Train the networks that the prediction is about, an entry at a time; what changes the recipe is a control."""
    content = json.loads(TRAINED.read_text("utf8"))
    size, directions = SIZES["laptop"].separable, torch.stack([nc.fourier_direction(wave) for wave in waves])
    rows = content.setdefault("control" if changes else "rows", [])
    for seed in seeds:
        for name in names:
            which = {"entry": name, "seed": seed, **changes}
            if any((which | {"wave": list(waves[0])}).items() <= row.items() for row in rows):
                continue
            sets, tests = (
                nc.SeparableDatasets(directions, count, 1.0, NOISE_STD, seed=seed_sequence(SEED + seed, part))
                for part, count in ((5, size.num_train), (6, size.num_test))
            )
            result = nc.train_networks(
                ATLAS[name].architecture, sets, tests, recipe=replace(size.recipe, **changes), seed=seed,
                stop_at_full_accuracy=True, method="processes",
            )  # fmt: skip
            rows += [
                {**which, "wave": list(wave), "accuracy": round(float(accuracy), 5)}
                for wave, accuracy in zip(waves, result.test_accuracy, strict=True)
            ]
            content["controlled" if changes else "trained"] = environment(torch.device("cpu"))
            write_compact(TRAINED, content, depth=2)
            print(which, [row["accuracy"] for row in rows[-len(waves) :]], file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("ship", "predict", "again"):
        commands.add_parser(name).add_argument("folder", type=Path)
    commands.add_parser("train").add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    commands.add_parser("control")
    options = parser.parse_args()
    if options.what == "train":
        train(tuple(options.seeds))
    elif options.what == "control":
        for rate in RATES:
            train((0,), FAILED, learning_rate=rate)
        for wave in LONGER_WAVES:
            train((0,), FAILED, (wave,), epochs=LONGER)
    else:
        {"ship": ship, "predict": predict, "again": repeat}[options.what](options.folder)


if __name__ == "__main__":
    main()
