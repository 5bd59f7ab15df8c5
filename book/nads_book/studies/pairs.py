"""Do NADs rank pairs of an architecture and a data set? Scores from random weights, which are
sealed, then trainings.

The study ``other-data-scores`` computes the scores of all pairs from random networks; they are
committed. Then ``other-data`` trains all pairs; initial weights and batches are the same on every
device. ``other-data-control`` trains the MLP by SGD instead of Adam, whose steps
depend on the basis; it was added after seeing the first results.
``book/preregistered/other_data.toml`` has what was expected, and `pair_statistics` compares.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import nads_core as nc
from nads_book.atlas.entries import ATLAS
from nads_book.atlas.small_networks import Residual
from nads_book.checkout import build_folder
from nads_book.experiments import (
    PHOTO_RECIPE,
    Context,
    Facts,
    FileStudy,
    Row,
    Rows,
    Scored,
    Unit,
    accuracies,
    kept,
    less,
    load_nads,
    load_registered,
    load_study,
    recipe_steps,
    rounded,
    sgd,
)
from nads_book.photos import load_images
from nads_book.studies.definitions import sampled_halves
from nads_book.studies.pair_statistics import judge
from nads_core.directions import NADs
from nads_core.directions.symmetry import symmetrize
from nads_core.kernels import faster_max_pooling
from nads_core.networks.architectures import Architecture
from nads_core.runtime.provenance import canonical, fingerprint
from nads_core.runtime.seeds import seed_sequence, seeded
from nads_core.training import Dataset, Recipe

Shape = tuple[int, ...]  # channels and side of images; channels and length of series

SHAPES: dict[str, Shape] = {
    "cifar10": (3, 32),
    "fashion-mnist": (1, 32),
    "imagenette": (3, 64),
    "mnist1d": (1, 40),
}
NUM_TRAIN = {"cifar10": 10_000, "fashion-mnist": 10_000, "imagenette": 8_000, "mnist1d": 4_000}
NUM_TEST = {"cifar10": 5_000, "fashion-mnist": 5_000, "imagenette": 3_925, "mnist1d": 1_000}
VARIANTS = ("as is", "shuffled", "flipped", "random phases")
SEEDS = (0, 1)
NUM_NETWORKS, GROUPS, NUM_INPUTS = 2_048, 8, 16  # groups of networks, for standard errors
NUM_CLASSES, PARTS = 10, 10  # parts of the images, for standard errors
SCORE_NAMES = (
    "ridge",
    "nearest mean",
    "first step",
    "ratio",
    "lift",
)  # the first is the primary one
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
_PERMUTATION, _PHASES = 17, 18  # seeds


def scratch() -> Path:
    """Return the folder of second moments and other large files, which are made again where they
    are missing.
    """
    return build_folder("other_data")


# --- Networks ---


def conv_series(num_classes: int) -> nn.Module:
    """Return the convolutional network of MNIST-1D: three convolutions of stride 2
    and 25 channels.
    """
    layers: list[nn.Module] = []
    for channels, side in ((1, 5), (25, 3), (25, 3)):
        layers += [nn.Conv1d(channels, 25, side, 2, 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(25 * 5, num_classes))


class RecurrentSeries(nn.Module):
    """The recurrent network of MNIST-1D: a bidirectional GRU of 6 units, all of whose states are
    read.
    """

    def __init__(self, num_classes: int):
        super().__init__()
        self.gru = nn.GRU(1, 6, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(12 * 40, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.gru(x.transpose(1, 2))  # (N, 1, T) -> (N, T, 12)
        return self.linear(states.flatten(1))


def linear_series(num_classes: int) -> nn.Module:
    """Return the linear model of MNIST-1D."""
    return nn.Sequential(nn.Flatten(), nn.Linear(40, num_classes))


def dense_series(num_classes: int) -> nn.Module:
    """Return the MLP of MNIST-1D: two hidden layers of 100, the second with a skip connection."""
    hidden = Residual(nn.Linear(100, 100), nn.ReLU())
    return nn.Sequential(
        nn.Flatten(), nn.Linear(40, 100), nn.ReLU(), hidden, nn.Linear(100, num_classes)
    )


SERIES: dict[str, Callable[[int], nn.Module]] = {
    "linear": linear_series,
    "mlp": dense_series,
    "cnn": conv_series,
    "gru": RecurrentSeries,
}
# Patches are an eighth of the image's side, so that there are 64 tokens at each size.
IMAGES: dict[str, Callable[[int], Architecture]] = {
    "lenet": lambda side: nc.LENET,
    "cnn": lambda side: ATLAS["cnn"].architecture,
    "mlp": lambda side: ATLAS["mlp"].architecture,
    "vit": lambda side: in_patches("vit", side // 8),
    "mixer": lambda side: in_patches("mixer", side // 8),
    "resnet": lambda side: ATLAS["resnet"].architecture,
}
# The first layer of these has independent weights of one symmetric distribution for every number of
# the input, whose order and signs therefore do not matter: C is a multiple of the identity,
# exactly.
ISOTROPIC = ("linear", "mlp")


def in_patches(name: str, patch: int) -> Architecture:
    """Return a network of the atlas on patches, with patches of another side."""
    architecture = ATLAS[name].architecture
    return replace(
        architecture, options=architecture.options | {"patch": patch}, flip_multiple=patch
    )


def architectures(data: str) -> tuple[str, ...]:
    """Return the architectures that are compared on a data set."""
    return tuple(SERIES if len_of(data) == 1 else IMAGES)


def len_of(data: str) -> int:
    """Return 1 for series and 2 for images."""
    return 1 if data == "mnist1d" else 2


def build(data: str, name: str, num_classes: int = NUM_CLASSES) -> nn.Module:
    """Return a new network for a data set; "logreg" is logistic regression, a baseline."""
    channels, side = SHAPES[data]
    if len_of(data) == 1:
        return SERIES[name](num_classes)
    return (nc.LOGREG if name == "logreg" else IMAGES[name](side)).build(
        channels, side, num_classes
    )


def num_parameters(data: str, name: str) -> int:
    """Return the number of parameters of a network for ten classes."""
    return sum(parameter.numel() for parameter in build(data, name).parameters())


# --- Data ---


def exact_photos(data: str, train: bool, count: int) -> nc.ImageSet:
    """Return the first images of a data set.

    Raises:
        ValueError: if there are fewer, or of another shape.
    """
    channels, size = SHAPES[data]
    loaded = load_images(data, train=train, num_images=count, size=size, progress=False)
    wanted, found = (count, channels, size, size), tuple(loaded.images.shape)
    if found != wanted:
        raise ValueError(f"{data}: images {wanted} needed, {loaded.source} has {found}")
    return loaded


@lru_cache(maxsize=1)
def upright(data: str) -> tuple[Dataset, Dataset, str]:
    """Return the training and the test part of a data set, each channel standardised in training,
    and their source.
    """
    if len_of(data) == 1:
        from nads_book.mnist1d import load_mnist1d  # which needs the authors' package

        parts = [load_mnist1d(train=train) for train in (True, False)]
    else:
        counts = ((True, NUM_TRAIN[data]), (False, NUM_TEST[data]))
        parts = [exact_photos(data, train, count) for train, count in counts]
    first = parts[0].images.transpose(0, 1).flatten(1)  # (C, N D)
    mean, std = (value.view(-1, *[1] * len_of(data)) for value in (first.mean(1), first.std(1)))
    train, test = (((part.images - mean) / std, part.labels) for part in parts)
    return train, test, parts[0].source


def permutation(size: int) -> Tensor:
    """Return the permutation of all positions, (size,), the same for every channel and image."""
    return torch.randperm(
        size, generator=torch.Generator().manual_seed(seed_sequence(_PERMUTATION, size))
    )


def random_phases(images: Tensor) -> Tensor:
    """Add a random phase to each frequency of images (N, C, H, W), the same for all images and
    channels.

    This is a convolution with a fixed filter that lets every frequency pass: it is orthogonal,
    keeps the power spectrum of all images, and commutes with shifts.
    """
    side = images.shape[-1]
    generator = torch.Generator().manual_seed(seed_sequence(_PHASES, side))
    noise = torch.fft.rfft2(torch.randn(side, side, generator=generator))  # of a real filter
    return torch.fft.irfft2(torch.fft.rfft2(images) * noise / noise.abs(), s=(side, side))


@lru_cache
def flipping_nads(side: int) -> NADs:
    """Return the NADs whose order "flipped" reverses: LeNet's, whatever architecture is trained,
    for one channel.
    """
    if side == 32:
        return load_nads("lenet", 2).complete_basis()
    path = scratch() / f"lenet-{side}.npz"
    if not path.exists():
        nc.compute_nads(
            nc.LENET,
            NUM_NETWORKS,
            image_shape=(1, side, side),
            seed=0,
            device="cpu",
            progress=False,
        ).save(path)
    return NADs.load(path).complete_basis()


def changed(inputs: Tensor, variant: str) -> Tensor:
    """Return a variant of normalised inputs, (N, C, H, W) or (N, C, T); all variants keep lengths
    and angles.
    """
    if variant == "shuffled":
        flat = inputs.flatten(2)
        return flat[..., permutation(flat.shape[2])].view_as(inputs)
    if variant == "flipped":
        return nc.flip(inputs, flipping_nads(inputs.shape[-1]))
    return random_phases(inputs) if variant == "random phases" else inputs


def smoothness(inputs: Tensor) -> float:
    """Return the share of the variance at frequencies of at most 1/8 cycle per pixel."""
    waves = torch.fft.fftn(inputs - inputs.mean(0), dim=tuple(range(2, inputs.dim())))
    energy = waves.abs().square().sum((0, 1))  # (H, W) or (T,)
    squares = sum(
        f.square() for f in torch.meshgrid(*map(torch.fft.fftfreq, energy.shape), indexing="ij")
    )
    return float(energy[squares <= 1 / 64].sum() / energy.sum())


# --- Scores ---


def second_moments(data: str, name: str) -> Tensor:
    """Return C of one channel, (G, D, D), from G groups of random networks, without the noise of
    the inputs.

    A random network does not change in distribution when the signs of one channel's first weights
    change, or channels are exchanged. So C of all channels consists of equal blocks, one per
    channel, which are averaged.
    """
    channels, side = SHAPES[data]
    size = side ** len_of(data)
    if name in ISOTROPIC:
        return torch.eye(size).expand(2, size, size)  # without error
    shape = (channels, *[side] * len_of(data))
    factory, count = partial(build, data, name, 1), NUM_NETWORKS // GROUPS

    def moments_of(group: int) -> Tensor:
        estimator = nc.SmoothedGradient(NUM_INPUTS)
        halves = sampled_halves(factory, shape, estimator, count, group)
        x, y = halves.view(-1, 2, channels, size).movedim(1, 0).flatten(1, 2)  # each (n C, D)
        products = x.T @ y / len(x)
        moments = (products + products.T) / 2
        if len_of(data) == 1:
            return moments
        symmetries = IMAGES[name](side).symmetries_at(side, channels)
        return symmetrize(moments.double(), (1, side, side), symmetries).float()

    path = scratch() / f"{name}-{'x'.join(map(str, shape))}-{NUM_NETWORKS}.pt"
    found: Tensor = kept(path, lambda: torch.stack([moments_of(g) for g in range(GROUPS)]))
    return found


def parts_of(labels: Tensor, number: int) -> Tensor:
    """Return the part of each input, (N,), of ``number`` parts that have every class as often as
    possible.
    """
    parts = torch.empty(len(labels), dtype=torch.long)
    for label in labels.unique():
        members = (labels == label).nonzero()[:, 0]
        parts[members] = torch.arange(len(members)) % number
    return parts


@dataclass
class Moments:
    """What scores need of labelled inputs, from parts of them.

    Args:
        sums: (J, K, C, D) sums over the members of each class in each part.
        sizes: (J, K) numbers of members.
        within: (D, D) covariance within classes, summed over channels.
    """

    sums: Tensor
    sizes: Tensor
    within: Tensor

    @classmethod
    def of(cls, inputs: Tensor, labels: Tensor) -> Self:
        """Return the moments of inputs (N, C, ...) and labels (N,)."""
        flat = inputs.flatten(2)
        key = parts_of(labels, PARTS) * NUM_CLASSES + labels
        sizes = torch.bincount(key, minlength=PARTS * NUM_CLASSES).view(PARTS, NUM_CLASSES)
        sums = torch.zeros(PARTS * NUM_CLASSES, *flat.shape[1:]).index_add_(0, key, flat)
        sums = sums.unflatten(0, (PARTS, NUM_CLASSES))
        means = sums.sum(0) / sizes.sum(0)[:, None, None]
        residuals = (flat - means[labels]).flatten(0, 1)  # (N C, D)
        return cls(sums, sizes, residuals.T @ residuals / (len(flat) - NUM_CLASSES))

    def between(self, moment: Tensor, left_out: int | None = None) -> float:
        """Return tr(C B), with B the covariance of class means, less what means of random classes
        would give.
        """
        chosen = [part for part in range(PARTS) if part != left_out]
        sizes = self.sizes[chosen].sum(0)
        means = self.sums[chosen].sum(0) / sizes[:, None, None]  # (K, C, D)
        rows = (means - means.mean(0)).flatten(0, 1)
        seen = float((rows @ moment * rows).sum()) / (NUM_CLASSES - 1)
        return seen - float((1 / sizes).mean()) * float((moment * self.within).sum())


def votes(moment: Tensor, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Return which inputs are classified correctly without training, (N,), by classes' means in the
    metric C.

    One gradient step from small outputs moves the logit of class k along C m_k, with m_k the mean
    of the class less that of all. "first step" takes the largest x'C m_k. "nearest mean" takes the
    nearest mean in the metric C: the same directions, with thresholds midway between means. Means
    are those of the other half of the inputs.
    """
    flat = inputs.flatten(2)
    halves = parts_of(labels, 2)
    right = {name: torch.zeros(len(flat), dtype=torch.bool) for name in SCORE_NAMES[1:3]}
    for half in (0, 1):
        others, members = halves != half, halves == half
        means = torch.stack([flat[others & (labels == k)].mean(0) for k in range(NUM_CLASSES)])
        centre = means.mean(0)  # (C, D)
        steps = (means - centre) @ moment  # (K, C, D)
        logits = flat[members].flatten(1) @ steps.flatten(1).T  # (n, K)
        thresholds = ((means + centre) / 2 * steps).sum((1, 2))
        right["first step"][members] = logits.argmax(1) == labels[members]
        right["nearest mean"][members] = (logits - thresholds).argmax(1) == labels[members]
    return right


