"""How NADs change while networks train: the second moment G_t of trained networks' gradients, at
chosen steps.

``book/preregistered/geometry.toml`` has what was expected. In the first result the noise of labels
hid the sign of LeNet's first change: steps with opposite labels (``first-steps.json``) and then
exact derivatives (`exact_first_step`) computed it without them.

Later work (arXiv 2410.12025) says that training begins to move G along G_0 S G_0, where S is the
second moment of the data. So cosines of matrices are stored, <A, B> / |A| |B| with <A, B> = tr(A
B): of G_t with G_0 and with S, and of the change G_t - G_0 with G_0 S G_0 and with three simpler
matrices. Products are unbiased: of matrices of different networks, or of different inputs.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

import nads_core as nc
from nads_book.atlas.entries import ATLAS
from nads_book.experiments import (
    Context,
    Facts,
    Row,
    Study,
    Unit,
)
from nads_book.photos import load_images
from nads_core.directions.symmetry import symmetrize
from nads_core.kernels import faster_layers
from nads_core.networks.architectures import Architecture
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training import Dataset, training_steps

SIZE, DIMENSION, NUM_IMAGES, NUM_INPUTS = 32, 1_024, 4_000, 16
RATE, MOMENTUM, BATCH = 0.01, 0.9, 128  # at a rate of .1 linear networks diverge on photos
SMALL_RATE, SMALL_BATCH = 0.0002, 512  # of the one step that stands for the derivative at the start
STEPS = (1, 3, 10, 30, 100, 300, 1_000)
ANIMALS = torch.tensor([2, 3, 4, 5, 6, 7])  # labels of CIFAR-10
GROUPS = 16  # of networks, for the jackknife
SUBSETS = np.vstack([np.ones(GROUPS), 1 - np.eye(GROUPS)])  # of groups: all, and all but each
LEADING = 4  # directions whose pictures are stored


class Linear(nn.Module):
    """Two linear layers without biases, f(x) = a^T W x, with W ~ N(0, 1 / D) and a ~ N(0, 1 / h), h
    = 64.
    """

    def __init__(self, in_channels: int, image_size: int, num_classes: int, hidden: int = 64):
        super().__init__()
        dimension = in_channels * image_size**2
        self.first = nn.Parameter(torch.randn(hidden, dimension) / dimension**0.5)
        self.last = nn.Parameter(torch.randn(num_classes, hidden) / hidden**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return f(x), (N, num_classes)."""
        return x.flatten(1) @ self.first.T @ self.last.T


@dataclass(frozen=True)
class Size:
    """How many networks of one architecture: as many as a few core-hours allow.

    Args:
        architecture: architecture of the networks.
        early: number of networks that take ``EARLY`` steps; what changes first is small beside what
            networks differ in.
        late: number of those that go on to the ``last`` step.
        last: number of steps.
        untrained: number of other networks, for the products with G_0; 0 where it is known to be
            the identity.
    """

    architecture: Architecture
    early: int
    late: int
    last: int
    untrained: int


EARLY = 10
NETWORKS = {
    "lenet": Size(nc.LENET, 1_024, 64, 1_000, 4_096),
    "cnn": Size(ATLAS["cnn"].architecture, 512, 96, 100, 4_096),
    # Independent first weights of one variance: G_0 = c I.
    "mlp": Size(ATLAS["mlp"].architecture, 1_024, 128, 1_000, 0),
    "linear": Size(Architecture("linear", Linear), 1_024, 128, 1_000, 0),
    # A quarter of the width, with batch norm, and without.
    "resnet": Size(ATLAS["resnet"].architecture, 64, 64, 30, 512),
    "resnet-nonorm": Size(ATLAS["resnet-nonorm"].architecture, 64, 64, 30, 512),
}
DATA = ("photos", "random labels", "learned wave", "wave in the middle")


def photos() -> tuple[Tensor, Tensor]:
    """Return grey photos of CIFAR-10 with mean 0 and variance 1, (N, 1, 32, 32), and whether they
    show an animal.
    """
    loaded = load_images("cifar10", num_images=NUM_IMAGES)
    grey = loaded.images.mean(1, keepdim=True)
    return (grey - grey.mean()) / grey.std(), torch.isin(loaded.labels, ANIMALS).long()


