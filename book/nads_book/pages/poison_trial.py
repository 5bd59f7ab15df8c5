"""The reader's run in ``07_poison``: photos, NADs, a network, and a line that says what trainings take."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import nads_core as nc
from nads_book import figures
from nads_book.experiments import formatting, load_nads
from nads_book.pages.parameters import check_parameters, choose_network, choose_preset
from nads_book.photos import load_images
from nads_core.data.poisoning import carriers
from nads_core.networks.architectures import ARCHITECTURES, Architecture
from nads_core.runtime.processes import num_cores
from nads_core.runtime.threads import one_thread

# Training photos, test photos and epochs. `gpu` is what auto becomes on a GPU: all photos, and more
# epochs than demo; `paper` has the paper's 50.
SIZES = {
    "smoke": (200, 100, 1),
    "demo": (8_000, 2_000, 6),
    "gpu": (50_000, 10_000, 10),
    "paper": (50_000, 10_000, 50),
}
LAST = 1022  # four of the ten classes use the next NAD
_LONG = 1.0  # seconds of a batch, from which on no more than one is timed
_WORTH = 5.0  # seconds of a training, from which on processes pay for their start


class Trial:
    """Photos, NADs and a network, as the parameters of the chapter name them.

    Args:
        preset: key of `SIZES`, or "auto": "gpu" on a GPU, otherwise "demo".
        architecture: one of the paper's, or "module:function", a function without
            arguments that returns a new network for 3 x 32 x 32 with an output for each class.
        index: NAD that carries the label, from 0 to 1022.
        strength: size of the hidden number, in units of a pixel in [0, 1].
        seed: seed of photos, weights and batches.
        nads_of: owner of the NADs: "auto", an architecture, or a file that `NADs.save` wrote.
            "auto" are those of ``architecture`` if they ship with the library, otherwise LeNet's.
        dataset: "auto", "cifar10" or "generated".
        data_root: folder with the photos; that of ``NADS_DATA`` by default.

    Attributes:
        train, test: photos.
        nads: NADs.
        build: function that returns a new network.
        recipe: recipe of the trainings.
        seconds: estimate of what one training takes.
        workers: number of trainings at once, each in a process on one core.

    Raises:
        ValueError: for a parameter that cannot be used, or a network that does not fit.
        DatasetNotFoundError: for photos that are not there.
    """

    def __init__(
        self,
        preset: str = "auto",
        architecture: str = "lenet",
        index: int = 0,
        strength: float = 0.05,
        *,
        seed: int = 0,
        nads_of: str = "auto",
        dataset: str = "auto",
        data_root: str | os.PathLike[str] | None = None,
    ) -> None:
        check_parameters(
            preset=preset,
            seed=seed,
            index=index,
            last_index=LAST,
            strength=strength,
            dataset=dataset,
            data_root=data_root,
        )
        preset = choose_preset(preset, gpu="gpu", presets=tuple(SIZES))
        network = choose_network(architecture, "smoke" if preset == "smoke" else "paper")
        self.label, self.index, self.strength, self.seed = architecture, index, strength, seed
        self.nads = _load_nads(nads_of, architecture)
        num_train, num_test, epochs = SIZES[preset]
        if preset in ("gpu", "paper") and dataset == "auto":
            dataset = "cifar10"  # nothing stands in for photos there
        load = partial(load_images, dataset, root=data_root, seed=seed, progress=False)
        self.train = load(num_images=num_train)
        self.test = load(train=False, num_images=num_test)
        self.num_classes = len(self.train.class_names)
        self.build: Callable[[], nn.Module] = (
            partial(network.build, 3, 32, self.num_classes)
            if isinstance(network, Architecture)
            else network
        )
        self.recipe = replace(nc.CIFAR10_RECIPE, epochs=epochs)
        _require_fitting(self.build, self.num_classes)
        self.seconds = self.seconds_of_training()
        on_cpu = not torch.cuda.is_available()
        self.workers = num_cores() if on_cpu and self.seconds > _WORTH else 1
        formatting.show_images_used(self.train, self.test)
        formatting.show(self.announcement())

    def announcement(self) -> str:
        """Say what the four trainings of the chapter take on this device: clean, poisoned, hole and
        number.
        """
        on_gpu = torch.cuda.is_available()
        device = torch.cuda.get_device_name() if on_gpu else "the CPU"
        rounds, epochs = -(-4 // self.workers), self.recipe.epochs
        return (
            f"4 trainings of {formatting.LABELS.get(self.label, self.label)}, "
            f"with NADs of {formatting.LABELS.get(self.nads.name, self.nads.name)}, "
            f"{len(self.train):,} photos, {epochs} epoch{'s' * (epochs > 1)}, "
            f"on {device}: **{in_words(rounds * self.seconds)}**. "
            "`preset` sets another size."
        )

    def seconds_of_training(self) -> float:
        """Estimate the seconds of one training, on one core of a CPU, from a few of its steps."""
        batch = self.recipe.batch_size

        def seconds(batches: int) -> float:
            images = torch.rand(batches * batch, 3, 32, 32)
            labels = torch.arange(len(images)) % self.num_classes
            recipe = replace(self.recipe, epochs=1)
            with one_thread():
                found = nc.train_network(
                    self.build(), (images, labels), recipe=recipe, progress=False
                )
            return float(found.seconds)

        once = seconds(1)  # which warms up, too
        batches = 1 if once > _LONG else 8
        per_step = seconds(batches) / batches * 3 / 4  # training accuracy is the rest
        evaluated = (len(self.train) + len(self.test)) / batch / 3
        return per_step * (self.recipe.num_steps(len(self.train)) + evaluated)

    def accuracies(self, versions: Mapping[str, Tensor]) -> dict[str, float]:
        """Train a network on each version of the photos; return accuracies on clean ones.

        Args:
            versions: name -> images (N, 3, H, W), in the order of ``train``.
        """
        trained = nc.train_networks(
            self.build,
            [(nc.normalize(images), self.train.labels) for images in versions.values()],
            [(nc.normalize(self.test.images), self.test.labels)] * len(versions),
            recipe=self.recipe,
            seed=self.seed,
            network_ids=[0] * len(versions),  # the same first weights and batches
            workers=self.workers,
            progress=False,
        )
        assert trained.test_accuracy is not None
        return dict(zip(versions, trained.test_accuracy.tolist(), strict=True))

    def add_number(self, index: int, size: float) -> Tensor:
        """Return the training photos with the number of each class added, and nothing removed.

        Args:
            index: NAD that carries the number.
            size: size of the number.
        """
        images, labels = self.train.images, self.train.labels
        hole = nc.poison(images, labels, self.nads, index, strength=0)
        return images + nc.poison(images, labels, self.nads, index, size) - hole

    def deviation(self, index: int) -> float:
        """Return the standard deviation of the photos' coordinates along a NAD."""
        coordinates = self.train.images.flatten(2) @ self.nads.basis[:, index]
        return float(coordinates.std(0).mean())

    def plot(self, accuracies: Mapping[str, float]) -> Figure:
        """Draw the reader's accuracies."""
        count, badge = len(self.test), formatting.badge(self.train)
        rows = {name: figures.Accuracies([one], count) for name, one in accuracies.items()}
        return figures.plot_accuracies({"your networks": rows}, 10, badge=badge)