def ridge_accuracies(
    moment: Tensor, inputs: Tensor, labels: Tensor, penalties: Sequence[float]
) -> list[float]:
    """Return the accuracies of linear classifiers with prior covariance C of their weights, one for
    each penalty.

    It is where first steps along C lead if they are repeated: kernel ridge regression of the
    classes with the kernel x'C x', the means removed, fitted to one half of the inputs and tested
    on the other, both ways. Penalties are in units of the mean of the kernel's diagonal.
    """
    flat, halves = inputs.flatten(2), parts_of(labels, 2)
    right = torch.zeros(len(penalties))
    for half in (0, 1):
        fit, test = (flat[halves == which] for which in (1 - half, half))
        mean = fit.mean(0)
        fit, test = fit - mean, (test - mean).flatten(1)
        mapped = (fit @ moment).flatten(1).T  # (C D, n)
        kernel = fit.flatten(1) @ mapped
        across = test @ mapped
        targets = F.one_hot(labels[halves != half], NUM_CLASSES).float()
        offset = targets.mean(0)
        scale = kernel.diagonal().mean()
        for place, penalty in enumerate(penalties):
            factor = torch.linalg.cholesky(kernel + penalty * scale * torch.eye(len(kernel)))
            predicted = across @ torch.cholesky_solve(targets - offset, factor) + offset
            right[place] += (predicted.argmax(1) == labels[halves == half]).sum()
    return (right / len(flat)).tolist()


