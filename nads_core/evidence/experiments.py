"""The paper's sweeps as named jobs that stop, resume, split over machines and merge: ``fig1-lenet``, ``fig7-resnet18``.

A job is a list of units, each the training of one network. Its results file is also its checkpoint: it is replaced
as a whole after every unit, so that it is complete at any moment.
"""

from __future__ import annotations

import glob
import json
import math
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nads_core.data.fourier import fourier_direction
from nads_core.data.images import DatasetNotFoundError, ImageSet, load_images, normalize
from nads_core.data.poisoning import changed_predictions, flip, poison
from nads_core.data.separable import SeparableDatasets
from nads_core.directions import NADs, load_nads
from nads_core.evidence.presets import SIZES
from nads_core.evidence.waves import grid_frequencies, spread, stratified_frequencies
from nads_core.machinery.arguments import require_integers, usable_device
from nads_core.machinery.files import locked, replacing
from nads_core.machinery.provenance import NUMBERS_VERSION, canonical, differences, environment, fingerprint
from nads_core.machinery.seeds import seed_sequence
from nads_core.networks.architectures import ARCHITECTURES, Architecture
from nads_core.training import (
    CIFAR10_RECIPE,
    SEPARABLE_RECIPE,
    Dataset,
    Recipe,
    TrainingResult,
    TrainingState,
    TrainingTimeout,
    seconds_per_step,
    train_networks,
)

FIGURES = {
    "fig1": "test accuracy over the DFT directions of the published grid, sigma = 3",
    "fig1full": "the same over all DFT directions",
    "fig2": "iterations to a small training loss over the published grid, sigma = 0.5",
    "fig3": "test accuracy over the published grid without pooling, sigma = 3",
    "fig3full": "the same over all DFT directions",
    "fig6": "test accuracy over the NADs, sigma = 1",
    "random": "test accuracy over random directions, sigma = 1 (not in the paper)",
    "fig7": "clean accuracy after training on CIFAR-10 that is poisoned at a NAD",
    "fig8": "accuracy on CIFAR-10 and on its flipped version",
}
LOSSES = (0.3, 0.1, 0.03)  # what "a small training loss" may mean in Fig. 2; training stops at the last
POISON_INDICES = (0, 5, 10, 20, 30, 50, 75, 100, 200, 300, 400, 600, 800, 1000)
USE_INDICES = (0, 1, 2, 3, 5, 8, 12, 20, 30, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1000)
JOBS = tuple(f"{figure}-{name}" for figure in FIGURES for name in ARCHITECTURES)

Unit = dict[str, Any]  # what is trained: its direction or carrier, and its seed


@dataclass(frozen=True)
class Experiment:
    """One job at one size; `experiment` makes them.

    Args:
        figure: one of `FIGURES`.
        architecture: of the networks that are trained.
        preset: the size that the other fields follow from.
        units: what is trained, in the order of training: any beginning of it covers the plane or the NADs evenly.
        recipe: of the training.
        num_train, num_test: samples.
        noise_std: sigma of D(v); its margin is 1.
        nads_version: of the NADs that Figs. 6 to 8 are about, see `load_nads`.
        stop_perfect: end a training when no test image is wrong any more, see `train_networks`.
        paired_test: test on pairs, see `SeparableDatasets`.
    """

    figure: str
    architecture: Architecture
    preset: str
    units: tuple[Unit, ...]
    recipe: Recipe
    num_train: int
    num_test: int
    noise_std: float = 0.0
    nads_version: int | None = None
    stop_perfect: bool = False
    paired_test: bool = False

    @property
    def name(self) -> str:
        """Such as ``fig1-lenet``."""
        return f"{self.figure}-{self.architecture.name}"

    @property
    def on_photos(self) -> bool:
        """Whether the networks learn CIFAR-10 and not D(v)."""
        return self.figure in ("fig7", "fig8")

    def seconds_per_step(self, mixed_precision: bool, device: torch.device | str = "cpu") -> float:
        """Measure a step of one of its trainings here, see `nads_core.training.seconds_per_step`."""
        shape, classes = ((3, 32, 32), 10) if self.on_photos else ((1, 32, 32), 2)
        build = partial(self.architecture.build, shape[0], shape[1], classes)
        return seconds_per_step(build, shape, self.recipe, mixed_precision=mixed_precision, device=device)

    @property
    def nads(self) -> NADs | None:
        """The directions that Figs. 6 to 8 are about; None for the others."""
        return None if self.nads_version is None else _nads(self.architecture.name, self.nads_version)

    def settings(self, photos: str | None = None) -> dict:
        """Return all that decides about the results, as JSON: two files can be merged if these agree.

        Args:
            photos: where the images of Figs. 7 and 8 come from, `ImageSet.source`.
        """
        settings = {"recipe": asdict(self.recipe), "num_train": self.num_train, "num_test": self.num_test}
        settings["numbers"] = NUMBERS_VERSION
        settings |= {name: True for name in ("stop_perfect", "paired_test") if getattr(self, name)}
        if self.on_photos:
            settings["photos"] = photos
        else:
            settings |= {"margin": 1.0, "noise_std": self.noise_std}
        if self.nads is not None:
            name, version = self.architecture.name, self.nads_version
            settings["nads"] = {"name": name, "version": version, "fingerprint": self.nads.fingerprint}
        return settings


