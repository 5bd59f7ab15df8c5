"""A rival of the energies: networks that never leave their tangent kernel.

The linearised network f(x) = J(x) w, with the gradients J(x) at random weights, is fitted to D(v)
by conjugate gradients, whose iterations are those of kernel regression with early stopping.
Energies, the gain correction and frequency are compared with it on the same directions.
``book/preregistered/rival_theory.toml`` has what was expected.
"""

import itertools
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.func import jvp, vjp
from torch.nn.utils import parameters_to_vector

import nads_core as nc
from nads_book.experiments import (
    Context,
    Criteria,
    Estimates,
    Met,
    Row,
    Rows,
    Scored,
    Study,
    Unit,
    load_nads,
    load_registered,
    load_study,
    logit_difference,
    rounded,
)
from nads_book.statistics import resampled_correlations, with_interval
from nads_book.studies import forgetting, stored, table
from nads_book.studies.gain import designed_direction, load_design
from nads_book.studies.presets import MODELS
from nads_book.theory.first_step import GainCorrection, filter_gain, signal_to_noise
from nads_core.directions import NADs
from nads_core.networks.architectures import Architecture
from nads_core.runtime.seeds import seed_sequence, seeded

NETWORKS, FAMILIES, SEEDS = ("lenet", "cnn"), ("waves", "designed"), (0, 1, 2)
NOISE_STD = {"waves": 3.0, "designed": 1.0}
NUM_WAVES = 64  # of Fig. 1, for LeNet
NUM_TRAIN, NUM_TEST, ITERATIONS, CHUNK = 2_048, 2_000, 3, 512
NUM_TRAINED = 10_000  # samples of the networks that are predicted
RIDGE = 1e-3  # relative to the mean squared gradient
NUM_DRAWS = 5_000
THEORIES = ("kernel", "alignment", "energy", "gain", "frequency")
NUM_KERNELS, NUM_PAIRED = 20, 512  # networks of a mean kernel, and samples of each of its two sets
NUM_RANDOM = 4_096  # networks, for the NADs of the small CNN


def mean_frequency(directions: Tensor) -> float:
    """Return the mean frequency of images (n, 1, H, W), weighted by energy, in cycles per image."""
    energy = torch.fft.fft2(directions[:, 0]).abs().square().mean(0)
    ky, kx = (torch.fft.fftfreq(size, 1 / size) for size in energy.shape)
    distance = (ky[:, None].square() + kx.square()).sqrt()
    return float((energy * distance).sum() / energy.sum())


def nads_of(
    network: str,
    context: Context,
    architecture: Architecture | None = None,
    num_networks: int = NUM_RANDOM,
) -> NADs:
    """Return the NADs of LeNet that ship, or those of other random networks, kept beside the
    results.

    Args:
        network: name of the networks.
        context: place of what is kept.
        architecture: architecture of the networks; by default that of their name.
        num_networks: number of random networks.
    """
    if network == "lenet":
        return load_nads("lenet", 2)

    def compute() -> tuple[Tensor, Tensor]:
        nads = nc.compute_nads(
            architecture or MODELS[network],
            (1, 32, 32),
            num_networks,
            estimator=nc.SmoothedGradient(16),
            seed=1,
            device="cpu",
            progress=False,
        )
        return nads.directions, nads.eigenvalues

    return NADs(*context.kept(f"nads of {network}, {num_networks}", compute))


@lru_cache
def keys(network: str, family: str) -> list[Any]:
    """Return what names each direction of a family: a frequency, or an index into the design."""
    if family == "designed":
        design = load_design(network)
        places = np.arange(len(design["gains"]))
        return list(map(int, places[design["held_out"]] if network == "lenet" else places))
    if network == "cnn":
        return [list(wave) for wave in forgetting.waves()]
    units = stored("fig1-lenet", "laptop").experiment().units()[:NUM_WAVES]
    return [unit["frequency"] for unit in units]


def setting(unit: Unit, *parts: int) -> tuple[Tensor, float, int]:
    """Return the direction of a unit, (1, 32, 32), the noise, and a seed of its own.

    Args:
        unit: network, family and key.
        *parts: numbers that distinguish the seed from those of other studies and seeds.
    """
    name, family, key = unit["network"], unit["family"], unit["key"]
    if family == "waves":
        v = nc.fourier_direction(tuple(key), size=32)
    else:
        v = designed_direction(name, key)
    places = NETWORKS.index(name), FAMILIES.index(family), keys(name, family).index(key)
    return v, NOISE_STD[family], seed_sequence(*parts, *places)


