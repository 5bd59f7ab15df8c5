"""How LeNet's accuracy grows while it trains on one wave that it learns, and on one that it only
memorises.

The chapter on directional bias plays both curves side by side.
"""

import torch

import nads_core as nc
from nads_book.experiments import Context, Facts, KeyedStudy, Row, Unit, sgd
from nads_book.studies.directions import Fig1, WaveStudy
from nads_core.training import training_steps

SEED, EVERY = 0, 20  # steps between two measurements
WAVES = {"coarse": (0, 2), "fine": (0, 8)}


def curves(frequency: tuple[int, int], job: WaveStudy) -> dict[str, list[float]]:
    """Train a LeNet on one wave by the job's recipe, and return its accuracies on all images of
    both sets.
    """
    direction = nc.fourier_direction(frequency, 32)[None]
    data = {
        name: nc.SeparableDatasets(direction, count, noise_std=job.noise_std, seed=seed)[0]
        for name, count, seed in (("train", job.num_train, SEED), ("test", job.num_test, SEED + 1))
    }
    torch.manual_seed(SEED)
    network, recipe = nc.LENET.build(1, 32, 2), job.recipe
    total = recipe.num_steps(job.num_train)
    orders = [torch.randperm(job.num_train) for _ in range(recipe.epochs)]
    batches = [batch for order in orders for batch in order.split(recipe.batch_size)]
    found: dict[str, list[float]] = {"train": [], "test": []}

    def measure() -> None:
        for name, part in data.items():
            found[name].append(round(nc.training.accuracy(network, part, 1_000), 4))

    measure()
    steps = training_steps(
        network,
        data["train"],
        sgd(network, recipe),
        batches,
        rates=(recipe.rate(step, total) for step in range(total)),
        clip_norm=recipe.clip_norm,
    )
    for done, _ in enumerate(steps, 1):
        if done % EVERY == 0 or done == total:
            measure()
    return found


class TwoTrainings(KeyedStudy):
    """How does accuracy grow on a wave that LeNet learns, and on one that it only memorises?"""

    name = "two-trainings"
    on_gpu = False
    design = {"wave": WAVES}

    rows_at = ("waves",)

    def facts(self) -> Facts:
        job = Fig1.create("lenet", "paper")
        total = job.recipe.num_steps(job.num_train)
        return {
            "architecture": "lenet",
            "seed": SEED,
            "num_train": job.num_train,
            "num_test": job.num_test,
            "epochs": job.recipe.epochs,
            "steps": [*range(0, total, EVERY), total],
        }

    def run(self, unit: Unit, context: Context) -> Row:
        frequency = WAVES[unit["wave"]]
        return {"frequency": list(frequency), **curves(frequency, Fig1.create("lenet", "paper"))}