def _spread_indices(count: int, size: int) -> list[int]:
    """Return about ``count`` NAD indices, half of them evenly and half geometrically spaced, in an even order."""
    even, geometric = np.linspace(0, size - 1, count // 2), np.geomspace(1, size, count - count // 2) - 1
    indices = np.unique(np.concatenate([even, geometric]).round().astype(int))
    return [int(indices[i]) for i in spread(np.log1p(indices)[:, None])]


def experiment(name: str, preset: str = "demo", nads_version: int | None = None) -> Experiment:
    """Return a job by its name, such as ``fig1-lenet``.

    Args:
        name: a key of `FIGURES` and an architecture, joined by a hyphen.
        preset: "smoke" and "demo" are smaller, for tests and the live book; "paper" has the paper's sizes; "laptop" is
            a fifth of the paper's training, at which LeNets learn waves in the order of the paper's size, to a lower
            level (``benchmarks/laptop.py``): for deep networks without a GPU. Its waves come in an order of which any
            beginning is a stratified sample.
        nads_version: of the NADs that Figs. 6 to 8 are about; the newest by default.

    Raises:
        ValueError: for an unknown name, preset or version.
    """
    figure, _, model = name.partition("-")
    if figure not in FIGURES or model not in ARCHITECTURES:
        raise ValueError(
            f"unknown job {name!r}: join one of {', '.join(FIGURES)} and one of {', '.join(ARCHITECTURES)}"
        )
    if preset not in SIZES:
        raise ValueError(f"unknown preset {preset!r}: choose from {SIZES}")
    size = SIZES.index(preset)
    architecture = ARCHITECTURES[model]
    # Laptop's is none of paper's, so that the two can be compared, nor that of the trials that chose its size.
    seeds = ((0,), (0,), (3,), (0, 1))[size]
    if figure in ("fig6", "fig7", "fig8"):
        nads_version = _nads(model, nads_version).provenance["version"]
    else:
        nads_version = None
    if figure in ("fig7", "fig8"):
        if figure == "fig7":
            few = ((0, 1000), (0, 10, 30, 1000), (0, 10, 30, 100, 300, 1000), POISON_INDICES)[size]
            things = [{"index": None}] + [{"index": few[i]} for i in spread(np.log1p(few)[:, None])]
        else:
            things = [{"flipped": flipped} for flipped in (False, True)]
        recipe = replace(CIFAR10_RECIPE, epochs=(2, 10, 10, 50)[size])
        sizes = (500, 5_000, 10_000, 50_000)[size], (200, 2_000, 10_000, 10_000)[size]
        noise_std = 0.0
    else:
        if figure in ("fig6", "random"):
            count = (6, 9, 16, 64)[size]
            indices = _spread_indices(count, len(_nads(model, nads_version))) if figure == "fig6" else range(count)
            things = [{"index": index} for index in indices]
        else:
            frequencies = grid_frequencies(step=1 if figure.endswith("full") else 2)
            if preset == "laptop" and not figure.endswith("full"):
                frequencies = stratified_frequencies(model)
            things = [{"frequency": list(k)} for k in frequencies[: (6, 12, None, None)[size]]]
        if figure.startswith("fig3") and model != "logreg":
            architecture = architecture.variant(pooling="none", name=model)
        recipe = replace(SEPARABLE_RECIPE, epochs=(4, 10, 4, 20)[size])
        if preset == "laptop":  # a fifth of the paper's passes over images is enough where steps are smaller and more
            recipe = replace(recipe, batch_size=48, learning_rate=0.2)
        sizes = (1_000, 4_000, 10_000, 10_000)[size], (1_000, 4_000, 4_000, 10_000)[size]
        noise_std = {"fig2": 0.5, "fig6": 1.0, "random": 1.0}.get(figure, 3.0)
    units = tuple({**thing, "seed": seed} for seed in seeds for thing in things)
    return Experiment(
        figure, architecture, preset, units, recipe, *sizes, noise_std, nads_version,
        stop_perfect=preset in ("demo", "laptop") and figure not in ("fig2", "fig7", "fig8"),
        paired_test=preset == "laptop" and figure not in ("fig7", "fig8"),
    )  # fmt: skip


@lru_cache(maxsize=4)
def _nads(name: str, version: int | None) -> NADs:
    return load_nads(name, version)


def direction_of(job: Experiment, unit: Unit) -> Tensor:
    """Return the unit image (1, 32, 32) that a unit's data are separated along."""
    if "frequency" in unit:
        return fourier_direction(tuple(unit["frequency"]), 32)
    if job.figure == "random":
        generator = torch.Generator().manual_seed(seed_sequence(0, 4, unit["index"]))
        noise = torch.randn(1, 32, 32, generator=generator)
        return noise / noise.norm()
    return job.nads.directions[unit["index"]]


@lru_cache(maxsize=2)
def _load_photos(dataset: str, train: bool, count: int, root: str | None) -> ImageSet:
    return load_images(dataset, train=train, num_images=count, root=root, progress=False)


def _photos(job: Experiment, train: bool, root: str | None) -> ImageSet:
    """Load a part of CIFAR-10; at the smallest presets generated images where there are no photos."""
    count = job.num_train if train else job.num_test
    try:
        photos = _load_photos("cifar10" if job.preset in ("laptop", "paper") else "auto", train, count, root)
    except DatasetNotFoundError as error:
        raise DatasetNotFoundError(
            f"{job.name} at preset {job.preset} needs the photos of CIFAR-10: {error}"
        ) from error
    if len(photos) != count:
        raise ValueError(f"{job.name} at preset {job.preset} needs {count:,} images, but of {photos.source} there are "
                         f"{len(photos):,}: complete them, or name another folder (NADS_DATA)")  # fmt: skip
    return photos


@dataclass(frozen=True)
class _Photos(Sequence):
    """CIFAR-10 as each unit sees it, made in the process that trains the network."""

    job: Experiment
    units: tuple[Unit, ...]
    train: bool
    root: str | None
    source: str | None  # that the results name: a worker may live longer than what its environment said

    image_shape = (3, 32, 32)

    @property
    def num_samples(self) -> int:
        return self.job.num_train if self.train else self.job.num_test

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, b: int) -> Dataset:
        photos, unit = _photos(self.job, self.train, self.root), self.units[b]
        if photos.source != self.source:
            raise ValueError(f"these images are {photos.source}, but the results are to be about {self.source}")
        images, nads = photos.images, self.job.nads
        if self.train and unit.get("index") is not None:
            images = poison(images, photos.labels, nads, unit["index"])
        if unit.get("flipped"):
            images = flip(images, nads)
        return normalize(images), photos.labels