class Linearised:
    """The products with J, the gradients (N, P) of a network's outputs for some images.

    Args:
        network: module whose weights are where it is linearised.
        images: (N, C, H, W).
    """

    def __init__(self, network: nn.Module, images: Tensor):
        self.weights = parameters_to_vector(network.parameters()).detach()
        shapes = {name: value.shape for name, value in network.named_parameters()}

        def outputs(part: Tensor, weights: Tensor) -> Tensor:
            pieces = weights.split([shape.numel() for shape in shapes.values()])
            named = zip(shapes.items(), pieces, strict=True)
            given = {name: piece.view(shape) for (name, shape), piece in named}
            return logit_difference(network, part, given)

        self.functions = [partial(outputs, part) for part in images.split(CHUNK)]

    def times(self, weights: Tensor) -> Tensor:
        """Return J w, (N,), of weights (P,)."""
        return torch.cat([jvp(one, (self.weights,), (weights,))[1] for one in self.functions])

    def transposed(self, values: Tensor) -> Tensor:
        """Return J' r, (P,), of values (N,)."""
        parts = zip(self.functions, values.split(CHUNK), strict=True)
        return torch.stack([vjp(one, self.weights)[1](part)[0] for one, part in parts]).sum(0)


def conjugate_gradients(
    train: Linearised, targets: Tensor, test: Linearised, num_steps: int = ITERATIONS
) -> tuple[list[Tensor], Tensor]:
    """Fit |J w - y|^2 + ridge |w|^2 from w = 0; return test outputs by iteration, and J' y.

    Args:
        train: linearised network on N training images.
        targets: y, (N,).
        test: the same network on test images.
        num_steps: number of iterations.
    """
    slope = first = search = train.transposed(targets)
    # Squared norm of J, over N: what the largest eigenvalue is measured by, from one product.
    ridge = RIDGE * slope.square().sum() / targets.square().sum()
    weights, residual, found = torch.zeros_like(slope), targets, list[Tensor]()
    predicted = torch.tensor(0.0)
    for _ in range(num_steps):
        along, size = train.times(search), slope.square().sum()
        step = size / (along.square().sum() + ridge * search.square().sum())
        weights = weights + step * search
        predicted = predicted + step * test.times(search)
        found.append(predicted)
        residual = residual - step * along
        slope = train.transposed(residual) - ridge * weights
        search = slope + slope.square().sum() / size * search
    return found, first


def kernel_row(network: nn.Module, v: Tensor, noise_std: float, seed: int) -> Row:
    """Return accuracies of kernel regression by iteration, and the alignment with labels."""
    (images, labels), (tests, truth) = (
        nc.SeparableDatasets(v[None], count, 1.0, noise_std, seed_sequence(seed, part), paired)[0]
        for part, (count, paired) in enumerate(((NUM_TRAIN, False), (NUM_TEST, True)))
    )
    train, test = Linearised(network, images), Linearised(network, tests)
    signs = 2.0 * labels - 1
    # A larger class would move all outputs, since biases give the kernel a large constant.
    predicted, along = conjugate_gradients(train, signs - signs.mean(), test)
    alignment = float(along @ test.transposed(2.0 * truth - 1)) / (NUM_TRAIN * NUM_TEST)
    above = [scores > scores.mean() for scores in predicted]
    right = [float((one == (truth == 1)).double().mean()) for one in above]
    return {"accuracies": rounded(right, 4), "alignment": float(f"{alignment:.6g}")}


class RivalTheory(Study):
    """Does a tangent kernel predict better than energies? See ``rival_theory.toml``."""

    name = "rival-theory"
    on_gpu = False
    needs = ("fig1-lenet",)

    def units(self) -> list[Unit]:
        order = (("waves", "lenet"), ("designed", "lenet"), ("waves", "cnn"), ("designed", "cnn"))
        return [
            {"network": network, "family": family, "key": key, "seed": seed}
            for seed in SEEDS
            for family, network in order
            for key in keys(network, family)
        ]

    def run(self, unit: Unit, context: Context) -> Row:
        v, noise_std, seed = setting(unit, unit["seed"], 22)
        with seeded(seed_sequence(seed, 2)):
            network = MODELS[unit["network"]].build(1, 32, 2)
        nads = nads_of(unit["network"], context)
        z = signal_to_noise(nads, v[None], NUM_TRAINED, noise_std)
        energy = float(nads.energy(v[None]) / nads.eigenvalues.mean())
        facts = {"energy": energy, "ratio": float(z[0]), "gain": float(filter_gain(v[None])[0])}
        facts["frequency"] = mean_frequency(v[None])
        row = kernel_row(network, v, noise_std, seed % 2**31)
        return row | rounded(facts, 6, significant=True)

    def score(self, rows: Rows) -> Scored:
        """Apply the registered rule (``rival_theory.toml``) to the seeds that were computed."""
        return judge(by_direction(rows), self.registered["criteria"])


