"""What the first-step law misses, and a prediction of accuracies that were not measured yet.

.venv/bin/python benchmarks/law.py candidates  # what could be missing, on trainings that are there already
.venv/bin/python benchmarks/law.py predict     # accuracies at other samples, noise and directions; before:
.venv/bin/python benchmarks/law.py train       # the networks themselves, one after another: an interrupted call resumes
.venv/bin/python benchmarks/law.py control     # few samples, seen as often as many: is it the samples, or the steps?

The second moment C comes from networks that no NAD was computed from: runs of other seeds, whose checkpoints stay in
_build/reliability/ (``benchmarks/reliability.py`` makes them). Results go to book/results/studies/law.json, and those
of the trainings to law-trained.json in the same folder.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import nads_book as nb
import numpy as np
import torch
from nads_book.analysis.forecasting import restored
from nads_book.analysis.prediction import Family, GainCorrection, Responses, filter_gain, predicted_accuracy
from nads_book.experiments.stored import study_path
from result_files import write_compact
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from tqdm import tqdm

import nads_core as nc
from nads_core.directions.accumulation import read_checkpoint
from nads_core.directions.symmetry import symmetrize
from nads_core.runtime.provenance import environment
from nads_core.runtime.seeds import seed_sequence

FILE, TRAINED = study_path("law.json"), study_path("law-trained.json")
SEEN = ("fig6-lenet", "fig1-lenet", "random-lenet")  # trainings of the paper's size whose accuracies were known
FITTED = ("fig6-lenet", "fig1-lenet")
LEVELS = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35)  # signal to noise of the pairs of NADs
CELLS = ((1_000, 1.0), (3_162, 1.0), (10_000, 1.0), (31_623, 1.0), (100_000, 1.0), (10_000, 0.5), (10_000, 2.0))
NUM_TEST, SEED = 10_000, 7
BY_KERNEL = (213, 231)  # and of these for slower measures
PROBED = (87, 99, 132, 136, 198, 213, 231, 264)  # NADs of fig6-lenet for slow measures


def independent_covariance(num_networks: int, runs: int, folder: Path) -> tuple[Tensor, int]:
    """Return C (D, D) from runs that no shipped NAD saw, and of how many networks."""
    total = None
    for number in range(runs):
        path = folder / f"lenet-{num_networks}-{number}.ckpt"
        if not path.exists():
            nc.compute_nads(nc.LENET, num_networks, seed=1_000 + number, num_directions=1, checkpoint=path)
        moments, _ = restored(read_checkpoint(path))
        total = moments if total is None else total
        if total is not moments:
            total.merge(moments)
    seen, noise = total.moments()
    return symmetrize(seen - noise, (1, 32, 32), nc.LENET.symmetries), total.num_networks


def fitted(parts: list[dict[str, Any]], gains: bool = True) -> GainCorrection:
    """Fit to several families of directions; without gains, to the ratios alone."""
    ratios, values, accuracies = (np.concatenate([part[name] for part in parts]) for name in ("z", "gain", "accuracy"))
    return GainCorrection.fit(ratios, values if gains else np.ones(len(values)), accuracies)


def seen_families(covariance: Tensor) -> dict[str, dict[str, Any]]:
    """Return law, gain and accuracy of all directions that were trained along already."""
    result = {}
    for name in SEEN:
        family = Family.of(nb.load_results(name))
        responses = Responses.of(covariance, family.directions)
        z = responses.signal_to_noise(family.num_train, family.noise_std)
        result[name] = {
            "key": [list(k) if isinstance(k, tuple) else k for k in family.keys], "z": z,
            "gain": filter_gain(family.directions), "accuracy": family.accuracies,
            "directions": family.directions, "noise_std": family.noise_std,
        }  # fmt: skip
    return result


def later_steps(
    covariance: Tensor, direction: Tensor, rates: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
) -> list[list[float]]:
    """Return test accuracies of a linear model with the kernel x^T C x', after 1, 4 and 10 epochs at several rates."""
    values, vectors = torch.linalg.eigh(covariance)
    values = values.clamp(min=0) / values.clamp(min=0).mean()
    root = ((vectors * values.sqrt()) @ vectors.T).float()
    (images, labels), (tests, truth) = (
        nc.separable_dataset(direction, 10_000, 1.0, 1.0, seed=seed_sequence(SEED, part)) for part in (1, 2)
    )
    inputs, signs = images.flatten(1) @ root, 2.0 * labels - 1
    generator, result = torch.Generator().manual_seed(SEED), []
    for rate in rates:
        weights, reached = torch.zeros(len(root)), []
        for epoch in range(1, 11):
            for batch in torch.randperm(len(inputs), generator=generator).split(128):
                x, y = inputs[batch], signs[batch]
                weights += rate * (x.T @ (y * torch.sigmoid(-y * (x @ weights)))) / len(batch)
            if epoch in (1, 4, 10):
                scores = tests.flatten(1) @ root @ weights
                reached.append(round(float(((scores > 0) == (truth == 1)).double().mean()), 4))
        result.append(reached)
    return result


