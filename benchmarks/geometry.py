"""How NADs change while networks train: the second moment G_t of trained networks' gradients, at chosen steps.

``python benchmarks/geometry.py run`` measures all conditions; it resumes at the last condition and step. ``python
benchmarks/geometry.py check`` compares the first step of a deep linear network with its closed form.
Results go to ``book/results/studies/geometry.json``.

Later work (arXiv 2410.12025) conjectures that training moves G towards G_0 S G_0, where S is the second moment of the
data. So cosines of matrices are stored, <A, B> / |A| |B| with <A, B> = tr(A B): of G_t with G_0 and with S, and of the
change G_t - G_0 with G_0 S G_0. Products are unbiased: of matrices of different networks, or of different inputs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from definitions import sampled_halves
from nads_book.atlas.entries import ATLAS
from nads_book.experiments.stored import study_path
from result_files import write_compact
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

import nads_core as nc
from nads_core.directions.symmetry import symmetrize
from nads_core.networks.architectures import Architecture
from nads_core.runtime.provenance import environment

FILE = study_path("geometry.json")
SIZE, DIMENSION, NUM_IMAGES = 32, 1_024, 4_000
STEPS = (1, 3, 10, 30, 100, 300)
ANIMALS = torch.tensor([2, 3, 4, 5, 6, 7])  # labels of CIFAR-10
ISOTROPIC = ("mlp", "linear")  # their first weights are independent with one variance, so that G_0 is c I
GROUPS = 16  # of networks, for the jackknife
LEADING = 8  # directions whose pictures are stored


class Linear(nn.Module):
    """Two linear layers without biases, f(x) = a^T W x, with W ~ N(0, 1 / D) and a ~ N(0, 1 / h), h = 64."""

    def __init__(self, in_channels: int, image_size: int, num_classes: int, hidden: int = 64):
        super().__init__()
        dimension = in_channels * image_size**2
        self.first = nn.Parameter(torch.randn(hidden, dimension) / dimension**0.5)
        self.last = nn.Parameter(torch.randn(num_classes, hidden) / hidden**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return f(x), (N, num_classes)."""
        return x.flatten(1) @ self.first.T @ self.last.T


NETWORKS: dict[str, Architecture] = {
    "lenet": nc.LENET,
    "cnn": ATLAS["cnn"].architecture,
    "mlp": ATLAS["mlp"].architecture,
    "linear": Architecture("linear", Linear),
    "resnet18, a quarter of the width": replace(nc.RESNET18, options={"width": 16}),
    "resnet": ATLAS["resnet"].architecture,
    "resnet without normalisation": ATLAS["resnet-nonorm"].architecture,
}
FEWER = {"resnet18, a quarter of the width": (64, 100), "resnet": (64, 100), "resnet without normalisation": (64, 100)}
NUM_NETWORKS = 256
DATA = ("photos", "random labels", "learned wave", "wave in the middle")


@dataclass(frozen=True)
class Condition:
    """Networks and what they are trained on, by plain gradient descent: rate .1, momentum .9, batches of 128."""

    network: str
    data: str


def photos() -> tuple[Tensor, Tensor]:
    """Return grey photos of CIFAR-10 with mean 0 and variance 1, (N, 1, 32, 32), and whether they show an animal."""
    loaded = nc.load_images("cifar10", num_images=NUM_IMAGES)
    grey = loaded.images.mean(1, keepdim=True)
    return (grey - grey.mean()) / grey.std(), torch.isin(loaded.labels, ANIMALS).long()


def dataset(data: str) -> tuple[Tensor, Tensor]:
    """Return the images and labels of a condition; those of "random labels" are replaced for each network."""
    if data in ("photos", "random labels"):
        return photos()
    frequency = (0, 4) if data == "learned wave" else (4, 10)
    return nc.separable_dataset(nc.fourier_direction(frequency, size=SIZE), NUM_IMAGES, noise_std=1.0, seed=7)


class Difference(nn.Module):
    """The scalar f of a classifier with two logits: their difference."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Return f(x), (N,)."""
        logits = self.network(x)
        return logits[:, 1] - logits[:, 0]


