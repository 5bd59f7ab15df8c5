"""The first step of training over the learning rate: where does the law without labels end?

To first order in the rate a step shrinks the second moment G of input gradients, whatever the
labels (`nads_book.studies.exact_first_step`). Here each network takes one step of SGD from its
start, and tr G is measured again. A network learns its labels and their opposites: flipping the
sign of the last layer gives an equally likely network, for which these labels are the others, so
that the mean of both steps has no noise of first order from labels.
``book/preregistered/first_step_rates.toml`` has what was expected.
"""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

import nads_core as nc
from nads_book.experiments import (
    Context,
    Estimates,
    Met,
    Row,
    Rows,
    Scored,
    Study,
    Unit,
    factorial,
)
from nads_book.studies.exact_first_step import initial
from nads_book.studies.geometry import (
    BATCH,
    GROUPS,
    SIZE,
    built,
    compared,
    growth,
    input_gradients,
    inputs_of,
    laws_of_images,
    moments_of,
    numbered_steps,
    over_groups,
    photos,
    with_jackknife,
)
from nads_core.training import Dataset

RATES = (0.01, 0.02, 0.05, 0.1, 0.21, 0.5)
CLIPS = (0.5, None)  # of the norm of a step's gradient, as in the paper's D(v), and without
NUM_NETWORKS = {"lenet": 20 * GROUPS, "cnn": 20 * GROUPS, "resnet": 2 * GROUPS}
WAVES = {"wave": (0, 4), "finer wave": (4, 10)}
NOISE_STD = 3.0
LABELS = ("right", "random")
SHOWN_STEPS = (10, 30)
PER_GROUP = 8  # networks of `PaperRates` in each group
FIRST_IDENTITY = 4 * 10**6  # of the networks of this study; others have smaller ones


def direction(data: str) -> Tensor:
    """Return the wave that the labels of some data follow, (1, H, H)."""
    return nc.fourier_direction(WAVES[data], size=SIZE)


def batch_of(data: str, pool: Dataset, generator: torch.Generator) -> Dataset:
    """Return the images (N, 1, H, H) and labels (N,) of one step.

    Args:
        data: a key of `WAVES`, or "photos".
        pool: all photos and their labels.
        generator: source of the samples.
    """
    if data == "photos":
        chosen = torch.randint(len(pool[0]), (BATCH,), generator=generator)
        return pool[0][chosen], pool[1][chosen]
    seed = int(torch.randint(2**31, (1,), generator=generator))
    return nc.separable_dataset(direction(data), BATCH, noise_std=NOISE_STD, seed=seed)


def traces(unit: Unit, clips: Sequence[float | None], number: int, pool: Dataset) -> Tensor:
    """Return the squared norm of a network's mean input gradient before a step, and after it by
    clipping and rate: (1 + clips * rates,).

    Args:
        unit: network, data, labels and seed.
        clips: upper bounds of the norm of a step's gradient.
        number: number of the network.
        pool: all photos and their labels.
    """
    identity = FIRST_IDENTITY + 10_000 * unit["seed"] + number
    inputs, generator = inputs_of(identity)
    images, labels = batch_of(unit["data"], pool, generator)
    if unit["labels"] == "random":
        labels = torch.randint(2, labels.shape, generator=generator)
    network = built(unit["network"], identity)
    weights = list(network.parameters())
    start = [weight.detach().clone() for weight in weights]

    def trace() -> float:
        first, second = input_gradients(network, inputs, images)
        return float(first @ second)  # of two halves of the inputs: without their noise

    found = torch.zeros(2, len(clips), len(RATES), dtype=torch.float64)
    before = trace()
    losses = [F.cross_entropy(network(images), each) for each in (labels, 1 - labels)]
    slopes = [torch.autograd.grad(loss, weights) for loss in losses]
    for sign, slope in enumerate(slopes):
        norm = float(torch.cat([part.flatten() for part in slope]).norm())
        for i, clip in enumerate(clips):
            for j, rate in enumerate(RATES):
                step = rate if clip is None else rate * min(1.0, clip / norm)
                with torch.no_grad():
                    for weight, origin, part in zip(weights, start, slope, strict=True):
                        weight.copy_(origin - step * part)
                found[sign, i, j] = trace()
    return torch.cat([torch.tensor([before]), found.mean(0).flatten()])