def kernel_accuracies(direction: Tensor, counts: tuple[int, ...] = (1, 4, 8), num_train: int = 3_000) -> list[float]:
    """Return test accuracies by the tangent kernel of LeNets at initialisation, the mean of so many networks' kernels.

    The kernel's regression with a ridge of a thousandth of its mean eigenvalue: what a network that never changes its
    kernel reaches at the end of a long training, and not what some optimiser has reached of it.
    """
    (images, labels), (tests, truth) = (
        nc.separable_dataset(direction, count, 1.0, 1.0, seed=seed_sequence(SEED, part))
        for part, count in ((1, num_train), (2, 2_000))
    )
    signs, everything = 2.0 * labels - 1, torch.cat([images, tests])
    kernel, result = torch.zeros(len(everything), num_train), []
    for number in range(max(counts)):
        torch.manual_seed(SEED + number)
        network = nc.LENET.build(1, 32, 2)
        start = {name: value.detach() for name, value in network.named_parameters()}

        def output(weights: dict[str, Tensor], image: Tensor, network: nn.Module = network) -> Tensor:
            logits = functional_call(network, weights, (image[None],))[0]
            return logits[1] - logits[0]

        gradients = vmap(grad(output), (None, 0))
        rows = torch.cat([
            torch.cat([part.flatten(1) for part in gradients(start, some).values()], 1)
            for some in everything.split(250)
        ])  # fmt: skip
        kernel += rows @ rows[:num_train].T
        if number + 1 in counts:
            block = kernel[:num_train].double()
            ridge = 1e-3 * block.diagonal().mean() * torch.eye(num_train, dtype=torch.float64)
            scores = kernel[num_train:].double() @ torch.linalg.solve(block + ridge, signs.double())
            result.append(round(float(((scores > 0) == (truth == 1)).double().mean()), 4))
    return result


def candidates(covariance: Tensor, num_networks: int) -> dict[str, Any]:
    """Ask of each candidate how much of what the law misses it explains."""
    families = seen_families(covariance)
    shipped = nc.load_nads("lenet")
    rows: dict[str, Any] = {}
    for name, family in families.items():
        others = [families[other] for other in FITTED if other != name]
        first = nb.prediction.signal_to_noise(shipped, family["directions"], 10_000, family["noise_std"])
        rows[name] = {
            "key": family["key"], "gain": family["gain"].round(4).tolist(), "accuracy": family["accuracy"].tolist(),
            "shipped": first.round(5).tolist(), "independent": family["z"].round(5).tolist(),
            "held_out": fitted(others).accuracies(family["z"], family["gain"]).round(5).tolist(),
        }  # fmt: skip
    along = families["fig6-lenet"]
    probes = []
    for index in tqdm(PROBED):
        place = along["key"].index(index)
        direction = along["directions"][place]
        probes.append({
            "index": index, "accuracy": float(along["accuracy"][place]), "z": float(along["z"][place]),
            "gain": float(along["gain"][place]), "later_steps": later_steps(covariance, direction),
            "kernels": kernel_accuracies(direction) if index in BY_KERNEL else [],
        })  # fmt: skip
        print(probes[-1], file=sys.stderr)
    return {"num_networks": num_networks, "families": rows, "probes": probes, **environment(torch.device("cpu"))}