def trained(architecture: Architecture, images: Tensor, labels: Tensor, steps: int, random_labels: bool) -> nn.Module:
    """Return a new network after some steps; weights, batches and labels come from torch's global generator."""
    network = architecture.build(1, SIZE, 2).train()
    if random_labels:
        labels = torch.randint(2, labels.shape)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    with torch.enable_grad():
        for _ in range(steps):
            batch = torch.randint(len(images), (128,))
            optimiser.zero_grad()
            F.cross_entropy(network(images[batch]), labels[batch]).backward()
            optimiser.step()
    return Difference(network)


def halves(condition: Condition, steps: int, num_networks: int, seed: int = 0) -> Tensor:
    """Return the gradients of networks after some steps, from two halves of 16 inputs: (n, 2, D)."""
    images, labels = dataset(condition.data)
    architecture = NETWORKS[condition.network]
    build = partial(trained, architecture, images, labels, steps, condition.data == "random labels")
    return sampled_halves(build, (1, SIZE, SIZE), nc.SmoothedGradient(16), num_networks, seed).double()


def moment(gradients: Tensor) -> Tensor:
    """Return the second moment (D, D) without the noise of inputs, from halves (n, 2, D)."""
    products = gradients[:, 0].T @ gradients[:, 1]
    return (products + products.T) / (2 * len(gradients))


def cosine(first: Tensor, second: Tensor) -> float:
    """Return the cosine of the means of two stacks of matrices (groups, D, D), of independent networks.

    The squared norms are products of different groups, so that sampling does not lower the cosine. A stack of one
    matrix is taken as exact.
    """
    total = [stack.sum(0) for stack in (first, second)]
    squares = []
    for stack, summed in zip((first, second), total, strict=True):
        n = len(stack)
        square = (
            float((summed * summed).sum())
            if n == 1
            else float(((summed * summed).sum() - (stack * stack).sum()) / (n * (n - 1)))
        )
        squares.append(square)
    product = float((total[0] * total[1]).sum()) / (len(first) * len(second))
    return product / (max(squares[0], 1e-300) * max(squares[1], 1e-300)) ** 0.5


def with_jackknife(measure: Callable[[Tensor], float], stack: Tensor) -> list[float]:
    """Return a function of a stack of groups, and its 95 % interval from leaving out one group at a time."""
    value, n = measure(stack), len(stack)
    others = np.array([measure(torch.cat([stack[:i], stack[i + 1 :]])) for i in range(n)])
    half = 2.131 * float(np.sqrt((n - 1) / n * ((others - others.mean()) ** 2).sum()))  # Student, 15 degrees of freedom
    return [round(x, 5) for x in (value, value - half, value + half)]


def measured(condition: Condition, steps: int, num_networks: int, start: Tensor, before: Tensor) -> dict[str, Any]:
    """Return the cosines after some steps.

    Args:
        condition: networks and data.
        steps: number of steps.
        num_networks: number of networks.
        start: G_0 of other networks, (groups, D, D).
        before: G_0 of the same networks, (groups, D, D).
    """
    begin = time.perf_counter()
    now = torch.stack([moment(part) for part in halves(condition, steps, num_networks).chunk(GROUPS)])
    images = dataset(condition.data)[0].flatten(1).double()
    data = (images.T @ images / len(images))[None]
    initial = start.mean(0)
    law = (initial @ data[0] @ initial)[None]
    _, vectors = torch.linalg.eigh(now.mean(0))
    leading = vectors.flip(1).T[:LEADING]
    change = now - before
    return {
        **asdict(condition), "steps": steps, "num_networks": num_networks,
        "with G_0": with_jackknife(partial(cosine, second=start), now),
        "with S": with_jackknife(partial(cosine, second=data), now),
        "with G_0 S G_0": with_jackknife(partial(cosine, second=law), now),
        "change with G_0 S G_0": with_jackknife(partial(cosine, second=law), change),
        "change with S": with_jackknife(partial(cosine, second=data), change),
        "growth": round(float(now.mean(0).trace() / before.mean(0).trace()), 4),
        "leading": [[round(127 * float(x / row.abs().max())) for x in row] for row in leading],
        "seconds": round(time.perf_counter() - begin, 1),
    }  # fmt: skip


