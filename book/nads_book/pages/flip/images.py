"""The flip and other orthogonal maps of images, and networks that are trained on them now."""

from dataclasses import replace

import torch
from torch import Tensor

import nads_core as nc
from nads_book.experiments import load_nads, results_path
from nads_book.studies import load_results, run_experiment
from nads_book.studies.transforms import orthogonal_map, transform
from nads_core.data import ImageSet

MAPS = {
    "as is": "as is",
    "random signs": "order kept, random signs",
    "flipped": "order reversed (the flip)",
    "shuffled": "order shuffled",
}


def nads_of_flips(name: str = "lenet") -> nc.NADs:
    """Return the complete NADs by which the stored photos were flipped; today's, where a network
    has none stored.
    """
    results = load_results(f"fig8-{name}")
    return (results.experiment().nads if results else load_nads(name)).complete_basis()


def mapped(images: Tensor, nads: nc.NADs, name: str, seed: int = 0) -> Tensor:
    """Return images whose NAD coordinates are changed in each channel, an orthogonal map.

    Args:
        images: images (N, C, H, W).
        nads: complete NADs of that size.
        name: one of "as is", "random signs", "flipped" and "shuffled".
        seed: seed of random signs and orders.

    Raises:
        ValueError: for another name.
    """
    if name not in MAPS:
        raise ValueError(f"map must be one of {', '.join(MAPS)}, got {name!r}")
    order = {"flipped": "reversed", "shuffled": "shuffled"}.get(name, "kept")
    signs = name == "random signs"
    return transform(images, orthogonal_map(nads.basis, nads.basis, order, signs=signs, seed=seed))


def flip_matrix(nads: nc.NADs) -> Tensor:
    """Return the flip, which exchanges the first NAD with the last, the second with the last but
    one, and so on.
    """
    return orthogonal_map(nads.basis, nads.basis, "reversed")


def logistic_losses(matrix: Tensor, images: Tensor, labels: Tensor, seed: int = 0) -> Tensor:
    """Return the losses of logistic regression on transformed images, from correspondingly
    transformed weights.

    Args:
        matrix: (D, D) orthogonal matrix.
        images: normalised images (N, C, H, W), D = H W.
        labels: classes (N,), fewer than ten.
        seed: seed of the first weights and of the order of samples.
    """
    torch.manual_seed(seed)
    network = nc.LOGREG.build(images.shape[1], images.shape[-1], 10)
    weight = next(network.parameters())  # (10, C D)
    with torch.no_grad():
        weight.copy_(transform(weight.view(10, *images.shape[1:]), matrix).flatten(1))
    data = (transform(images, matrix), labels)
    recipe = replace(nc.CIFAR10_RECIPE, epochs=2)
    return nc.train_network(network, data, recipe=recipe, seed=seed, progress=False).losses


def train_on_map(
    train: ImageSet, test: ImageSet, name: str, map: str, epochs: int, seed: int = 0
) -> float:
    """Train a network on images that are mapped by its own NADs, and return its accuracy on mapped
    test images.

    Args:
        train: training images of 32 x 32 pixels.
        test: test images.
        name: network, such as "lenet".
        map: one of `MAPS`.
        epochs: number of epochs.
        seed: seed of the map and of the training.
    """
    nads = nads_of_flips(name)
    data, clean = (
        (mapped(nc.normalize(part.images), nads, map, seed), part.labels) for part in (train, test)
    )
    torch.manual_seed(seed)
    network = nc.ARCHITECTURES[name].build(train.images.shape[1], 32, len(train.class_names))
    recipe = replace(nc.CIFAR10_RECIPE, epochs=epochs)
    trained = nc.train_network(network, data, clean, recipe=recipe, seed=seed, progress=False)
    assert trained.test_accuracy is not None
    return float(trained.test_accuracy)


def run_full_scale(job: str, data_root: str | None = None) -> None:
    """Run or resume a job at the paper's size, such as ``fig8-resnet18``; its results join the
    stored ones.
    """
    run_experiment(job, "paper", out=results_path(job), root=data_root, progress=False)
