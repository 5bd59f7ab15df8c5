"""How LeNet's accuracy grows while it trains on one wave that it learns, and on one that it only memorises.

.venv/bin/python benchmarks/two_trainings.py  # a few minutes on one CPU thread

The chapter on directional bias plays both curves side by side. Results go to book/results/studies/two-trainings.json.
"""

from __future__ import annotations

import nads_book as nb
import torch
from nads_book.experiments.stored import study_path
from result_files import write_compact
from torch.nn.functional import cross_entropy

import nads_core as nc
from nads_core.runtime.provenance import environment

FILE = study_path("two-trainings.json")
SEED, EVERY = 0, 20  # steps between two measurements
WAVES = {"coarse": (0, 2), "fine": (0, 8)}


def curves(frequency: tuple[int, int], job: nb.experiments.Experiment) -> dict[str, list[float]]:
    """Train a LeNet on one wave by the job's recipe, and return its accuracies on all images of both sets."""
    direction = nc.fourier_direction(frequency, 32)[None]
    images, labels = nc.SeparableDatasets(direction, job.num_train, noise_std=job.noise_std, seed=SEED)[0]
    test = nc.SeparableDatasets(direction, job.num_test, noise_std=job.noise_std, seed=SEED + 1)[0]
    torch.manual_seed(SEED)
    network, recipe = nc.LENET.build(1, 32, 2), job.recipe
    total = recipe.num_steps(len(labels))
    order = torch.cat([torch.randperm(len(labels)) for _ in range(recipe.epochs)])
    batches = [part for epoch in order.split(len(labels)) for part in epoch.split(recipe.batch_size)]
    optimiser = torch.optim.SGD(network.parameters(), recipe.learning_rate)
    found: dict[str, list[float]] = {"train": [], "test": []}
    for step in range(total + 1):
        if step % EVERY == 0 or step == total:
            for name, data in (("train", (images, labels)), ("test", test)):
                found[name].append(round(nc.training.accuracy(network, data, 1_000), 4))
        if step < total:
            optimiser.param_groups[0]["lr"] = recipe.rate(step, total)
            optimiser.zero_grad()
            cross_entropy(network(images[batches[step]]), labels[batches[step]]).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
            optimiser.step()
    print(frequency, found["train"][-1], found["test"][-1], flush=True)
    return found


def main() -> None:
    """Train both networks, and write their curves."""
    torch.set_num_threads(1)
    job = nb.experiment("fig1-lenet", "paper")
    total = job.recipe.num_steps(job.num_train)
    content = {
        "architecture": "lenet", "seed": SEED, "num_train": job.num_train, "num_test": job.num_test,
        "epochs": job.recipe.epochs, "steps": [*range(0, total, EVERY), total],
        "waves": {name: {"frequency": list(k), **curves(k, job)} for name, k in WAVES.items()},
    }  # fmt: skip
    write_compact(FILE, content | environment(torch.device("cpu")))


if __name__ == "__main__":
    main()
