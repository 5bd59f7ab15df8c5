"""Trained entries of the atlas: which waves they learned, by the energies of untrained networks."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nads_book.analysis.frequency_maps import LEARNED
from nads_book.analysis.statistics import area_under_curve, means
from nads_book.atlas import load_atlas
from nads_book.atlas.trained_waves import predicted_from_others
from nads_book.evidence import Evidence, Facts, evidence
from nads_book.experiments import load_study
from nads_book.figures.style import colours, legend, name_rows, styled, subplots

COARSEST, FINEST = (0, 2), (6, 10)
PATCH_CYCLES = 8  # waves of these cycles repeat in every patch of the transformer: 32 / 4
FLAT = ("cnn-nopool", "cnn-strided", "mlp")  # hardly any preference


@cache
def _study() -> Any:
    return load_study("atlas-trained.json")


class Waves(NamedTuple):
    """Trained waves of all entries, one number of each array for an entry and a wave, (n,).

    Attributes:
        entries: names of the entries.
        waves: cycles of the waves.
        accuracies: test accuracies, means over seeds.
        energies: energies relative to the mean direction, at least .01.
        laws: accuracies that the first-step law predicts.
    """

    entries: np.ndarray
    waves: list[tuple[int, int]]
    accuracies: np.ndarray
    energies: np.ndarray
    laws: np.ndarray

    @property
    def learned(self) -> np.ndarray:
        """Whether a wave was learned."""
        return self.accuracies > LEARNED

    def of(self, name: str) -> np.ndarray:
        """Return which rows belong to an entry."""
        return self.entries == name

    @property
    def names(self) -> list[str]:
        """Names of the entries, without repetition."""
        return list(dict.fromkeys(self.entries.tolist()))

    def selective(self) -> list[str]:
        """Return the entries that learned some waves and not others."""
        return [name for name in self.names if 0 < self.learned[self.of(name)].mean() < 1]


@cache
def trained() -> Waves:
    """Return the trained waves."""
    reached = means(((row["entry"], *row["wave"]), row["accuracy"]) for row in _study()["rows"])
    predicted = {(row["entry"], *row["wave"]): row for row in _study()["prediction"]["rows"]}
    rows = {key: row for key, row in predicted.items() if key in reached}
    return Waves(
        entries=np.array([name for name, *_ in rows]),
        waves=[(ky, kx) for _, ky, kx in rows],
        accuracies=np.array([reached[key] for key in rows]),
        # An estimate of almost nothing can be negative.
        energies=np.maximum([row["energy"] for row in rows.values()], 0.01),
        laws=np.array([row["law"] for row in rows.values()]),
    )


def _sizes() -> Facts:
    return {"size": "laptop", "rows": _study()["rows"]}


@styled
def plot_learned() -> Figure:
    """Draw the waves of each trained entry by their energy in random weights, filled where they
    were learned.
    """
    found = trained()
    names = sorted(found.names, key=lambda name: -found.learned[found.of(name)].sum())
    figure, ((axis,),) = subplots(height=0.9 + 0.28 * len(names), grid="x")
    places = np.array([names.index(name) for name in found.entries])
    for label, style, part in (
        ("learned", "full", found.learned),
        ("not learned", "none", ~found.learned),
    ):
        (dots,) = axis.plot(found.energies[part], places[part], "o", label=label)
        dots.set(fillstyle=style, color=colours()[0], markersize=6)
    name_rows(axis, map(_title, names))
    label = "energy of the wave in random weights, relative to the mean direction"
    axis.set(xscale="log", xlabel=label)
    legend(figure, axis, ncols=2)
    return figure


def _title(name: str) -> str:
    change = load_atlas().entries[name].change
    return f"CNN, {change}" if name.startswith("cnn-") else change.removeprefix("a ")


def most_energy_learned() -> Evidence:
    """Decide whether selective networks learned the waves of most energy, and all but one only the
    coarsest.
    """
    found = trained()
    coarsest = np.array([wave == COARSEST for wave in found.waves])
    rows = [found.of(name) for name in found.selective()]
    areas = [area_under_curve(found.energies[part], found.learned[part]) for part in rows]
    alone = sum(bool((found.learned[part] == coarsest[part]).all()) for part in rows)
    holds = min(areas) == 1 and alone + 1 >= len(rows)
    return evidence(holds, min(areas), **_sizes())


def one_bit() -> Evidence:
    """Decide whether law and energy hardly say which networks with preferences learn the coarsest
    wave.
    """
    found = trained()
    part = np.array([wave == COARSEST for wave in found.waves])
    areas = [
        area_under_curve(each[part], found.learned[part]) for each in (found.laws, found.energies)
    ]
    return evidence(max(areas) < 0.7, max(areas), **_sizes())


def errors_of_predictors() -> dict[str, np.ndarray]:
    """Return the absolute errors of what predicts the accuracies, (n,)."""
    found = trained()
    curves = [
        predicted_from_others(name, found.entries, found.energies, found.accuracies)
        for name in found.names
    ]
    constant = found.accuracies[found.learned].mean()
    ways = {
        "energies, and the curve of the other architectures": np.concatenate(curves),
        "first-step law, nothing fitted": found.laws,
        "a constant, the mean of those learned": constant,
    }
    return {label: np.abs(way - found.accuracies) for label, way in ways.items()}


def level_not_energy() -> Evidence:
    """Decide whether a constant predicts the accuracies of learned waves better than a curve of
    energies.
    """
    curve, _, constant = (
        each[trained().learned].mean() for each in errors_of_predictors().values()
    )
    return evidence(curve > constant, 100 * (curve - constant), **_sizes())


def vit_waves() -> Evidence:
    """Decide whether the transformer learned the waves that repeat in every patch, above 90 %, and
    no other.
    """
    found = trained()
    repeats = np.array([all(k % PATCH_CYCLES == 0 for k in wave) for wave in found.waves])
    own = found.of("vit")
    least, most = found.accuracies[own & repeats].min(), found.accuracies[own & ~repeats].max()
    return evidence(least > 0.9 and most < LEARNED, least, **_sizes())


def flat_learns_all() -> Evidence:
    """Decide whether networks with hardly any preference learned all waves."""
    found = trained()
    whole = [name for name in found.names if found.learned[found.of(name)].all()]
    return evidence(set(FLAT) <= set(whole), len(whole), **_sizes())


def too_short() -> Evidence:
    """Decide whether the networks that learned nothing learn the coarsest wave, and not the finest,
    in more time.
    """
    longer = [row for row in _study()["control"] if "epochs" in row]
    accuracies = {
        wave: [row["accuracy"] for row in longer if tuple(row["wave"]) == wave]
        for wave in (COARSEST, FINEST)
    }
    least = min(accuracies[COARSEST])
    holds = least > LEARNED > max(accuracies[FINEST])
    return evidence(holds, least, size="laptop", num_seeds=1, num_trainings=len(longer))