def chosen_pairs(responses: Responses, gains: np.ndarray) -> list[int]:
    """Return two NADs at each level of the law, the one with the largest and the one with the smallest gain there."""
    z, chosen = responses.signal_to_noise(10_000, 1.0), []
    for level in LEVELS:
        near = np.flatnonzero(np.abs(z / level - 1) < 0.1)
        chosen += [int(near[gains[near].argmax()]), int(near[gains[near].argmin()])]
    return chosen


def predictions(covariance: Tensor, num_networks: int) -> dict[str, Any]:
    """Predict accuracies along NADs that no network was trained along."""
    nads = nc.load_nads("lenet")
    responses, gains = Responses.of(covariance, nads.directions), filter_gain(nads.directions)
    families = seen_families(covariance)
    laws = {gains: fitted([families[name] for name in FITTED], gains) for gains in (True, False)}
    rows = []
    for index in chosen_pairs(responses, gains):
        for num_train, noise_std in CELLS:
            z = responses.signal_to_noise(num_train, noise_std)[[index]]
            rows.append({
                "index": index, "num_train": num_train, "noise_std": noise_std, "gain": round(float(gains[index]), 4),
                "z": round(float(z[0]), 5), "law": round(float(predicted_accuracy(z)[0]), 5),
                "with_gain": round(float(laws[True].accuracies(z, gains[[index]])[0]), 5),
                "without_gain": round(float(laws[False].accuracies(z, np.ones(1))[0]), 5),
            })  # fmt: skip
    facts = {"version": nads.provenance["version"], "fingerprint": nads.fingerprint}
    return {
        "nads": facts, "num_networks": num_networks, "powers": laws[True].powers, "rows": rows,
        **environment(torch.device("cpu")),
    }  # fmt: skip


def trainings(rows: list[dict[str, Any]], seeds: tuple[int, ...], recipe: nc.Recipe = nc.SEPARABLE_RECIPE) -> None:
    """Train the networks that predictions are about, cell by cell; by another recipe those of the fewest samples."""
    nads = nc.load_nads("lenet")
    content = json.loads(TRAINED.read_text("utf8")) if TRAINED.exists() else {"rows": []}
    for seed in seeds:
        for num_train, noise_std in CELLS if recipe == nc.SEPARABLE_RECIPE else CELLS[:1]:
            indices = [row["index"] for row in rows if (row["num_train"], row["noise_std"]) == (num_train, noise_std)]
            cell = {"num_train": num_train, "noise_std": noise_std, "seed": seed, "epochs": recipe.epochs}
            if any(cell.items() <= ({"epochs": 20} | row).items() for row in content["rows"]):
                continue
            sets, tests = (
                nc.SeparableDatasets(nads.directions[indices], count, 1.0, noise_std, seed=seed_sequence(seed, part))
                for part, count in ((5, num_train), (6, NUM_TEST))
            )
            result = nc.train_networks(
                nc.LENET,
                sets,
                tests,
                recipe=recipe,
                num_classes=2,
                seed=seed,
                stop_at_full_accuracy=True,
                method="processes",
            )
            content["rows"] += [
                cell | {"index": index, "accuracy": round(float(accuracy), 5)}
                for index, accuracy in zip(indices, result.test_accuracy, strict=True)
            ]
            content |= environment(torch.device("cpu"))
            write_compact(TRAINED, content)
            print(cell, [row["accuracy"] for row in content["rows"][-len(indices) :]], file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("candidates", "predict", "train", "control"))
    parser.add_argument("--num-networks", type=int, default=5_120, help="of a run")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--folder", type=Path, default=Path("_build/reliability"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    options = parser.parse_args()
    content = json.loads(FILE.read_text("utf8")) if FILE.exists() else {}
    if options.what in ("train", "control"):
        recipe = nc.SEPARABLE_RECIPE if options.what == "train" else replace(nc.SEPARABLE_RECIPE, epochs=200)
        trainings(content["prediction"]["rows"], tuple(options.seeds), recipe)
        return
    if options.what == "predict" and "prediction" in content:
        sys.exit(f"the prediction in {FILE} is committed and stays as it is")
    covariance = independent_covariance(options.num_networks, options.runs, options.folder)
    made = {"candidates": candidates, "predict": predictions}[options.what](*covariance)
    write_compact(FILE, content | {"prediction" if options.what == "predict" else "candidates": made})


if __name__ == "__main__":
    main()