def dataset(data: str) -> tuple[Tensor, Tensor]:
    """Return the images and labels of a condition; those of "random labels" are replaced for each
    network.
    """
    if data in ("learned wave", "wave in the middle"):
        wave = nc.fourier_direction((0, 4) if data == "learned wave" else (4, 10), size=SIZE)
        return nc.separable_dataset(wave, NUM_IMAGES, noise_std=1.0, seed=7)
    return photos()


def input_gradients(network: nn.Module, inputs: Tensor, images: Tensor) -> Tensor:
    """Return the gradients of the difference of two logits, each a mean over half of the inputs:
    (2, D).

    Batch norm uses the statistics of ``images``, at the start as after training: running means
    would lag behind.
    """
    norms = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d)]
    for layer in norms:
        layer.reset_running_stats()
        layer.momentum = None  # the mean over all batches, here one
    with torch.no_grad():
        if norms:
            network.train()(images)
    x = inputs.flatten(0, 1).requires_grad_()
    logits = network.eval()(x)
    (gradients,) = torch.autograd.grad((logits[:, 1] - logits[:, 0]).sum(), x)
    network.train()
    return gradients.unflatten(0, inputs.shape[:2]).mean(1).flatten(1)


def built(network: str, identity: int) -> nn.Module:
    """Return a network in training mode; its weights are the same for all data."""
    with seeded(seed_sequence(identity, 0)):
        return NETWORKS[network].architecture.build(1, SIZE, 2).train()


def inputs_of(identity: int) -> tuple[Tensor, torch.Generator]:
    """Return the inputs of a network's gradients, (2, n, 1, H, H), and the generator
    of all else.
    """
    generator = torch.Generator().manual_seed(seed_sequence(identity, 1))
    return torch.randn(2, NUM_INPUTS, 1, SIZE, SIZE, generator=generator), generator


def trajectory(
    network: str, images: Tensor, labels: Tensor | None, identity: int, steps: int
) -> tuple[Tensor, Tensor]:
    """Return a network's gradients (times, 2, D) and training accuracies (times,), as it trains.

    The times are the start, one small step from it, and those of ``STEPS``.

    Args:
        network: name in ``NETWORKS``.
        images: (N, 1, 32, 32).
        labels: (N,), or None for random ones of each network's own.
        identity: seed of weights, inputs, batches and random labels. Weights and inputs are the
            same for all data.
        steps: last step; 0 returns the start alone.
    """
    inputs, generator = inputs_of(identity)
    if labels is None:
        labels = torch.randint(2, images.shape[:1], generator=generator)

    def begin(rate: float) -> tuple[nn.Module, torch.optim.Optimizer]:
        model = faster_layers(built(network, identity), convolutions=False)
        return model, torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM)

    few, data = images[:SMALL_BATCH], (images, labels)
    times, accuracies = list[Tensor](), list[Tensor]()

    def look(model: nn.Module) -> None:
        times.append(input_gradients(model, inputs, few))
        with torch.no_grad():
            accuracies.append((model.eval()(few).argmax(1) == labels[:SMALL_BATCH]).float().mean())
        model.train()

    start = begin(RATE)
    look(start[0])
    if steps:
        other = begin(SMALL_RATE)
        for _ in numbered_steps(*other, data, [SMALL_BATCH], generator):
            look(other[0])
    for step in numbered_steps(*start, data, [BATCH] * steps, generator):
        if step in STEPS:
            look(start[0])
    return torch.stack(times), torch.stack(accuracies)


def numbered_steps(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    data: Dataset,
    sizes: Sequence[int],
    generator: torch.Generator,
    clip_norm: float = math.inf,
) -> Iterator[int]:
    """Train on batches of some sizes, drawn again from all data, and yield the number of each step
    after it.
    """
    drawn = (torch.randint(len(data[0]), (size,), generator=generator) for size in sizes)
    steps = training_steps(model, data, optimiser, drawn, clip_norm=clip_norm)
    for number, _ in enumerate(steps, 1):
        yield number


