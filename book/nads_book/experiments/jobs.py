"""The paper's sweeps, and ours, as named jobs: ``fig1-lenet``, ``fig7-resnet18``.

A job is a list of units, each the training of one network. There is one class for each experiment; `runner` runs them,
`results` stores what they measure, and `presets` defines their sizes.
"""

from nads_book.experiments.base import Experiment
from nads_book.experiments.direction_experiments import Fig1, Fig2, Fig3, Fig6, RandomDirections
from nads_book.experiments.injection_experiment import InjectionExperiment
from nads_book.experiments.law_experiment import LawExperiment
from nads_book.experiments.poison_and_flip_experiments import Fig7, Fig8
from nads_book.experiments.presets import MODELS, SIZES
from nads_book.experiments.transform_experiments import TransformExperiment

_CLASSES: tuple[type[Experiment], ...] = (
    Fig1, Fig2, Fig3, Fig6, RandomDirections, LawExperiment, Fig7, Fig8, TransformExperiment, InjectionExperiment,
)  # fmt: skip
EXPERIMENTS = {kind.figure: kind for kind in _CLASSES}


def experiment_class(name: str) -> type[Experiment]:
    """Return the class of a job, such as ``fig1-lenet``.

    Raises:
        ValueError: for an unknown name.
    """
    figure, _, model = name.partition("-")
    if figure not in EXPERIMENTS or model not in MODELS:
        raise ValueError(f"unknown job {name!r}: join one of {', '.join(EXPERIMENTS)} with {', '.join(MODELS)}")
    return EXPERIMENTS[figure]


def experiment(name: str, preset: str = "demo", nads_version: int | None = None) -> Experiment:
    """Return a job by its name, such as ``fig1-lenet``.

    Args:
        name: key of `EXPERIMENTS` and name of an architecture, joined by a hyphen.
        preset: "smoke" and "demo" are smaller, for tests and the live book; "paper" has the paper's sizes; "laptop" is
            a fifth of the paper's training, at which LeNets learn waves in the order of the paper's size, to a lower
            level (``benchmarks/laptop.py``): for deep networks without a GPU. Any beginning of its waves is a
            stratified sample. "narrow" is as long, and has ResNet-18 and DenseNet-121 alone, of a quarter of their
            width. "epochs20", "epochs50" and "epochs100" are for injected shortcuts (``notes-lenet``), as "laptop" with
            longer trainings.
        nads_version: version of the NADs that some jobs are about; the newest by default.

    Raises:
        ValueError: for an unknown name, preset or version.
    """
    kind = experiment_class(name)
    if preset not in SIZES:
        raise ValueError(f"unknown preset {preset!r}: choose from {tuple(SIZES)}")
    return kind.create(name.partition("-")[2], preset, nads_version)