def _use_of_nads(job: Experiment, root: str | None, network: torch.nn.Module) -> dict:
    """Count the clean test photos whose prediction changes when one NAD component is removed, or its sign flipped."""
    photos, nads = _photos(job, False, root), job.nads
    images = normalize(photos.images[:2_000])
    indices = [index for index in USE_INDICES if index < len(nads)]
    shares = {
        change: [round(share, 4) for share in changed_predictions(network, images, nads, indices, change).tolist()]
        for change in ("remove", "flip")
    }
    return {"indices": indices, "num_images": len(images), **shares}


@dataclass
class Results:
    """What a job has measured so far.

    Args:
        job: its name.
        preset: its size.
        settings: all that decides about the numbers.
        num_units: how many rows the finished job has.
        rows: one dictionary a trained network: its unit, ``test_accuracy``, ``train_accuracy``, ``final_loss`` (the
            mean over the last epoch), ``seconds``; ``iterations`` (to each of `LOSSES`, -1 for never) for Fig. 2;
            ``use`` of each NAD for Fig. 7.
        provenance: device, versions, commits and dates of every run that contributed.
    """

    job: str
    preset: str
    settings: dict
    num_units: int
    rows: list[dict]
    provenance: list[dict]

    @property
    def complete(self) -> bool:
        """Whether every unit is there."""
        return len(self.rows) == self.num_units

    @property
    def photos(self) -> str | None:
        """Where the images that the networks learnt come from, as `ImageSet.source`; None for D(v)."""
        return self.settings.get("photos")

    def experiment(self) -> Experiment:
        """Return the job that these results belong to, about the NADs that they name.

        Raises:
            ValueError: if there is no such job any more, or its settings, NADs or units are others. The photos and the
                numbers version may differ: they matter to who goes on with the job, not to who looks at its results.
        """
        job = experiment(self.job, self.preset, self.settings.get("nads", {}).get("version"))
        any_source = {"photos": self.photos, "numbers": self.settings.get("numbers")}
        now = job.settings() | {key: value for key, value in any_source.items() if key in self.settings}
        different = differences(self.settings | {"num_units": self.num_units}, now | {"num_units": len(job.units)})
        if different:
            raise ValueError(f"these results of {self.job} belong to another job of that name: {different}")
        _in_order(self.rows, job)
        return job

    def __str__(self):
        seconds = sum(row["seconds"] for row in self.rows)
        return f"{self.job} at preset {self.preset}: {len(self.rows)} of {self.num_units} networks, {seconds:.0f} s"

    def save(self, path: str | os.PathLike) -> None:
        """Write a JSON file, replacing the old one as a whole."""
        content = {name: value for name, value in vars(self).items() if name != "rows"}
        head = json.dumps({"fingerprint": fingerprint(canonical(vars(self))), **content}, indent=1)[:-2]
        rows = ",\n  ".join(json.dumps(row) for row in self.rows)
        with replacing(path) as file:
            file.write(f'{head},\n "rows": [\n  {rows}\n ]\n}}\n')

    @classmethod
    def load(cls, path: str | os.PathLike) -> Results:
        """Read a file that `save` wrote.

        Raises:
            ValueError: if the file holds something else, or was damaged or edited.
        """
        try:
            content = json.loads(Path(path).read_text("utf8"))
            stored = content.pop("fingerprint", None)
            results = cls(**content)
        except (json.JSONDecodeError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a results file, or of a later release ({error}): name another") from error
        if stored is None:
            raise ValueError(f"{path} was written by nads_core 0.1, without a fingerprint: name another file")
        if stored != fingerprint(canonical(vars(results))):
            raise ValueError(
                f"{path} is damaged or was edited: its content does not have the fingerprint {stored!r} that it names: "
                "restore it, or delete it and run the job again"
            )
        return results


def unit_key(row: dict) -> str:
    """Name the unit that a row, or a unit, is about: what is trained, and its seed."""
    return json.dumps([row.get(field) for field in ("frequency", "index", "flipped", "seed")])


def _in_order(rows: Iterable[dict], job: Experiment) -> list[dict]:
    """Return rows in the order of a job's units, a unit that occurs twice once.

    Raises:
        ValueError: if a row belongs to no unit.
    """
    by_key = {unit_key(row): row for row in rows}
    keys = list(map(unit_key, job.units))
    if foreign := by_key.keys() - set(keys):
        fields = ("frequency", "index", "flipped", "seed")
        units = [{name: row[name] for name in fields if name in row} for key, row in by_key.items() if key in foreign]
        raise ValueError(
            f"{len(units)} rows do not belong to {job.name} at preset {job.preset}: {units[:5]}"
            f"{' and more' * (len(units) > 5)}: keep them in a file of their own"
        )
    return [by_key[key] for key in keys if key in by_key]


def merge_results(parts: Iterable[Results]) -> Results:
    """Join the results of shards of one job; a unit that several hold counts once.

    Raises:
        ValueError: if the parts belong to different jobs, presets or settings, hold rows of no unit, or there is none.
    """
    parts = list(parts)
    if not parts:
        raise ValueError("there are no results to merge")
    first = parts[0]
    for part in parts[1:]:
        identities = ({"job": p.job, "preset": p.preset, "settings": p.settings} for p in (part, first))
        if different := differences(*identities):
            raise ValueError(f"these results are not of one job ({different}): merge only shards of one job")
    precisions = {entry["mixed_precision"] for part in parts for entry in part.provenance if "mixed_precision" in entry}
    if first.preset == "laptop" and len(precisions) > 1:
        raise ValueError("some of these results were trained in bfloat16 and some not: keep them apart")
    rows = [row for part in reversed(parts) for row in part.rows]
    ordered = _in_order(rows, experiment(first.job, first.preset, first.settings.get("nads", {}).get("version")))
    provenance = []
    for part in parts:
        provenance += [entry for entry in part.provenance if entry not in provenance]
    return replace(first, rows=ordered, provenance=provenance)


def results_path(name: str, preset: str = "paper") -> Path:
    """Return where the results of a job are kept: ``book/results/`` of the checkout around the working folder.

    The environment variable ``NADS_RESULTS`` names another folder.
    """
    if "NADS_RESULTS" in os.environ:
        folder = Path(os.environ["NADS_RESULTS"])
    else:
        here = Path.cwd()
        candidates = [parent / "book" / "results" for parent in (here, *here.parents, Path(__file__).parents[2])]
        folder = next((folder for folder in candidates if folder.is_dir()), candidates[0])
    return folder / f"{name}{'' if preset == 'paper' else '.' + preset}.json"


def load_results(name: str, preset: str = "paper") -> Results | None:
    """Return the results of a job that ran before (perhaps in part), or None if there are none.

    To be shown, they need not have been made from the photos that are at hand: `Results.photos` names theirs.

    Raises:
        ValueError: for an unknown job, or a file that is damaged or does not belong to it.
    """
    experiment(name, preset)
    path = results_path(name, preset)
    if not path.exists():
        return None
    results = Results.load(path)
    try:
        if (results.job, results.preset) != (name, preset):
            raise ValueError(f"it holds {results.job} at preset {results.preset}")
        results.experiment()
    except ValueError as error:
        raise ValueError(f"{path} does not belong to {name} at preset {preset}: {error}") from error
    if "NADS_RESULTS_LOG" in os.environ:  # book/build.py asks which files a chapter shows
        with open(os.environ["NADS_RESULTS_LOG"], "a", encoding="utf8") as log:
            log.write(f"{path.name}\n")
    return results


def writing(path: Path) -> AbstractContextManager:
    """Keep other processes from writing a results file."""
    return locked(path, "split the job with --shard instead")


def run_experiment(
    name: str,
    preset: str = "demo",
    *,
    out: str | os.PathLike | None = None,
    count: int | None = None,
    time_limit: float | None = None,
    shard: tuple[int, int] = (1, 1),
    workers: int | None = None,
    device: torch.device | str | None = None,
    mixed_precision: bool | None = None,
    root: str | os.PathLike | None = None,
    progress: bool = True,
) -> Results:
    """Run what is left of a job.

    Args:
        name: such as ``fig1-lenet``; see `experiment`.
        preset: "smoke", "demo", "laptop" or "paper".
        out: results file, replaced after every network; a run that finds one there goes on with it.
        count: networks of the job to train, from its beginning; all by default.
        time_limit: seconds after which to stop; what is finished by then is kept, and the result is not ``complete``.
        shard: (i, n) runs the i-th of n parts; give each part a file of its own and join them with `merge_results`.
        workers: networks trained at once on a CPU; by default one a core.
        device: by default a GPU if there is one.
        mixed_precision: run the layers in bfloat16; by default on a GPU, and at preset "laptop" on a CPU where a trial
            of a few steps says that it is faster; a run that goes on there keeps what the first one chose.
        root: folder with the photos of Figs. 7 and 8; see `load_images`.
        progress: show a progress bar with the time that remains.

    Raises:
        ValueError: for an unknown job, a shard that does not exist, or a file of another job or other settings.
        DatasetNotFoundError: at presets "laptop" and "paper" where Figs. 7 and 8 find no photos.
    """
    job, out, root = experiment(name, preset), out and Path(out), root and str(root)
    part, parts = shard
    if count is not None:
        require_integers(count=count)
    if not 1 <= part <= parts:
        raise ValueError(f"shard must be i of n with 1 <= i <= n, got {part}/{parts}")
    with writing(out) if out else nullcontext():
        photos = _photos(job, False, root).source if job.on_photos else None
        results = Results(name, preset, job.settings(photos), len(job.units), [], [])
        if out and out.exists():
            before = Results.load(out)
            try:
                results = merge_results([results, before])
            except ValueError as error:
                raise ValueError(f"{out} cannot be continued: {error}") from error
        return _run(job, results, job.units[:count][part - 1 :: parts], out, time_limit, progress,
                    device=device, workers=workers, mixed_precision=mixed_precision, root=root)  # fmt: skip


def _run(job, results, units, out, time_limit, progress, *, device, workers, mixed_precision, root) -> Results:
    start = time.monotonic()
    done = {unit_key(row) for row in results.rows}
    left = [unit for unit in units if unit_key(unit) not in done]
    device = usable_device(device)
    chosen = [entry["mixed_precision"] for entry in results.provenance if "mixed_precision" in entry]
    if job.preset == "laptop" and left:  # one job, one precision
        if chosen and mixed_precision not in (None, chosen[0]):
            raise ValueError(
                f"{job.name} began with mixed_precision={chosen[0]} and goes on with it: leave mixed_precision out, or "
                "name another file"
            )
        if mixed_precision is None:
            mixed_precision = chosen[0] if chosen else _faster_in_bfloat16(job, device)
    results.provenance = [entry for entry in results.provenance if entry["networks"]]
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    entry = {**environment(device), "started": started, "networks": 0, "seconds": 0.0}
    entry |= {} if workers is None else {"workers": workers}
    entry |= {} if mixed_precision is None else {"mixed_precision": mixed_precision}
    if left:
        results.provenance.append(entry)
        if out is not None and "mixed_precision" in entry:
            results.save(out)  # what was chosen must outlive a kill in the first network
    for seed in sorted({unit["seed"] for unit in left}):
        group = [unit for unit in left if unit["seed"] == seed]

        states = None if out is None else [_state(job, unit, results, out, device, mixed_precision) for unit in group]

        def on_result(b: int, result: TrainingResult, group: list[Unit] = group, states: list = states) -> None:
            results.rows.append({**group[b], **_row(job, result)})
            entry["networks"], entry["seconds"] = entry["networks"] + 1, round(time.monotonic() - start, 1)
            if out is not None:
                results.save(out)
                states[b].forget()

        train, test = _data(job, group, seed, root, results.photos)
        limit = None if time_limit is None else time_limit - (time.monotonic() - start)
        try:
            train_networks(
                job.architecture, train, test, recipe=job.recipe, num_classes=10 if job.on_photos else 2, seed=seed,
                numbers=[job.units.index(unit) for unit in group], device=device, workers=workers,
                mixed_precision=mixed_precision, stop_loss=LOSSES[-1] if job.figure == "fig2" else None,
                stop_perfect=job.stop_perfect, timeout=limit,
                measure=partial(_use_of_nads, job, root) if job.figure == "fig7" else None,
                on_result=on_result, states=states, progress=progress,
            )  # fmt: skip
        except TrainingTimeout:
            break
        except KeyboardInterrupt:
            kept = f"{results} kept in {out}; the same command goes on" if out else "nothing was kept: name a file"
            raise KeyboardInterrupt(f"interrupted. {kept}") from None
    if out is not None and results.complete:  # trainings that were begun in other ways and not gone on with
        for stale in out.parent.glob(f".*{glob.escape(out.name)}.*.part"):
            stale.unlink(missing_ok=True)
    return merge_results([results])


def _faster_in_bfloat16(job: Experiment, device: torch.device) -> bool:
    """Whether a trial of a few steps on this machine says so; a GPU that has it is not asked."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    return job.seconds_per_step(mixed_precision=True) < job.seconds_per_step(mixed_precision=False)


def _state(
    job: Experiment, unit: Unit, results: Results, out: Path, device: torch.device, mixed_precision: bool | None
) -> TrainingState:
    """Return the file of a unit's training, under a name that stands for all that decides about it."""
    what = [job.name, job.preset, results.settings, unit, device.type, mixed_precision]
    return TrainingState(out.with_name(f".{out.name}.{fingerprint(canonical(what))}.part"))


def _data(
    job: Experiment, units: list[Unit], seed: int, root: str | None, photos: str | None
) -> tuple[Sequence, Sequence]:
    if job.on_photos:
        return tuple(_Photos(job, tuple(units), train, root, photos) for train in (True, False))
    directions = torch.stack([direction_of(job, unit) for unit in units])
    draw = partial(SeparableDatasets, directions, margin=1.0, noise_std=job.noise_std)
    test = draw(job.num_test, seed=seed_sequence(seed, 6), paired=job.paired_test)
    return draw(job.num_train, seed=seed_sequence(seed, 5)), test


def _row(job: Experiment, result: TrainingResult) -> dict:
    steps = math.ceil(job.num_train / job.recipe.batch_size)
    losses = result.losses[result.losses.isfinite()]
    row = {
        "test_accuracy": round(float(result.test_accuracy), 5),
        "train_accuracy": round(float(result.train_accuracy), 5),
        "final_loss": round(float(losses[-steps:].mean()), 5),
        "seconds": round(float(result.seconds), 2),
    }
    if job.figure == "fig2":
        row["iterations"] = [int(result.iterations_to(loss)) for loss in LOSSES]
    if result.measured is not None:
        row["use"] = result.measured
    return row