class FirstStepRates(Study):
    """Up to which learning rate does the first step shrink the slopes?"""

    name = "first-step-rates"
    size = "paper"
    clips: ClassVar[Sequence[float | None]] = CLIPS
    on_gpu = False
    many_rows = True
    on_photos = True
    design = {
        "seed": (0,),
        "network": ("lenet", "cnn"),
        "data": ("wave", "photos"),
        "labels": LABELS,
    }

    def run(self, unit: Unit, context: Context) -> list[Row]:
        count = NUM_NETWORKS[unit["network"]]

        def of_group(pool: Dataset, group: int) -> list[Tensor]:
            numbers = range(group, count, GROUPS)
            return [traces(unit, self.clips, number, pool) for number in numbers]

        parts = {group: partial(of_group, photos(), group) for group in range(GROUPS)}
        found = context.kept_parts(", ".join(map(str, unit.values())), parts)
        before, *after = map(over_groups, torch.stack([sum(one) for one in found]).T)
        settings = [(clip, rate) for clip in self.clips for rate in RATES]
        return [
            {
                "clip": clip,
                "rate": rate,
                "num_networks": count,
                "growth": with_jackknife(x / before),
            }
            for (clip, rate), x in zip(settings, after, strict=True)
        ]

    def judge(self, rows: Rows) -> Scored:
        """Return tr G after a step, relative to that before it, and the registered criteria met;
        None where an interval contains 1.
        """
        estimates: Estimates = {}
        for row in rows:
            setting = f"rate {row['rate']}, {'no clipping' if row['clip'] is None else 'clipped'}"
            cell = ", ".join(row[name] for name in ("network", "data", "labels"))
            estimates.setdefault(cell, {})[setting] = tuple(row["growth"])
        met: Met = {}
        for name, rule in self.registered["criteria"].items():
            found = [estimates[cell][rule["setting"]] for cell in rule["cells"]]
            sides = {
                "falls" if high < 1 else "grows" if low > 1 else None for _, low, high in found
            }
            met[name] = (sides == {rule["tr_G"]}) or (None if None in sides else False)
        return Scored(estimates, met)


class FirstStepReplication(FirstStepRates):
    """Is it so with other seeds, along a finer wave, and in a narrow ResNet-18?"""

    name = "first-step-replication"
    clips = CLIPS[:1]

    def units(self) -> list[Unit]:
        small = {"network": ("lenet", "cnn"), "data": (*WAVES, "photos"), "labels": LABELS}
        deep = {"network": ("resnet",), "data": ("wave", "photos"), "labels": ("right",)}
        return [unit for one in (small, deep) for unit in factorial(seed=(1,), **one)]


class PaperRates(Study):
    """Does the change of the second moment follow the labels' signal at the paper's rates, too?"""

    name = "paper-rates"
    size = "paper"
    on_gpu = False
    many_rows = True
    on_photos = True
    design = {"network": ("lenet", "cnn"), "data": ("wave", "photos")}

    def run(self, unit: Unit, context: Context) -> list[Row]:
        network, data = unit["network"], unit["data"]
        pool = photos() if data == "photos" else wave_data(data)
        parts = {
            group: partial(followed, network, data, range(first, first + PER_GROUP), pool)
            for group, first in enumerate(range(0, GROUPS * PER_GROUP, PER_GROUP))
        }
        found = context.kept_parts(f"{network}, {data}, followed", parts)
        gradients = torch.cat(found)  # (n, times, 2, D)
        laws = laws_of_images(*pool, initial(network, context))
        before, *later = [moments_of(gradients[:, time]) for time in range(1 + len(SHOWN_STEPS))]
        return [
            {
                "step": step,
                "num_networks": len(gradients),
                "growth": growth(now, before),
                "change": compared(now - before, laws),
            }
            for step, now in zip(SHOWN_STEPS, later, strict=True)
        ]

    def judge(self, rows: Rows) -> Scored:
        """Return whether the signal leads all rivals, intervals apart; None where a change is not
        resolved.
        """
        leads = {
            f"{row['network']}, {row['data']}, step {row['step']}": signal_lead(row) for row in rows
        }
        return Scored({}, {name: None if np.isnan(x) else x > 0 for name, x in leads.items()})


def wave_data(data: str) -> Dataset:
    """Return images and labels of D(v), as many as in the paper."""
    return nc.separable_dataset(direction(data), 10_000, noise_std=NOISE_STD, seed=7)


def followed(network: str, data: str, numbers: range, pool: Dataset) -> Tensor:
    """Return the gradients of networks at the start and at `SHOWN_STEPS`, (n, times, 2, D), by the
    paper's recipe for some data.
    """
    recipe = nc.CIFAR10_RECIPE if data == "photos" else nc.SEPARABLE_RECIPE
    found = []
    for number in numbers:
        identity = FIRST_IDENTITY + 50_000 + number
        inputs, generator = inputs_of(identity)
        model = built(network, identity)
        optimiser = torch.optim.SGD(
            model.parameters(),
            lr=recipe.learning_rate,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
        )
        times = [input_gradients(model, inputs, pool[0][:BATCH])]
        sizes = [BATCH] * max(SHOWN_STEPS)
        for step in numbered_steps(model, optimiser, pool, sizes, generator, recipe.clip_norm):
            if step in SHOWN_STEPS:
                times.append(input_gradients(model, inputs, pool[0][:BATCH]))
        found.append(torch.stack(times))
    return torch.stack(found)


def signal_lead(row: Row) -> float:
    """Return by how much the interval of the cosine with the signal is above those of all
    rivals; NaN without an interval.
    """
    cosines = row["change"]["cosine"]
    ends = [values[2] for law, values in cosines.items() if law != "signal"]
    low = cosines["signal"][1]
    return np.nan if low is None else low - max(ends)
