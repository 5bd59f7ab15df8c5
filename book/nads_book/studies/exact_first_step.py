"""The first step of training by exact derivatives.

The first change of the second moment G does not depend on the labels
(`nads_book.studies.geometry`), and is too small for finite differences in LeNet. Here G's
derivative by the learning rate is computed: the input gradient g of a network is differentiated
along the descent direction of its weights, forward over reverse,
    dG / d rate = E[dg g' + g dg'],  dg = (d / dt) g(weights - t dL / d weights)  at t = 0,
where L is the part of the loss without labels. ``book/preregistered/exact_first_step.toml`` has
what was expected.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import grad, jvp
from torch.nn import functional as F

from nads_book.experiments import (
    Context,
    Met,
    Row,
    Rows,
    Scored,
    Study,
    Unit,
    logit_difference,
)
from nads_book.studies.geometry import (
    DIMENSION,
    GROUPS,
    NETWORKS,
    built,
    compared,
    growth,
    inputs_of,
    laws_of,
    moments_of,
    photos,
)
from nads_book.studies.rival_theory import nads_of

Weights = Mapping[str, Tensor]
FIRST_IDENTITY = 3 * 10**6  # of the networks of this study; other studies have smaller ones
NUM_DERIVATIVES = {"lenet": 1_024, "mlp": 1_024, "linear": 1_024, "cnn": 768, "resnet": 96}
NUM_UNTRAINED = 1_024  # ResNets for G_0
BATCH, BATCH_RESNET = 512, 128
PART = 32  # networks that are kept together
LAW = "G_0 S G_0"


class SharedNorm(nn.Module):
    """Batch norm whose statistics are those of the first images of a batch.

    Args:
        norm: layer of which it takes weights and settings.
    """

    def __init__(self, norm: nn.BatchNorm2d):
        super().__init__()
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps
        self.count: int | None = None  # number of images that give the statistics; all by default

    def forward(self, x: Tensor) -> Tensor:
        """Normalise channels, (N, C, H, W)."""
        first = x[: self.count]
        mean = first.mean((0, 2, 3), keepdim=True)
        variance = first.var((0, 2, 3), unbiased=False, keepdim=True)
        scale = self.weight[:, None, None] * (variance + self.eps).rsqrt()
        return (x - mean) * scale + self.bias[:, None, None]


def with_shared_norms(network: nn.Module) -> list[SharedNorm]:
    """Replace all batch norms of a network, and return the new ones."""
    made = []
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.BatchNorm2d):
                made.append(SharedNorm(child))
                setattr(module, name, made[-1])
    return made


def loss_without_labels(network: nn.Module, images: Tensor, weights: Weights) -> Tensor:
    """Return the mean cross-entropy of both labels: half of log(1 + e^d) + log(1 + e^-d)."""
    d = logit_difference(network, images, weights)
    return (F.softplus(d) + F.softplus(-d)).mean() / 2


def gradients_and_change(
    network: nn.Module, images: Tensor, inputs: Tensor
) -> tuple[Tensor, Tensor]:
    """Return input gradients (2, D), each a mean over half of the inputs, and their derivatives.

    Args:
        network: two logits from images; its batch norms take the statistics of ``images``.
        images: training images (N, C, H, W).
        inputs: (2, n, C, H, W).
    """
    norms = with_shared_norms(network)
    weights = {name: value.detach() for name, value in network.named_parameters()}
    slope = grad(partial(loss_without_labels, network, images))(weights)
    descent = {name: -value for name, value in slope.items()}
    for norm in norms:
        norm.count = len(images)
    before = images if norms else images[:0]

    def gradient(weights: Weights) -> Tensor:
        def total(x: Tensor) -> Tensor:
            every = torch.cat([before, x.flatten(0, 1)])
            return logit_difference(network, every, weights)[len(before) :].sum()

        return grad(total)(inputs).mean(1).flatten(1)

    # Two results, without has_aux.
    gradients, changes = jvp(gradient, (weights,), (descent,))  # type: ignore[misc]
    return gradients, changes


def derivatives(identities: range, network: str, images: Tensor) -> tuple[Tensor, Tensor]:
    """Return gradients and their derivatives by the learning rate, (n, 2, D) each.

    Args:
        identities: seeds of weights, inputs and batches.
        network: name in `NETWORKS`.
        images: all training images.
    """
    size = BATCH_RESNET if network == "resnet" else BATCH
    found = []
    for identity in identities:
        inputs, generator = inputs_of(identity)
        batch = torch.randint(len(images), (size,), generator=generator)
        found.append(gradients_and_change(built(network, identity), images[batch], inputs))
    gradients, changes = map(torch.stack, zip(*found, strict=True))
    return gradients, changes


def moment_change(gradients: Tensor, changes: Tensor) -> Tensor:
    """Return the derivative of `moment`, (D, D), from (n, 2, D) each."""
    products = changes[:, 0].double().T @ gradients[:, 1].double()
    products += gradients[:, 0].double().T @ changes[:, 1].double()
    return (products + products.T) / (2 * len(gradients))


def initial(network: str, context: Context) -> Tensor:
    """Return G_0, (1, D, D), of trace D: shipped, of other networks, or the identity."""
    if network not in ("lenet", "cnn", "resnet"):
        # First weights are independent and of one variance.
        return torch.eye(DIMENSION, dtype=torch.float64)[None]
    if network == "resnet":
        nads = nads_of(network, context, NETWORKS[network].architecture, NUM_UNTRAINED)
    else:
        nads = nads_of(network, context)
    basis, values = nads.basis.double(), nads.eigenvalues.double()
    return (basis * values * len(basis) / values.sum() @ basis.T)[None]


class ExactFirstStep(Study):
    """What does the first step change, exactly? See ``exact_first_step.toml``."""

    name = "exact-first-step"
    size = "paper"
    on_gpu = False
    on_photos = True
    design = {"network": NUM_DERIVATIVES, "measured": ("derivative",)}

    def run(self, unit: Unit, context: Context) -> Row:
        network, images = unit["network"], photos()[0]
        parts = {}
        for start in range(0, NUM_DERIVATIVES[network], PART):
            first, last = FIRST_IDENTITY + start, FIRST_IDENTITY + NUM_DERIVATIVES[network]
            identities = range(first, min(first + PART, last))
            parts[start] = partial(derivatives, identities, network, images)
        found = context.kept_parts(f"{network}, first", parts)
        gradients, changes = map(torch.cat, zip(*found, strict=True))
        return first_change(gradients, changes, laws_of("photos", initial(network, context)))

    def judge(self, rows: Rows) -> Scored:
        """Return the registered criteria met that are about derivatives; None where a direction is
        not resolved.
        """
        derived = {row["network"]: row for row in rows if row["measured"] == "derivative"}
        met: Met = {}
        for name, rule in self.registered["criteria"].items():
            ((kind, limit),) = rule.items()
            if kind != "balanced":
                met[name] = holds(derived[name.partition(",")[0]], kind, limit)
        return Scored({}, met)


def first_change(gradients: Tensor, changes: Tensor, laws: dict[str, Tensor]) -> Row:
    """Return how the derivative of the second moment agrees with laws, and that of log tr G.

    Args:
        gradients: (n, 2, D).
        changes: derivatives of these, (n, 2, D).
        laws: laws of `geometry.laws_of`; the signal is left out, since no labels are used.
    """
    parts = list(zip(gradients.chunk(GROUPS), changes.chunk(GROUPS), strict=True))
    stack = torch.stack([moment_change(*part) for part in parts])
    known = {name: law for name, law in laws.items() if name not in ("signal", "class means")}
    return {
        "num_networks": len(gradients),
        "change": compared(stack, known),
        "growth": growth(stack, moments_of(gradients)),
    }


def holds(row: Row, kind: str, limit: Any) -> bool | None:
    """Return whether a network meets a criterion on its first change; None if it is not resolved.

    Args:
        row: row of its derivative.
        kind: kind of the criterion, a key of the registration.
        limit: value of that key.
    """
    if kind == "trace":
        return bool(row["growth"][2] < 0)
    change = row["change"]
    values = change["law ahead"][limit] if kind == "ahead_of" else change["cosine"][LAW]
    if None in values:
        return None
    value, low, high = values
    if kind == "ahead_of":
        return bool(low > 0)
    if kind == "cosine_below":
        return bool(value < limit and high < 0)
    return bool(limit[0] < value < limit[1])