def alignments(name: str, v: Tensor, noise_std: float, seed: int) -> list[float]:
    """Return the alignment of the tangent kernel with labels, mean y y' K(x, x'), by network.

    Args:
        name: architecture.
        v: direction, (1, H, H).
        noise_std: noise of D(v).
        seed: seed of both sets of samples, in pairs that differ in their label alone.
    """
    found = []
    for number in range(NUM_KERNELS):
        with seeded(seed_sequence(23, NETWORKS.index(name), number)):
            network = MODELS[name].build(1, 32, 2)
        weights = list(network.parameters())
        slopes = []
        for part in range(2):
            images, labels = nc.SeparableDatasets(
                v[None], NUM_PAIRED, 1.0, noise_std, seed_sequence(seed, part), paired=True
            )[0]
            logits = network(images)
            along = ((2.0 * labels - 1) * (logits[:, 1] - logits[:, 0])).mean()
            slopes.append(torch.autograd.grad(along, weights))
        found.append(float(sum((a * b).sum() for a, b in zip(*slopes, strict=True))))
    return found


class MeanKernels(Study):
    """Does the mean tangent kernel of many networks predict better than one? See
    ``mean_kernels.toml``.
    """

    name = "mean-kernels"
    on_gpu = False
    needs = ("fig1-lenet",)

    def units(self) -> list[Unit]:
        return [unit for unit in RivalTheory().units() if unit["seed"] == SEEDS[0]]

    def run(self, unit: Unit, context: Context) -> Row:
        v, noise_std, seed = setting(unit, 24)
        found = alignments(unit["network"], v, noise_std, seed)
        return {"alignments": rounded(found, 4, significant=True)}

    def judge(self, rows: Rows) -> Scored:
        """Apply the rule of `RivalTheory` to its rows, with means in place of single kernels."""
        means = by_direction(rows)["alignments"].map(np.mean)
        single = by_direction(load_study("rival-theory.json")["rows"])
        return judge(single.assign(alignment=means), self.registered["criteria"])


def by_direction(rows: Rows) -> pd.DataFrame:
    """Return rows as a table by network, family and direction."""
    found = pd.DataFrame(rows)
    return found.assign(name=found["key"].map(str)).set_index(["network", "family", "name"])


def trained_accuracies(network: str, family: str) -> Mapping[str, float] | pd.Series:
    """Return the stored accuracies of trained networks, means over seeds, by key as text."""
    if family == "designed":
        rows, field = table(f"law-{network}"), "index"
    elif network == "lenet":
        rows, field = table("fig1-lenet"), "frequency"
    else:
        found = forgetting.cnn_accuracies()
        return {str(list(wave)): accuracy for wave, accuracy in found.items()}
    return rows.groupby(rows[field].map(str))["test_accuracy"].mean()


def predictions(rows: pd.DataFrame, network: str, family: str) -> pd.DataFrame:
    """Return what theories predict for the directions of a cell, and what training reached.

    Args:
        rows: rows of the study, see `by_direction`; values are means over seeds.
        network: name of the network.
        family: family of directions.
    """
    own = rows.xs(network, level="network").xs(family, level="family")
    own = own.assign(kernel=own["accuracies"].str[-1])
    fields = ["kernel", "alignment", "energy", "ratio", "gain", "frequency"]
    found = own.groupby("name", sort=False)[fields].mean()
    correction = GainCorrection(tuple(load_registered("law")["constants"]["with_gain"]))
    found["gain"] = correction.accuracies(found["ratio"].to_numpy(), found["gain"].to_numpy())
    found["frequency"] *= -1
    found["trained"] = found.index.map(trained_accuracies(network, family))
    return found.loc[[str(key) for key in keys(network, family)]]


def judge(rows: pd.DataFrame, criteria: Criteria) -> Scored:
    """Return rank correlations with trained accuracies, leads, and the criteria met.

    Args:
        rows: rows of the study, see `by_direction`.
        criteria: table of the registration.
    """
    cells = itertools.product(NETWORKS, FAMILIES)
    found = {cell: predictions(rows, *cell) for cell in cells}
    estimates: Estimates = {}
    draws = {
        cell: {
            name: resampled_correlations(one[name].to_numpy(), one["trained"].to_numpy(), NUM_DRAWS)
            for name in THEORIES
        }
        for cell, one in found.items()
    }
    for cell, drawn in draws.items():
        own = estimates[", ".join(cell)] = {name: with_interval(x) for name, x in drawn.items()}
        for name in ("kernel", "alignment", "gain", "frequency"):
            own[f"{name} before energy"] = with_interval(drawn[name] - drawn["energy"])
    met: Met = {}
    for name, rule in criteria.items():
        cell = rule["network"], rule["family"]
        if "kernel_below" in rule:
            one = found[cell]
            learned = one["trained"] > rule["trained_above"]
            below = (one["kernel"] < rule["kernel_below"]).all()
            met[name] = bool(below and learned.sum() >= rule["directions"])
            continue
        value, low, _ = with_interval(draws[cell][rule["first"]] - draws[cell][rule["second"]])
        above = rule.get("interval_above")
        met[name] = bool(value > rule["lead_above"] if above is None else low > above)
    return Scored(estimates, met)