def moment(gradients: Tensor) -> Tensor:
    """Return the second moment (D, D) without the noise of inputs, from halves (n, 2, D)."""
    products = gradients[:, 0].double().T @ gradients[:, 1].double()
    return (products + products.T) / (2 * len(gradients))


def moments_of(gradients: Tensor) -> Tensor:
    """Return the second moments of `GROUPS` groups of networks, (groups, D, D), from halves (n, 2,
    D).
    """
    return torch.stack([moment(part) for part in gradients.chunk(GROUPS)])


def over_groups(values: Tensor) -> np.ndarray:
    """Return the mean of values (groups,) over all groups, and over all but each, (1 + groups,)."""
    return SUBSETS @ values.double().numpy() / SUBSETS.sum(1)


def with_jackknife(values: np.ndarray) -> list[float | None]:
    """Return a number with its 95 % interval, from that of all groups and those of all but each,
    (1 + groups,).
    """
    half = 2.131 * np.sqrt((GROUPS - 1) * values[1:].var())  # Student, 15 degrees of freedom
    ends = values[0] + half * np.array([0, -1, 1])
    return [None if np.isnan(x) else float(f"{x:.6g}") for x in ends]


def growth(after: Tensor, before: Tensor) -> list[float | None]:
    """Return the trace of matrices (groups, D, D) relative to that of others, with its interval."""
    traces = [over_groups(stack.diagonal(dim1=1, dim2=2).sum(1)) for stack in (after, before)]
    return with_jackknife(traces[0] / traces[1])


def squared_norms(matrices: Tensor) -> np.ndarray:
    """Return the squared norm of the mean of independent matrices (groups, D, D) over all groups,
    and over all but each, (1 + groups,).

    It is a mean of products of different groups, so that sampling does not enlarge it. One matrix,
    (1, D, D), is taken as exact.
    """
    flat = matrices.flatten(1)
    products = (flat @ flat.T).numpy()
    if len(products) == 1:
        return products[0]
    count = SUBSETS.sum(1)
    total = (SUBSETS @ products * SUBSETS).sum(1) - SUBSETS @ products.diagonal()
    return total / (count * (count - 1))


def cosine(stack: Tensor, law: Tensor) -> np.ndarray:
    """Return the cosine of the mean of matrices and of that of a law, (groups, D, D) each, over all
    groups of the first, and over all but each, (1 + groups,); NaN if a norm cannot be distinguished
    from 0.
    """
    products = over_groups(stack.flatten(1) @ law.mean(0).flatten())
    square = squared_norms(stack) * squared_norms(law)[0]
    return products / np.sqrt(np.where(square > 0, square, np.nan))


def compared(stack: Tensor, laws: dict[str, Tensor]) -> Facts:
    """Return how a stack's mean (D, D) agrees with each law, with intervals.

    ``cosine`` and ``law ahead``, how far G_0 S G_0 is ahead of the others in size, are None unless
    the interval of the mean's squared norm excludes zero: a ratio with a denominator near zero has
    no valid interval.
    """
    first = "G_0 S G_0"
    share = squared_norms(stack) / float(stack.square().sum())
    low = with_jackknife(share)[1]
    known = 1 if low is not None and low > 0 else np.nan
    cosines = {name: known * cosine(stack, law) for name, law in laws.items()}
    ahead = {name: np.abs(cosines[first]) - np.abs(one) for name, one in cosines.items()}
    return {
        "cosine": {name: with_jackknife(one) for name, one in cosines.items()},
        "law ahead": {name: with_jackknife(ahead[name]) for name in laws if name != first},
    }


def laws_of(data: str, start: Tensor) -> dict[str, Tensor]:
    """Return `laws_of_images` for one of `DATA`. Random labels have no signal."""
    laws = laws_of_images(*dataset(data), start)
    without = ("class means", "signal") if data == "random labels" else ()
    return {name: law for name, law in laws.items() if name not in without}


