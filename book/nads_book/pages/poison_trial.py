"""The reader's run in ``07_poison``: photos, NADs, a network, and what trainings take."""

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import torch
from matplotlib.figure import Figure
from torch import Tensor

import nads_core as nc
from nads_book import figures
from nads_book.experiments import formatting
from nads_book.pages.parameters import check_parameters, choose_network, choose_preset
from nads_book.photos import load_images
from nads_core.data.poisoning import carriers
from nads_core.networks.architectures import ARCHITECTURES

# Training photos, test photos and epochs. `gpu` is what auto becomes on a GPU: all photos, and more
# epochs than demo; `paper` has the paper's 50.
SIZES = {
    "smoke": (200, 100, 1),
    "demo": (8_000, 2_000, 6),
    "gpu": (50_000, 10_000, 10),
    "paper": (50_000, 10_000, 50),
}
TIMED = 4  # batches, from which the time of a training is estimated


class Trial:
    """Photos, NADs and a network, as the parameters of the chapter name them.

    Args:
        preset: key of `SIZES`, or "auto": "gpu" on a GPU, otherwise "demo".
        architecture: one of the paper's, or "module:function", a function without
            arguments that returns a new network for 3 x 32 x 32 with an output for each class.
        seed: seed of photos, weights and batches.
        nads_of: owner of the NADs: "auto", an architecture, or a file that `NADs.save` wrote.
            "auto" are those of ``architecture`` if they ship with the library, otherwise LeNet's.
        dataset: "auto", "cifar10" or "generated".
        data_root: folder with the photos; that of ``NADS_DATA`` by default.

    Attributes:
        train, test: photos.
        nads: NADs.
        recipe: recipe of the trainings.

    Raises:
        ValueError: for a parameter that cannot be used, or a network that does not fit.
        DatasetNotFoundError: for photos that are not there.
    """

    def __init__(
        self,
        preset: str = "auto",
        architecture: str = "lenet",
        *,
        seed: int = 0,
        nads_of: str = "auto",
        dataset: str = "auto",
        data_root: str | os.PathLike[str] | None = None,
    ) -> None:
        check_parameters(seed=seed)
        preset = choose_preset(preset, gpu="gpu", presets=tuple(SIZES))
        self.network = choose_network(architecture, "smoke" if preset == "smoke" else "paper")
        self.seed = seed
        owner = architecture if architecture in ARCHITECTURES else "lenet"
        self.nads = nc.load_nads(owner if nads_of == "auto" else nads_of)
        num_train, num_test, epochs = SIZES[preset]
        if preset in ("gpu", "paper") and dataset == "auto":
            dataset = "cifar10"  # nothing stands in for photos there
        load = partial(load_images, dataset, root=data_root, seed=seed, progress=False)
        self.train = load(num_images=num_train)
        self.test = load(train=False, num_images=num_test)
        self.recipe = replace(nc.CIFAR10_RECIPE, epochs=epochs)
        formatting.show_images_used(self.train, self.test)
        device = torch.cuda.get_device_name() if torch.cuda.is_available() else "the CPU"
        minutes = math.ceil(4 * self.seconds_of_training() / 60)
        label, directions = (
            formatting.LABELS.get(name, name) for name in (architecture, self.nads.name)
        )
        formatting.show(
            f"4 trainings of {label}, with NADs of {directions}, {num_train:,} photos, "
            f"{epochs} epoch{'s' * (epochs > 1)}, on {device}: **at most about {minutes} min**. "
            "`preset` sets another size."
        )

    def trained(
        self, versions: Iterable[Tensor], labels: Tensor, recipe: nc.Recipe
    ) -> nc.TrainingResult:
        """Train a network on each version of the photos, from the same first weights and with the
        same batches.
        """
        data = [(nc.normalize(images), labels) for images in versions]
        return nc.train_networks(
            self.network,
            data,
            [(nc.normalize(self.test.images), self.test.labels)] * len(data),
            num_classes=len(self.train.class_names),
            recipe=recipe,
            seed=self.seed,
            network_ids=[0] * len(data),
            progress=False,
        )

    def seconds_of_training(self) -> float:
        """Estimate the seconds of one training from a few of its steps."""
        few = slice(TIMED * self.recipe.batch_size)
        images, labels = self.train.images[few], self.train.labels[few]
        found = self.trained([images], labels, replace(self.recipe, epochs=1))
        return float(found.seconds) / TIMED * self.recipe.num_steps(len(self.train))

    def accuracies(self, versions: Mapping[str, Tensor]) -> dict[str, float]:
        """Train a network on each version of the photos; return accuracies on clean ones.

        Args:
            versions: name -> images (N, 3, H, W), in the order of ``train``.
        """
        found = self.trained(versions.values(), self.train.labels, self.recipe).test_accuracy
        assert found is not None
        return dict(zip(versions, found.tolist(), strict=True))

    def deviation(self, index: int) -> float:
        """Return the standard deviation of the photos' coordinates along a NAD."""
        coordinates = self.train.images.flatten(2) @ self.nads.basis[:, index]
        return float(coordinates.std(0).mean())

    def plot(self, accuracies: Mapping[str, float]) -> Figure:
        """Draw the reader's accuracies."""
        count, badge = len(self.test), formatting.badge(self.train)
        rows = {name: figures.Accuracies([one], count) for name, one in accuracies.items()}
        return figures.plot_accuracies({"your networks": rows}, 10, badge=badge)


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
