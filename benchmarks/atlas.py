"""The atlas: what ships of it, and whether what random weights prefer is what training learns.

.venv/bin/python -m nads_core atlas --folder _build/atlas          # computes the entries: an hour of two cores
.venv/bin/python benchmarks/atlas.py ship _build/atlas             # measures them, for nads_core/precomputed/
.venv/bin/python benchmarks/atlas.py predict _build/atlas          # what the first-step law says of 8 waves; before:
.venv/bin/python benchmarks/atlas.py train                         # the networks; an interrupted call goes on
.venv/bin/python benchmarks/atlas.py control                       # those that learnt nothing, otherwise and longer
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import nads_book as nb
import torch
from nads_book.experiments.prediction import Responses, predicted_accuracy
from nads_book.experiments.presets import SIZES
from nads_book.experiments.stored import study_path

import nads_core as nc
from nads_core.runtime.files import atomic_write
from nads_core.runtime.provenance import environment
from nads_core.runtime.seeds import seed_sequence

PRECOMPUTED = Path(nc.__file__).parent / "precomputed"
TRAINED = study_path("atlas-trained.json")
SMALL = (
    "cnn", "cnn-average", "cnn-blurred", "cnn-strided", "cnn-nopool", "cnn-global", "cnn-poolfirst", "cnn-kernel1",
    "cnn-depth6", "cnn-valid", "mlp", "vit",
)  # fmt: skip
WAVES = ((0, 2), (4, 4), (0, 8), (6, 10), (8, 8), (12, 4), (16, 0), (14, 14))
NOISE_STD, SEED = 3.0, 11
FAILED, RATES = ("cnn-depth6", "cnn-global"), (0.025, 0.05, 0.1, 0.4)
LONGER = 40  # epochs, ten times as many, along the wave of most energy, one between, and the wave of least
LONGER_WAVES = (WAVES[0], WAVES[2], WAVES[3])


def ship(folder: Path) -> None:
    """Measure all entries, and put the files of the atlas where the package has them."""
    computed = {}
    for name, entry in nb.atlas.ATLAS.items():
        if not (folder / f"{name}.pt").exists():
            sys.exit(f"{folder} has no {name}: python -m nads_core atlas {name} --folder {folder}")
        computed[name] = nb.atlas.compute_entry(entry, folder)
    atlas = nb.atlas.assemble(computed)
    nb.atlas.write(atlas, PRECOMPUTED)
    (PRECOMPUTED / "atlas").mkdir(exist_ok=True)
    for name in computed:
        shutil.copy(folder / f"{name}.npz", PRECOMPUTED / "atlas" / f"{name}.npz")
    total = sum(path.stat().st_size for path in (PRECOMPUTED / "atlas").glob("*.npz"))
    print(f"{len(computed)} entries, {total / 1e6:.1f} MB of NADs -> {PRECOMPUTED}")


def predict(folder: Path) -> None:
    """Write down what the second moments say of each wave."""
    if TRAINED.exists():
        sys.exit(f"the prediction in {TRAINED} is committed and stays as it is")
    size, directions = SIZES["laptop"].separable, torch.stack([nc.fourier_direction(wave) for wave in WAVES])
    rows = []
    for name in SMALL:
        covariance = nb.atlas.compute_entry(nb.atlas.ATLAS[name], folder).parts.double().mean(0)
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
    write({"prediction": facts | environment(torch.device("cpu")) | {"rows": rows}, "rows": []})


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
                nb.atlas.ATLAS[name].architecture, sets, tests, recipe=replace(size.recipe, **changes), seed=seed,
                stop_at_full_accuracy=True, method="processes",
            )  # fmt: skip
            rows += [
                {**which, "wave": list(wave), "accuracy": round(float(accuracy), 5)}
                for wave, accuracy in zip(waves, result.test_accuracy, strict=True)
            ]
            content["controlled" if changes else "trained"] = environment(torch.device("cpu"))
            write(content)
            print(which, [row["accuracy"] for row in rows[-len(waves) :]], file=sys.stderr)


def write(content: dict[str, Any]) -> None:
    """Replace the file; what has no parts of its own is one line of it."""
    text = json.dumps(content, indent=1)
    for _ in range(2):
        text = re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda part: " ".join(part.group().split()), text)
    with atomic_write(TRAINED) as file:
        file.write(text + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("ship", "predict"):
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
        {"ship": ship, "predict": predict}[options.what](options.folder)


if __name__ == "__main__":
    main()