def laws_of_images(images: Tensor, labels: Tensor, start: Tensor) -> dict[str, Tensor]:
    """Return the matrices that changes are compared with, each (groups, D, D) with independent
    groups, or one.

    ``signal`` is s s', s = G_0 E[y x]; ``class means`` the same without G_0; ``first of law`` v v',
    v the leading eigenvector of G_0 S G_0, a matrix of rank one that knows no labels.
    """
    x = images.flatten(1).double()
    second_moment, initial = x.T @ x / len(x), start.mean(0)
    law = initial @ second_moment @ initial
    leading = torch.linalg.eigh(law)[1][:, -1]
    means = (x * (2 * labels[:, None] - 1)).mean(0)
    signal = initial @ means
    laws = {
        "G_0 S G_0": law,
        "S": second_moment,
        "first of law": torch.outer(leading, leading),
        "class means": torch.outer(means, means),
        "signal": torch.outer(signal, signal),
    }
    return {name: law[None] for name, law in laws.items()} | {"G_0": start}


def followed(
    network: str, data: str, identities: range, steps: int, context: Context
) -> tuple[Tensor, Tensor]:
    """Return the gradients (n, times, 2, D) and accuracies (n, times) of several networks; see
    `trajectory`.
    """

    def compute() -> tuple[Tensor, ...]:
        images, labels = dataset(data)
        given = images, None if data == "random labels" else labels
        found = [trajectory(network, *given, identity, steps) for identity in identities]
        return tuple(map(torch.stack, zip(*found, strict=True)))

    name = f"{network}, {data}, {identities.start}, {len(identities)}, {steps}"
    gradients, accuracies = context.kept(name, compute)
    return gradients, accuracies


def initial(network: str, data: str, context: Context) -> Tensor:
    """Return G_0 of other networks, (groups, D, D), or the identity where it is known
    to be that.
    """
    size = NETWORKS[network]
    if not size.untrained:
        return torch.eye(DIMENSION, dtype=torch.float64)[None]
    if data == "random labels" or network != "resnet":
        data = "photos"  # the images count for batch norm alone
    others = followed(network, data, range(10**6, 10**6 + size.untrained), 0, context)[0][:, 0]
    symmetries = size.architecture.symmetries_at(SIZE, 1)
    return torch.stack([symmetrize(one, (1, SIZE, SIZE), symmetries) for one in moments_of(others)])


class Geometry(Study):
    """How do NADs change while networks train? See ``geometry.toml``."""

    name = "geometry"
    size = "paper"
    on_gpu = False
    many_rows = True
    on_photos = True

    design = {"network": NETWORKS, "data": DATA}
    constants = {"steps": list(STEPS)}

    def run(self, unit: Unit, context: Context) -> list[Row]:
        network, data = unit["network"], unit["data"]
        size = NETWORKS[network]
        late = followed(network, data, range(size.late), size.last, context)
        early = tuple(one[:0] for one in late)
        if more := range(size.late, size.early):
            early = followed(network, data, more, EARLY, context)
        gradients, accuracies = (
            [torch.cat([a[:, t], *b[:, t : t + 1].unbind(1)]) for t in range(a.shape[1])]
            for a, b in zip(late, early, strict=True)
        )
        laws = laws_of(data, initial(network, data, context))
        times = [0, "small", *(step for step in STEPS if step <= size.last)]
        rows = []
        for step, after, accuracy in zip(times, gradients, accuracies, strict=True):
            before, now = moments_of(gradients[0][: len(after)]), moments_of(after)
            leading = torch.linalg.eigh(now.mean(0))[1].flip(1).T[:LEADING]
            pictures = 127 * leading / leading.abs().amax(1, keepdim=True)
            row = {"network": network, "data": data, "step": step, "num_networks": len(after)}
            row |= {
                "accuracy": with_jackknife(over_groups(accuracy.view(GROUPS, -1).mean(1))),
                "growth": growth(now, before),
                "moment": compared(now, laws),
                "change": compared(now - before, laws) if step != 0 else None,
                "leading": pictures.round().int().tolist(),
            }
            rows.append(row)
        return rows