def priors(groups: Tensor) -> list[Tensor]:
    """Return C of all networks, and of half of them, without the negative eigenvalues that noise
    causes.
    """
    found = []
    for count in (len(groups), len(groups) // 2):
        values, vectors = torch.linalg.eigh(groups[:count].mean(0))
        found.append((vectors * values.clamp(min=0)) @ vectors.T)
    return found


def ridge(metrics: Sequence[Tensor], inputs: Tensor, labels: Tensor) -> list[float]:
    """Return the accuracy with the best of the penalties, its standard error, and the same from
    half of the networks.

    The difference of the two has the variance that the number of networks causes in the first.
    """
    values = ridge_accuracies(metrics[0], inputs, labels, PENALTIES)
    best = max(range(len(values)), key=values.__getitem__)
    (half,) = ridge_accuracies(metrics[1], inputs, labels, PENALTIES[best : best + 1])
    p = values[best]
    return [p, math.hypot(math.sqrt(p * (1 - p) / len(labels)), p - half), half]


def jackknife(values: Tensor) -> Tensor:
    """Return standard errors (n,) from values (J, n) with one of J parts left out each."""
    return ((len(values) - 1) * values.var(0, correction=0)).sqrt()


def scores_of(
    groups: Tensor, metrics: Sequence[Tensor], inputs: Tensor, labels: Tensor
) -> dict[str, list[float]]:
    """Return the scores of random networks for training inputs, each with its standard error.

    ``ratio`` is tr(C B) / tr(C W) with the covariances B between and W within classes; ``lift`` is
    tr(C B) D / (tr C tr B); the others are accuracies, see `ridge` and `votes`. Errors are of
    networks and of images. The third number is the score from half of the networks: it says how far
    accuracies depend on their number.

    Args:
        groups: C of groups of networks, (G, D, D).
        metrics: matrices that `priors` makes of them.
        inputs: (N, C, ...).
        labels: (N,).
    """
    data, eye = Moments.of(inputs, labels), torch.eye(groups.shape[1])
    total, count = groups.sum(0), len(groups)
    without = [(total - group) / (count - 1) for group in groups]

    def traces(moment: Tensor, left_out: int | None = None) -> Tensor:
        between = data.between(moment, left_out)
        free = float(moment.trace()) * data.between(eye, left_out) / len(eye)
        return torch.tensor([between / float((moment * data.within).sum()), between / free])

    def all_scores(moment: Tensor) -> Tensor:
        """Return them in the order of `SCORE_NAMES`, without the first."""
        right = votes(moment, inputs, labels).values()
        shares = torch.stack([each.double().mean() for each in right])
        return torch.cat([shares, traces(moment)])

    value, half = all_scores(total / count), all_scores(groups[: count // 2].mean(0))
    of_networks = torch.stack([all_scores(moment) for moment in without])
    of_images = torch.stack([traces(total / count, part) for part in range(PARTS)])
    binomial = (value[:2] * (1 - value[:2]) / len(labels)).sqrt()  # of both accuracies
    image_errors = torch.cat([binomial, jackknife(of_images)])
    errors = torch.hypot(jackknife(of_networks), image_errors)
    others = torch.stack([value, errors, half], 1).tolist()
    found = zip(SCORE_NAMES, [ridge(metrics, inputs, labels), *others], strict=True)
    return rounded(dict(found), 5, significant=True)


def variants(data: str) -> tuple[str, ...]:
    """Return the variants of a data set."""
    return VARIANTS if len_of(data) == 2 else VARIANTS[:2]


class PairScores(FileStudy):
    """Scores of all pairs of an architecture and a data set from random networks,
    which are sealed.
    """

    name = "other-data-scores"
    on_photos = True
    constants = {
        "num_networks": NUM_NETWORKS,
        "num_inputs": NUM_INPUTS,
        "num_train": NUM_TRAIN,
        "names": list(SCORE_NAMES),
    }

    def units(self) -> list[Unit]:
        return [
            {"data": data, "variant": variant, "architecture": name}
            for data in SHAPES
            for name in architectures(data)
            for variant in variants(data)
        ]

    run_many = FileStudy.run_in_turn  # each architecture's second moments are computed once

    def run(self, unit: Unit, context: Context) -> Row:
        data, name = unit["data"], unit["architecture"]
        groups, metrics = moments_and_priors(data, name)
        train, _, source = upright(data)
        inputs = changed(train[0], unit["variant"])
        return {
            "parameters": num_parameters(data, name),
            "smoothness": round(smoothness(inputs), 5),
            "scores": scores_of(groups, metrics, inputs, train[1]),
            "source": source,
        }


@lru_cache(maxsize=1)
def moments_and_priors(data: str, name: str) -> tuple[Tensor, list[Tensor]]:
    """Return C of groups of random networks, and what `priors` makes of it."""
    groups = second_moments(data, name)
    return groups, priors(groups)


def fingerprint_of(rows: Rows) -> str:
    """Return the fingerprint of scores."""
    return fingerprint(canonical([less(row, "run", "source") for row in rows]))


def sealed_scores() -> Facts:
    """Return the content of the file of scores.

    Raises:
        ValueError: if they are not complete, or not those that were sealed before the first
            training.
    """
    content: Facts = load_study(PairScores.file)
    PairScores().require_complete(content["rows"])
    sealed = load_registered("other_data")["sealed"]["scores"]
    if (found := fingerprint_of(content["rows"])) != sealed:
        raise ValueError(
            f"the scores have the fingerprint {found}, but {sealed!r} is sealed: restore them"
        )
    return content


# --- Trainings ---


SGD = PHOTO_RECIPE
ADAM = Recipe(epochs=10, learning_rate=1e-3)
PUBLISHED = Recipe(
    epochs=150, learning_rate=1e-2, batch_size=100
)  # of MNIST-1D: Adam at a constant rate, 6,000 steps
BY_SGD = ("lenet", "cnn", "resnet", "logreg")  # of images


def train_unit(unit: Unit, by_sgd: Sequence[str], device: torch.device) -> Row:
    """Train one network and return what it reaches.

    First weights and batches are the same for all variants of a data set, and others for each seed.

    Args:
        unit: description of the training.
        by_sgd: architectures that are trained by SGD on images, the others by Adam.
        device: device that trains the network; initial weights are drawn on the CPU.
    """
    torch.backends.cudnn.allow_tf32 = False  # full float32 precision, as on a CPU
    *parts, source = upright(unit["data"])
    train, test = ((changed(inputs, unit["variant"]), labels) for inputs, labels in parts)
    names = [*IMAGES, *SERIES, "logreg"]
    own = seed_sequence(
        unit["seed"], names.index(unit["architecture"]), list(SHAPES).index(unit["data"]), 13
    )
    with seeded(own):
        network = faster_max_pooling(build(unit["data"], unit["architecture"])).to(device)
    series = len_of(unit["data"]) == 1
    adam = series or unit["architecture"] not in by_sgd
    recipe = PUBLISHED if series else ADAM if adam else SGD
    optimiser = torch.optim.Adam(network.parameters()) if adam else sgd(network, recipe)
    data = (train[0].to(device), train[1].to(device))
    seed = own % 2**31
    for loss in recipe_steps(network.train(), data, optimiser, recipe, seed, constant=series):
        last = loss
    if not math.isfinite(last.item()):
        raise ValueError(f"the training diverged: its last loss is {last.item()}")
    return accuracies(network, train, test) | {"source": source}


class PairTrainings(FileStudy):
    """Do NADs rank pairs of an architecture and a data set? See ``other_data.toml``."""

    name = "other-data"
    needs = ("other-data-scores",)
    on_photos = True

    def units(self) -> list[Unit]:
        """Return the whole design with the first seed, then with the second."""
        return [
            {"data": data, "variant": variant, "architecture": name, "seed": seed}
            for seed in SEEDS
            for data in SHAPES
            for variant in variants(data)
            for name in (*architectures(data), *(["logreg"] if len_of(data) == 2 else []))
        ]

    def facts(self) -> Facts:
        sealed = load_registered("other_data")["sealed"]["scores"]
        return {"scores": sealed, "num_train": NUM_TRAIN, "num_test": NUM_TEST}

    def prepare(self, units: Sequence[Unit]) -> None:
        """Check the seal, and make the NADs that processes need.

        Raises:
            ValueError: if the scores are not those that were sealed before the first training.
        """
        sealed_scores()
        for side in {SHAPES[unit["data"]][1] for unit in units if unit["variant"] == "flipped"}:
            flipping_nads(side)

    def run(self, unit: Unit, context: Context) -> Row:
        return train_unit(unit, BY_SGD, context.device)

    def score(self, rows: Rows) -> Scored:
        """Apply the registered criteria, see `judge`."""
        self.require_complete(rows)
        return judge(sealed_scores(), rows)


class PairControl(FileStudy):
    """Is it the optimiser that makes the MLP's accuracy depend on the basis of its inputs? Added
    afterwards.
    """

    name = "other-data-control"
    design = {
        "data": ("cifar10", "fashion-mnist"),
        "variant": VARIANTS,
        "architecture": ["mlp"],
        "seed": SEEDS,
    }
    on_photos = True

    def run(self, unit: Unit, context: Context) -> Row:
        return train_unit(unit, ["mlp"], context.device)