def run() -> None:
    """Measure the conditions and steps that the file lacks."""
    stored = json.loads(FILE.read_text()) if FILE.exists() else {"rows": []}
    conditions = [Condition(network, data) for data in DATA for network in NETWORKS]
    stored |= {"num_units": sum(len([s for s in STEPS if s <= FEWER.get(c.network, (0, 300))[1]]) for c in conditions)}
    stored["environment"] = environment(torch.device("cpu"))
    for condition in tqdm(conditions, unit="condition"):
        num_networks, last = FEWER.get(condition.network, (NUM_NETWORKS, STEPS[-1]))
        done = {row["steps"] for row in stored["rows"] if Condition(row["network"], row["data"]) == condition}
        left = [steps for steps in STEPS if steps <= last and steps not in done]
        if not left:
            continue
        # Untrained networks are cheap: four times as many, of another seed, for the products with G_0.
        start, before = (
            torch.stack([moment(part) for part in halves(condition, 0, count, seed).chunk(GROUPS)])
            for count, seed in ((4 * num_networks, 1), (num_networks, 0))
        )
        if condition.network in ISOTROPIC:
            start = torch.eye(DIMENSION, dtype=torch.float64)[None]
        else:
            symmetries = NETWORKS[condition.network].symmetries_at(SIZE, 1)
            start = torch.stack([symmetrize(group, (1, SIZE, SIZE), symmetries) for group in start])
        for steps in left:
            stored["rows"].append(measured(condition, steps, num_networks, start, before))
            write_compact(FILE, stored)


def linear_first_step(second_moment: Tensor, rate: float, hidden: int = 64) -> Tensor:
    """Return the expected change (D, D) of G after one step of a deep linear network, to first order in the rate.

    f(x) = a^T W x with W (h, D) ~ N(0, 1 / D) and a (h) ~ N(0, 1 / h), loss (f(x) - y)^2 / 2 over data with second
    moment S and labels that are as often y as -y. Then beta = W^T a changes by -rate K S beta, K = W^T W + |a|^2 I, and

        E[K S beta beta^T] = ((h + 2) / (h D) + (h + 1) / D^2) S + tr(S) / D^2 I

    from Wick's theorem; the change is -rate times it and its transpose. ``check`` compares it with networks.
    """
    dimension = len(second_moment)
    a2, w2 = 1 / hidden, 1 / dimension
    identity = torch.eye(dimension, dtype=second_moment.dtype)
    # |a|^2 S beta beta^T: E[|a|^2 a a^T] = a2^2 (h + 2) I, so that W^T a a^T W gives h (h + 2) a2^2 w2 S
    learned_first = hidden * (hidden + 2) * a2**2 * w2 * second_moment
    # W^T W S W^T a a^T W with E[a a^T] = a2 I: E[W^T W S W^T W] = w2^2 (h^2 S + h S + h tr(S) I)
    learned_last = a2 * w2**2 * ((hidden**2 + hidden) * second_moment + hidden * second_moment.trace() * identity)
    return -2 * rate * (learned_first + learned_last)


def check(num_networks: int = 20_000, dimension: int = 12, hidden: int = 6, rate: float = 1e-3) -> None:
    """Compare the closed form with networks that take one step of their exact gradient."""
    torch.manual_seed(0)
    factor = torch.randn(dimension, dimension, dtype=torch.float64)
    second_moment = factor @ factor.T / dimension
    first = torch.randn(num_networks, hidden, dimension, dtype=torch.float64) / dimension**0.5
    last = torch.randn(num_networks, hidden, dtype=torch.float64) / hidden**0.5
    beta = torch.einsum("nh,nhd->nd", last, first)
    residual = beta @ second_moment  # gradient of the loss in beta, (n, D)
    new_first = first - rate * last[:, :, None] * residual[:, None]
    new_last = last - rate * torch.einsum("nhd,nd->nh", first, residual)
    after = torch.einsum("nh,nhd->nd", new_last, new_first)
    change = (after.T @ after - beta.T @ beta) / num_networks
    expected = linear_first_step(second_moment, rate, hidden)
    print(f"relative difference {float((change - expected).norm() / expected.norm()):.3f}")
    print(f"cosine {float((change * expected).sum() / change.norm() / expected.norm()):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "check"))
    sys.exit(run() if parser.parse_args().what == "run" else check())
