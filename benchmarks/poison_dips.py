"""Why two later carriers of the poison, NAD 75 and NAD 200, cost LeNet as much as early ones.

.venv/bin/python benchmarks/poison_dips.py  # about ten minutes on one CPU thread; needs CIFAR-10

At both, the second NAD of the carrier has a photos' mean of more than two standard deviations. If this is the reason,
a hole at that mean costs at least ten points less than a hole at zero there, and at neighbours without such a mean
(NADs 50 and 300) no hole costs more than three points. The results of the paper's size refer to version 1 of the NADs,
and so does this. Results go to book/results/studies/poison-dips.json.
"""

from __future__ import annotations

import dataclasses

import nads_book as nb
import torch
from nads_book.experiments.stored import load_nads, study_path
from nads_book.studies.shortcut_injection import ShortcutInjection
from result_files import write_compact

import nads_core as nc
from nads_core.runtime.provenance import environment

FILE = study_path("poison-dips.json")
INDICES, SEEDS = (50, 75, 200, 300), (0, 1, 2)
MODES = {"replaced": 0.05, "ablated": None, "mean_ablated": None}
NUM_TRAIN, EPOCHS = 10_000, 10


def main() -> None:
    """Measure the photos along all carriers of the paper's size, train LeNets, and write both."""
    torch.set_num_threads(1)
    results = nb.load_results("fig7-lenet")
    nads = load_nads("lenet", results.settings["nads"]["version"])
    photos, test = (nc.load_images("cifar10", train=train, seed=0, progress=False) for train in (True, False))
    carriers = []
    for index in sorted({row["index"] for row in results.rows if row["index"] is not None}):
        one = ShortcutInjection(photos.images, nads, index)
        carriers.append({"index": index, "mean": one.mean.T.tolist(), "deviation": one.deviation.T.tolist()})
    recipe, rows = dataclasses.replace(nc.CIFAR10_RECIPE, epochs=EPOCHS), []
    for seed in SEEDS:
        train = nc.load_images("cifar10", num_images=NUM_TRAIN, seed=seed, progress=False)
        versions = {(None, "none"): train.images}
        for index in INDICES:
            one = ShortcutInjection(train.images, nads, index)
            versions |= {
                (index, mode): one.inject(train.images, train.labels, mode, size) for mode, size in MODES.items()
            }
        for (index, mode), images in versions.items():
            found = nc.train_networks(
                nc.LENET, [(nc.normalize(images), train.labels)], [(nc.normalize(test.images), test.labels)],
                recipe=recipe, num_classes=10, seed=seed, progress=False)  # fmt: skip
            accuracies = {name: round(float(getattr(found, name)), 4) for name in ("test_accuracy", "train_accuracy")}
            rows.append({"index": index, "mode": mode, "seed": seed, **accuracies})
            print(rows[-1], flush=True)
    content = {
        "num_train": NUM_TRAIN, "num_test": len(test), "epochs": EPOCHS, "nads": results.settings["nads"],
        "photos": results.settings["photos"], "carriers": carriers, "rows": rows,
    }  # fmt: skip
    write_compact(FILE, content | environment(torch.device("cpu")))


if __name__ == "__main__":
    main()