def _require_fitting(build: Callable[[], nn.Module], num_classes: int) -> None:
    """Raise a ValueError unless a function returns networks for photos, with an output for each
    class.
    """
    needed = (
        "architecture must name a function without arguments that returns a network "
        f"from 3 × 32 × 32 to {num_classes} outputs"
    )
    try:
        outputs = build().eval()(torch.zeros(2, 3, 32, 32))
    except Exception as error:
        raise ValueError(f"{needed}: {error}") from error
    if not isinstance(outputs, Tensor) or outputs.shape != (2, num_classes):
        found = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ValueError(f"{needed}: for two photos it returned {found}")


def read_classes(images: Tensor, nads: nc.NADs, index: int, strength: float) -> Tensor:
    """Return the class of each poisoned image whose number is closest to its coordinate, (N,).

    Args:
        images: poisoned images (N, C, H, W).
        nads: complete NADs.
        index: NAD that carries the label.
        strength: size of the number.
    """
    coordinates = images.flatten(2) @ nads.basis.to(images)  # (N, C, D)
    distances = [
        (coordinates[:, channel, nad] - sign * strength).abs()
        for nad, channel, sign in carriers(10, index)
    ]
    return torch.stack(distances, 1).argmin(1)


def in_words(seconds: float) -> str:
    """Return a duration as people say it.

    >>> in_words(7), in_words(200), in_words(9000)
    ('about 10 seconds', 'about 3 minutes', 'about 2.5 hours')
    """
    if seconds < 90:
        return f"about {max(1, round(seconds / 10)) * 10} seconds"
    if seconds < 90 * 60:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.1f} hours"


def _load_nads(name: str, architecture: str) -> nc.NADs:
    if name == "auto":
        name = architecture if architecture in ARCHITECTURES else "lenet"
    if name not in ARCHITECTURES and Path(name).is_file():
        return nc.load_nads(name)
    try:
        return load_nads(name)
    except (ValueError, FileNotFoundError) as error:
        raise ValueError(f"nads_of is {name!r}, which is no file: {error}") from error
